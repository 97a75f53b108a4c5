// Package toolkit holds tools that do real work on a directory: Files reads, searches, writes, patches and watches
// the files below it, Shell runs commands in it.
//
// It owns what these tools may reach. The file tools never leave their root, whatever links are in it or appear
// while they work (os.Root). Shell commands get an environment by allow-list, their own process group and no input;
// when their context or the command itself ends, the whole group is killed. It refuses to own the sandbox around
// a shell: a command may read and write whatever the worker's user may, and a process that leaves its group with
// setsid is out of reach.
//
//	tools, err := toolkit.Files(".", toolkit.FilesConfig{})
//	set, err := executor.NewSet("files", tools...)
package toolkit

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// lockName is the file beside JetStream's own that is locked while a server uses them.
const lockName = "jetcrew.lock"

// lockWithin bounds the wait for a directory that somebody has and that no server says it runs on: one is just ending, or
// somebody looks whether one is there.
const lockWithin = 5 * time.Second

// lock makes dir exist and takes it for one server: two that write the same files lose what each other wrote, and
// neither notices.
func lock(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	mine, err := tryLock(f)
	for late := time.Now().Add(lockWithin); err == nil && !mine && !addressed(dir) && time.Now().Before(late); {
		time.Sleep(50 * time.Millisecond) // nothing tells when a lock is free
		mine, err = tryLock(f)
	}
	switch {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	case !mine:
		return nil, errors.Join(errors.New("another process uses it; `orchestrator approvals`, `runs`, `dead` and `audit` reach its server with the same --data"), f.Close())
	}
	return f, nil
}

// addressName is the file that says where the server of the directory is while it runs.
const addressName = "jetcrew.url"

// addressed tells whether a server says that it runs on dir.
func addressed(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, addressName))
	return err == nil
}

// Address returns the address of the server that runs on dir, for other processes of its user; empty: none does, or
// it does not listen.
func Address(dir string) (url string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, addressName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("address of the server in %s: %w", dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", fmt.Errorf("address of the server in %s: %w", dir, err)
	}
	defer f.Close() // nothing is written
	free, err := tryLock(f)
	if err != nil {
		return "", fmt.Errorf("address of the server in %s: lock %s: %w", dir, f.Name(), err)
	}
	if free { // it was killed and could not take the file with it
		return "", nil
	}
	return strings.TrimSpace(string(text)), nil
}

// publish writes the address down, in place of that of a server that was killed. Who may read the file may do everything at the
// server.
func (s *Server) publish(dir string, silent bool) error {
	name := filepath.Join(dir, addressName)
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if silent {
		return nil
	}
	if err := os.WriteFile(name, []byte(s.URL()+"\n"), 0o600); err != nil {
		return err
	}
	s.address = name
	return nil
}

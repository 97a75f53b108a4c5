// Package clitest runs the programs of this module as processes, for tests of their commands.
//
// It owns the building, the starting and the waiting, each with a bound. It refuses to own what is expected.
//
//	var program string
//
//	func TestMain(m *testing.M) { clitest.Main(m, &program) }
//
//	func TestVersion(t *testing.T) {
//		r := clitest.Run(t, clitest.Command{Program: program, Args: []string{"--version"}})
//		if r.Code != 0 { t.Fatal(r) }
//	}
package clitest

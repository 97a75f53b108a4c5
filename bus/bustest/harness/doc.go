// Package harness runs the programs of this module, and nats-server, as processes of tests: it starts them, reads what they
// say, and kills, pauses and restarts them.
//
// It owns the building, the starting and the waiting, each with a bound. It refuses to own what is expected.
//
//	var program string
//
//	func TestMain(m *testing.M) { harness.Main(m, &program) }
//
//	func TestVersion(t *testing.T) {
//		r := harness.Run(t, harness.Command{Program: program, Args: []string{"--version"}})
//		if r.Code != 0 { t.Fatal(r) }
//	}
package harness

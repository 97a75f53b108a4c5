package bustest

import (
	"os"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats-server/v2/server/ats"

	"github.com/jetcrew/jetcrew/bus/embedded"
)

// virtualURL is no address: in virtual time nobody listens.
const virtualURL = "nats://127.0.0.1:4222"

// Virtual runs f in virtual time, see testing/synctest, with one server that lives in it, too: what it waits for,
// deadlines, expiries, timers, comes as soon as nobody has anything to do. Whoever is connected has something to do every
// second, so a week goes by quickly only while nobody is. The test must not be parallel.
func Virtual(t *testing.T, f func(t *testing.T, srv *Servers)) {
	t.Helper()
	if os.Getenv(EnvNodes) == "3" {
		t.Skip("in virtual time there is one server")
	}
	t.Setenv(EnvNodes, "1") // which refuses a parallel test, too
	// A clock that the servers of a process share. If the one in the bubble started it, it would be in there, too.
	ats.Register()
	t.Cleanup(ats.Unregister)
	// The client keeps timers that it has used, for all of the process. One of another time would end the test.
	forgetPooled()
	defer forgetPooled()
	synctest.Test(t, func(t *testing.T) {
		srv, err := embedded.Start(embedded.Config{Silent: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(srv.Stop)
		f(t, &Servers{nodes: []string{virtualURL}, local: srv.Options()})
	})
}

// forgetPooled empties every sync.Pool: what is in one survives a collection, and not two.
func forgetPooled() {
	runtime.GC()
	runtime.GC()
}

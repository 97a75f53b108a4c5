package main

import (
	"testing"

	"github.com/jetcrew/jetcrew/bus/embedded"
)

// natsServer starts a server that ends with the test and returns its URL.
func natsServer(t *testing.T) string {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	return srv.URL()
}

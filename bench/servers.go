package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/bus/embedded"
)

// servers is one server, or a cluster of them, each in a process of its own.
type servers struct {
	list []*process
	url  string // of all, separated by commas
}

// startServers starts n servers and returns when JetStream works.
func startServers(ctx context.Context, n int) (*servers, error) {
	args, err := serverArgs(n)
	if err != nil {
		return nil, err
	}
	s := &servers{list: make([]*process, n)}
	errs := make([]error, n)
	var starting sync.WaitGroup // together: a server of a new cluster waits for the others
	for i := range n {
		starting.Go(func() { s.list[i], errs[i] = spawn(ctx, args[i]...) })
	}
	starting.Wait()
	if err = errors.Join(errs...); err == nil {
		var urls []string
		for _, p := range s.list {
			urls = append(urls, p.line)
		}
		s.url = strings.Join(urls, ",")
		err = s.ready(ctx)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// serverArgs are the arguments of each of n servers.
func serverArgs(n int) ([][]string, error) {
	if n == 1 {
		return [][]string{{"server"}}, nil
	}
	addrs := make([]string, n)
	for i := range addrs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() //nolint:errcheck // it only found a free port
		addrs[i] = l.Addr().String()
	}
	args := make([][]string, n)
	for i, addr := range addrs {
		args[i] = []string{"server", "--peer", addr}
		for j, other := range addrs {
			if j != i {
				args[i] = append(args[i], "--route", other)
			}
		}
	}
	return args, nil
}

// ready waits until the servers have found each other, so that a stream can have a copy on each.
func (s *servers) ready(ctx context.Context) error {
	nc, err := nats.Connect(s.url)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "READY", Storage: jetstream.MemoryStorage, Replicas: len(s.list)})
		return err == nil, nil
	})
}

func (s *servers) pids() (pids []int) {
	for _, p := range s.list {
		pids = append(pids, p.cmd.Process.Pid)
	}
	return pids
}

func (s *servers) stop() {
	for _, p := range s.list {
		if p != nil {
			p.stop()
		}
	}
}

// serverCmd runs a NATS server with file storage until it is told to end.
type serverCmd struct {
	Peer  string   `help:"Where other servers reach this one, a host and a port; empty: it is alone."`
	Route []string `help:"Where another server is."`
}

func (c serverCmd) Run(ctx context.Context) error {
	var cfg embedded.Config
	if c.Peer != "" {
		_, port, err := net.SplitHostPort(c.Peer)
		if err != nil {
			return err
		}
		cfg.Peer = embedded.Peer{Name: "s" + port, Routes: c.Route}
		if cfg.Peer.Port, err = strconv.Atoi(port); err != nil {
			return err
		}
	}
	srv, err := embedded.Start(cfg)
	if err != nil {
		return err
	}
	defer srv.Stop()
	fmt.Println(srv.URL())
	waitTerm(ctx)
	return nil
}

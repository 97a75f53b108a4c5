// Package session opens what a command needs to work: a bus, and where there is no server of the user's own, an
// embedded one with worker processes of its own.
//
// It owns the life of these processes: they start with the session, drain at its end, and end too when this process is
// killed. It refuses to know what the workers serve: they are this same program, started with the arguments that the
// caller names.
//
//	s, err := session.Open(ctx, session.Options{
//		Fleet: []session.Member{{Args: []string{"serve", "--queue", "files=2"}, Count: 3}},
//	})
//	defer s.Close()
//	tools, err := s.Bus.Select("*").Tools(ctx)
package session

package toolkit

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/jetcrew/jetcrew/schema"
)

// spool keeps the output of a command, from the point on at which it is more than the model gets, in a file without a
// name: up to schema.MaxPayload bytes, so that however long a command prints neither memory nor disk runs full.
type spool struct {
	file *os.File
	size int64
	err  error // why there is nothing to be had of it
}

// begin makes the file. What was written before goes into it.
func (s *spool) begin(written ...[]byte) {
	if s.file, s.err = os.CreateTemp("", "jetcrew-output-*"); s.err != nil {
		return
	}
	s.err = os.Remove(s.file.Name()) // it lives as long as it is open, even if this process is killed
	for _, p := range written {
		s.write(p)
	}
}

func (s *spool) write(p []byte) {
	if s.file == nil || s.err != nil {
		return
	}
	n, err := s.file.Write(p[:min(int64(len(p)), schema.MaxPayload-s.size)])
	s.size, s.err = s.size+int64(n), err
}

// keep stores what is there beside the result of the running call and returns how many bytes that are; 0: none.
func (s *spool) keep(ctx context.Context) int64 {
	if s.file == nil || ctx.Err() != nil { // a call that has ended has only a grace left
		return 0
	}
	_, err := s.file.Seek(0, io.SeekStart)
	if errors.Join(s.err, err) != nil || schema.KeepOutput(ctx, s.file) != nil {
		return 0
	}
	return s.size
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // nothing of it is wanted any more
	}
}

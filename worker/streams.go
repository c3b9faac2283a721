package worker

import (
	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// takeStreams puts standard input and output of an inetd run where http.Server accepts them as
// one connection.
func (s *server) takeStreams(in, out int, m *ipc.Streams) {
	unix.Close(in)
	unix.Close(out)
}

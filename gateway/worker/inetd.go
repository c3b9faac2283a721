package worker

import (
	"log/slog"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/stdio"
	"schedrestd/ipc"
)

// serveStdio serves standard input and output as one connection, in inetd mode.
func (s *server) serveStdio(in, out int, m *ipc.StdioConnection) {
	s.openConns.Add(1)
	s.tracker.trackConn(&connState{id: m.ID, silent: true})
	client := stdio.New(in, out)
	c := clientconn.Wrap(client, &m.Connection, s.stall)
	c.IsStdio, c.Counts, c.Closed = true, s.counts, func() {
		s.tracker.recordClose(m.ID)
		s.openConns.Done()
		s.exit <- exitStatus(client.WriteError())
	}
	s.servePlain(c)
}

// exitStatus returns the exit status in inetd mode. It lets a script notice that
// an answer was lost.
func exitStatus(lost error) int {
	if lost == nil {
		return 0
	}
	slog.Error("response not written to standard output", "error", lost, "hint", "the request may have been carried out")
	return 1
}

package worker

import (
	"log/slog"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/stdio"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// serveStdio serves standard input and output as one connection, in inetd mode.
func (s *server) serveStdio(in, out int, m *ipc.StdioConnection) {
	c := s.table.AddSilent(m.ID)
	client := stdio.New(in, out)
	raw := clientconn.Wrap(client, &m.Connection, s.limits.Stall)
	raw.Counts, raw.Closed = s.counts, func() {
		s.closed(c, exitStatus(client.WriteError(), c.HasFailed() || s.counts.BadRequests.Total() > 0))
	}
	go s.newHTTP1Conn(raw, raw, c).Serve()
}

// exitStatus returns the exit status in inetd mode. It lets a script notice that
// an answer was lost, or was an error.
func exitStatus(lost error, failed bool) int {
	switch {
	case lost != nil:
		slog.Error("response not written to standard output", "error", lost, "hint", "the request may have been carried out")
		return 1
	case failed:
		return work.ExitAfterError
	}
	return 0
}

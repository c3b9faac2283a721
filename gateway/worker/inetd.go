package worker

import (
	"log/slog"

	"schedrestd/auth"
	"schedrestd/gateway/worker/stdio"
	"schedrestd/ipc"
)

// serveStdio serves standard input and output as one connection, in inetd mode.
func (s *server) serveStdio(in, out int, m *ipc.StdioConnection) {
	s.openConns.Add(1)
	s.tracker.track(m.ID)
	p := auth.Peer{Network: m.Network.String(), Addr: m.Addr, Listener: m.Listener,
		UID: m.UID, GID: m.GID, PID: m.PID, Verified: m.Verified}
	client := stdio.New(in, out)
	s.servePlain(&conn{Conn: client, stdioID: m.ID, peer: p, stall: s.stall, done: func() {
		s.tracker.recordClose(m.ID)
		s.openConns.Done()
		s.exit <- exitStatus(client.WriteError())
	}})
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

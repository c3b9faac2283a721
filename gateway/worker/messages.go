package worker

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/meter"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// run serves until the dispatcher sends Drain, the channel closes, or the
// connection of inetd mode ends. It returns the exit status.
func (s *server) run() int {
	go s.handleMessages()
	go s.runHTTP2()
	status := <-s.exit
	s.table.Flush()
	meter.Process().Flush()
	requestLines().Flush()
	return status
}

func (s *server) runHTTP2() {
	if err := s.http2.Run(); err != nil {
		slog.Error("worker can't serve", "error", err)
		s.exit <- 1
	}
}

// handleMessages handles the dispatcher's messages in order, until the channel
// closes. So a connection that arrived before the message Drain is still
// served.
func (s *server) handleMessages() {
	for {
		m, err := s.channel.Receive()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				slog.Error("channel to the dispatcher failed", "error", err)
			}
			s.exit <- 1
			return
		}
		switch msg := m.Message.(type) {
		case *ipc.Connection:
			if msg.RefuseStatus != 0 {
				s.refuseConn(m.FDs[0], msg)
			} else {
				s.serveConn(m.FDs[0], msg)
			}
		case *ipc.StdioConnection:
			s.serveStdio(m.FDs[0], m.FDs[1], msg)
		case *work.Dialed, *work.DialFailed, *work.DialedBatch, *work.ConnectedBatch, *work.NoOutput:
			s.broker.Deliver(m)
		case *work.ServiceChannel:
			err = s.connectService(msg, m.FDs[0])
		case *work.Keys:
			err = s.channel.Send(s.keys.Load(msg, m.FDs))
		case *work.Pause:
			s.table.Pause(msg.ID, time.Duration(msg.Seconds)*time.Second)
		case *work.ReclaimConnection:
			s.table.Reclaim(msg.ID)
		case *work.Retire:
			s.retire()
		case *ipc.Ping:
			err = s.channel.Send(&ipc.Pong{Number: msg.Number})
		case *work.Drain:
			go s.shutdown()
		default:
			err = ipc.Unhandled(msg)
		}
		if err != nil {
			slog.Error("channel to the dispatcher failed", "error", err)
			s.exit <- 1
			return
		}
	}
}

// connectService makes the descriptor fd this worker's channel to a service.
func (s *server) connectService(m *work.ServiceChannel, fd int) error {
	if m.Service == ipc.Keeper {
		return s.keys.Connect(fd)
	}
	return s.broker.Connect(m, fd)
}

// serveConn serves a connection from the dispatcher.
func (s *server) serveConn(fd int, m *ipc.Connection) {
	c := s.table.Add(m.ID)
	raw, err := clientconn.New(fd, m, s.limits.Stall)
	if err != nil {
		slog.Warn("connection not usable", "error", err)
		s.closed(c, 0)
		return
	}
	raw.Counts, raw.Closed = s.counts, func() { s.closed(c, 0) }
	if !m.TLS {
		go s.newHTTP1Conn(raw, raw, c).Serve()
		return
	}
	config := s.keys.TLS()
	if config == nil {
		slog.Error("https connection closed", "error", "no certificate loaded")
		_ = raw.Close()
		return
	}
	c.Attach(raw, raw, nil)
	go s.handshake(raw, c, tls.Server(raw, config))
}

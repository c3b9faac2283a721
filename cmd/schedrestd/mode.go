package main

import (
	"io"
	"log/slog"
	"os"

	"schedrestd/privsep"
)

// mode is a way to run.
type mode int

const (
	listening   mode = iota
	inetd            // one client, on standard input and output
	interactive      // the client is a person at a terminal
)

// runMode is the way to run: without an address to listen on and without a listening socket
// that was passed, the client is at standard input already.
func (o *options) runMode(sockets []*os.File, in *os.File) mode {
	switch {
	case len(o.listen) > 0 || len(sockets) > 0:
		return listening
	case privsep.IsTerminal(in):
		return interactive
	}
	return inetd
}

// level is how much is logged when nobody says. In inetd mode a caller wants the answer, and no
// story of each start.
func (m mode) level() slog.Level {
	switch m {
	case inetd:
		return slog.LevelWarn
	case interactive:
		return levels[infoLevel+1].level
	}
	return slog.LevelInfo
}

// announce says what this way to run makes of the options, and a person what to type.
func (m mode) announce(o options, log *slog.Logger) {
	if o.threads != 0 {
		log.Warn("-t is ignored in inetd mode: one worker serves the one client")
	}
	if o.netns != "" {
		log.Warn("SCHEDRESTD_NETNS is ignored in inetd mode: the client is connected already")
	}
	if m == interactive {
		log.Info("interactive mode: type a request and an empty line, as GET /sched/" + newest() + "/ping HTTP/1.1; Ctrl-D ends it")
	}
}

// standardError is where errors and the log go: nowhere when an inetd gave the client's socket as
// standard error too, because a line of the log in the middle of an answer breaks it.
func standardError() io.Writer {
	if sameSocket(os.Stdin, os.Stderr) {
		return io.Discard
	}
	return os.Stderr
}

func sameSocket(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil || x.Mode()&os.ModeSocket == 0 {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}

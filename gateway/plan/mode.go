package plan

import (
	"log/slog"

	"schedrestd/internal/loglevel"
	"schedrestd/ipc"
)

// mode is a mode of the gateway.
type mode int

const (
	listening   mode = iota
	inetd            // one client, on standard input and output
	interactive      // the client is a person at a terminal
)

// runMode returns the mode. If there is no address to listen on, and the parent
// was not passed a listening socket, the gateway serves one client, on standard
// input and output.
func (o *options) runMode() mode {
	switch {
	case len(o.Listen) > 0 || o.start.PassedSockets:
		return listening
	case o.start.Terminal:
		return interactive
	}
	return inetd
}

// plan converts m to the type that a Plan contains.
func (m mode) plan() ipc.Mode {
	if m == listening {
		return ipc.ModeServe
	}
	return ipc.ModeInetd
}

// level returns the default log level. In inetd mode only warnings and errors
// are logged, because the program that starts the gateway expects only the
// answer.
func (m mode) level() slog.Level {
	switch m {
	case inetd:
		return slog.LevelWarn
	case interactive:
		return loglevel.Verbose
	}
	return slog.LevelInfo
}

// announce logs which options have no effect in this mode. If the client is a
// person at a terminal, it also prints instructions.
func (m mode) announce(o options, log *slog.Logger) {
	if o.Run.Threads != 0 {
		log.Warn("option -t ignored: inetd mode has one worker")
	}
	if o.Run.Netns != "" {
		log.Warn("SCHEDRESTD_NETNS ignored: the client of inetd mode is already connected")
	}
	if o.Setup.Register != "" {
		log.Warn("SCHEDRESTD_TOKEN_REGISTER ignored: inetd mode has no keeper, which decides about gateway tokens; they are refused")
	}
	if m == interactive {
		log.Info("interactive mode: type a request and then an empty line, " +
			"such as GET /sched/" + latest() + "/ping HTTP/1.1; Ctrl-D ends it")
	}
}

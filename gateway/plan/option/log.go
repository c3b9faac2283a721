package option

import (
	"path/filepath"
	"strings"
)

// logSockets maps each log format to the socket to which the log is sent, or to
// "" if the format uses no socket.
var logSockets = map[string]string{"text": "", "json": "", "journald": "/run/systemd/journal/socket", "syslog": "/dev/log"}

// maxSocketPath is the kernel's limit on the length of a UNIX socket's path.
const maxSocketPath = 107

// setLog sets the format of the log and its destination. The format may be
// followed by a colon and the path of a socket, which replaces the default
// socket.
func (o *Options) setLog(name, v string) error {
	format, path, hasPath := strings.Cut(v, ":")
	defaultPath, ok := logSockets[format]
	switch {
	case !ok || hasPath && defaultPath == "":
		return invalid(name, v, "").WithHint("allowed values: text, json, journald, syslog, journald:SOCKET, syslog:SOCKET")
	case hasPath && (!filepath.IsAbs(path) || len(path) > maxSocketPath):
		return invalid(name, v, " does not name a socket").WithHint("write an absolute path of at most %d bytes after the colon", maxSocketPath)
	}
	o.Setup.Log = format
	if !hasPath {
		path = defaultPath
	}
	if path != "" {
		o.Setup.Log = format + ":" + path
	}
	return nil
}

// setDebug sets the log level, unless -v sets it.
func (o *Options) setDebug(name, v string) (err error) {
	if o.Verbose == 0 {
		o.debug, err = parseLevel(name, v)
	}
	return err
}

// setDebugFor returns a function that sets the log level if the log is sent to a
// socket, as syslog or to journald, or if it is written to standard error.
func (o *Options) setDebugFor(socket bool) func(name, v string) error {
	return func(name, v string) error {
		if strings.Contains(o.Setup.Log, ":") != socket {
			o.WithoutEffect = append(o.WithoutEffect, name+": SCHEDRESTD_LOG sends the log elsewhere")
			return nil
		}
		return o.setDebug(name, v)
	}
}

// The destinations of the log, for setDebugFor.
const (
	toStderr = false
	toSocket = true
)

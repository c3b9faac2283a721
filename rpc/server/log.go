package server

import (
	"context"
	"log/slog"
)

// logLimited logs a message about c's client, unless the limits forbid it.
func (c *conn) logLimited(level slog.Level, message string, args ...any) {
	log := c.server.log()
	if !log.Enabled(context.Background(), level) {
		return
	}
	if source := c.origin().String(); c.server.lines.Allow(source) {
		log.Log(context.Background(), level, message, append([]any{"peer", c.peerName(), "source", source}, args...)...)
	}
}

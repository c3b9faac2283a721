package server

import (
	"context"
	"log/slog"

	"schedrestd/internal/limit"
	"schedrestd/internal/throttle"
)

// throttle returns the Throttle of the log lines about clients.
func (s *Server) throttle() *throttle.Throttle[source] {
	s.throttleOnce.Do(func() {
		s.logThrottle.Row, s.logThrottle.Report = limit.ClientLines, s.logOmitted
	})
	return &s.logThrottle
}

// logLimited logs a message about c's client, unless the limits forbid it.
func (c *conn) logLimited(level slog.Level, message string, args ...any) {
	s := c.server
	if !s.log().Enabled(context.Background(), level) || !s.throttle().Allow(c.origin()) {
		return
	}
	args = append([]any{"peer", c.peerName(), "source", c.origin().String()}, args...)
	s.log().Log(context.Background(), level, message, args...)
}

// logOmitted logs how many lines about a source were omitted.
func (s *Server) logOmitted(src source, n int) {
	s.log().Warn("log lines left out", "lines", n, "period", limit.ClientLines.Period, "source", src.String())
}

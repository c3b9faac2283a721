package rest

import (
	"log/slog"
	"net/http"

	"schedrestd/internal/limit"
)

// Lines limits the log lines about requests, by the user or the client's address.
type Lines struct{ requests, refusals *limit.Lines }

// NewLines returns the limits for one worker. The lines about omitted lines are
// written to log.
func NewLines(log *slog.Logger) *Lines {
	return &Lines{limit.NewLines(limit.RequestLines, log), limit.NewLines(limit.RefusalLines, log)}
}

// Flush logs how many lines were omitted since the last report.
func (l *Lines) Flush() {
	l.requests.Flush()
	l.refusals.Flush()
}

// mayLog reports whether a line about the request may be written, if its answer has
// this status. If the level of the log is debug, all lines are written.
func (q *request) mayLog(status int) bool {
	l := q.server.Lines
	switch {
	case l == nil, q.server.Log.Enabled(q.r.Context(), slog.LevelDebug):
		return true
	case status == http.StatusUnauthorized, status == http.StatusForbidden: // the credential is refused
		return l.refusals.Allow(q.source())
	}
	return l.requests.Allow(q.source())
}

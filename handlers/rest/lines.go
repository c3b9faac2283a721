package rest

import (
	"context"
	"log/slog"
	"net/http"

	"schedrestd/internal/limit"
)

// Lines limits the log lines about requests, by the user or the client's address.
// A nil Lines sets no limit.
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

// allow reports whether a line about a request may be written. The argument
// refused is true if the credential was refused. If the level of the log is
// debug, all lines are written.
func (l *Lines) allow(ctx context.Context, log *slog.Logger, source string, refused bool) bool {
	if l == nil || log.Enabled(ctx, slog.LevelDebug) {
		return true
	}
	if refused {
		return l.refusals.Allow(source)
	}
	return l.requests.Allow(source)
}

// isRefused reports whether an answer with this status refuses the client's
// credential.
func isRefused(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

package rest

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"

	"schedrestd/internal/limit"
	"schedrestd/internal/throttle"
)

// Lines limits the log lines about requests. A nil Lines sets no limit.
type Lines struct {
	requests throttle.Throttle[string] // by the user or the client's address
	refusals throttle.Throttle[string] // lines about refused credentials, so that other lines don't suppress these
}

// NewLines returns the limits for one worker. The lines about omitted lines are
// written to log.
func NewLines(log *slog.Logger) *Lines {
	l := new(Lines)
	for t, row := range map[*throttle.Throttle[string]]throttle.Row{&l.requests: limit.RequestLines, &l.refusals: limit.RefusalLines} {
		t.Row = row
		t.Report = func(source string, n int) {
			log.Warn("log lines left out", "lines", n, "period", row.Period, "source", cmp.Or(source, "others"))
		}
	}
	return l
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

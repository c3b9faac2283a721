package rest

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"schedrestd/internal/throttle"
)

// Lines limits the log lines about requests. A client can send thousands of
// requests a second, even without a token. Their lines could fill the disk, or
// make journald drop lines, which then include those of other clients. A nil
// Lines sets no limit.
type Lines struct {
	requests throttle.Throttle[string] // by the user or the client's address
	refusals throttle.Throttle[string] // lines about refused credentials, so that other lines don't suppress these
}

// The limits of each worker. By default journald drops lines of a service that
// logs more than 10,000 lines in 30 s. Two workers together stay below this
// limit, even if each line about omitted lines follows a line about a request.
var (
	requestLines = throttle.Limits{Each: 50, All: 60, Sources: 60, Period: time.Second}
	refusalLines = throttle.Limits{Each: 10, All: 20, Sources: 20, Period: time.Second}
)

// NewLines returns the limits for one worker. The lines about omitted lines are
// written to log.
func NewLines(log *slog.Logger) *Lines {
	l := new(Lines)
	for t, limits := range map[*throttle.Throttle[string]]throttle.Limits{&l.requests: requestLines, &l.refusals: refusalLines} {
		t.Limits = limits
		t.Report = func(source string, n int) {
			log.Warn("log lines left out", "lines", n, "period", limits.Period, "source", cmp.Or(source, "others"))
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

package handlers

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"schedrestd/model"
)

// TestSilentPing checks the status of the answer if no daemon answers a ping.
// As for other requests, the status must show whether the primary daemon was
// too slow or unreachable. Only the log shows why.
func TestSilentPing(t *testing.T) {
	for _, path := range []string{"/sched/v0.0.43/ping", "/scheddb/v0.0.43/ping"} {
		for timedOut, want := range map[bool]int{true: http.StatusGatewayTimeout, false: http.StatusServiceUnavailable} {
			f := demo()
			f.pings = []model.Ping{{Hostname: "ctl1", TimedOut: timedOut}, {Hostname: "ctl2", TimedOut: !timedOut, Err: errors.New("connect to ctl2")}}
			var log strings.Builder
			site := config(f)
			site.Log = slog.New(slog.NewTextHandler(&log, nil))
			if w := serve(t, site, request(http.MethodGet, path, "")); w.Code != want || strings.Contains(w.Body.String(), "ctl2") {
				t.Errorf("%s, timed out %v: status %d, want %d: %s", path, timedOut, w.Code, want, w.Body)
			}
			if !strings.Contains(log.String(), "connect to ctl2") {
				t.Errorf("%s, timed out %v: the log is %s", path, timedOut, &log)
			}
		}
	}
}

package handlers

import (
	"net/http"
	"testing"

	"schedrestd/model"
)

// TestSilentPing checks the status of the answer if no daemon answers a ping.
// As for other requests, the status must show whether the primary daemon was
// too slow or unreachable.
func TestSilentPing(t *testing.T) {
	for _, path := range []string{"/sched/v0.0.43/ping", "/scheddb/v0.0.43/ping"} {
		for timedOut, want := range map[bool]int{true: http.StatusGatewayTimeout, false: http.StatusServiceUnavailable} {
			f := demo()
			f.pings = []model.Ping{{Hostname: "ctl1", TimedOut: timedOut}, {Hostname: "ctl2", TimedOut: !timedOut}}
			if w := serve(t, config(f), request(http.MethodGet, path, "")); w.Code != want {
				t.Errorf("%s, timed out %v: status %d, want %d", path, timedOut, w.Code, want)
			}
		}
	}
}

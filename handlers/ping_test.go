package handlers

import (
	"net/http"
	"testing"

	"schedrestd/model"
)

// TestSilentPing checks the status of the answer if no controller answers a
// ping. The status must show whether the primary controller was too slow or
// unreachable, as it does for other requests.
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

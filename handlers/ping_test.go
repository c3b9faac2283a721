package handlers

import (
	"net/http"
	"testing"

	"schedrestd/model"
)

// TestSilentPing checks that when nobody answers a ping, its status says
// whether the primary one was too slow or not there, as that of any other
// request does.
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

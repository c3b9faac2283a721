package rest

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/auth"
)

// TestRequestLines checks that a flood of requests from one address is logged
// only in part, and that the omitted lines are counted. It must suppress neither
// lines about another client nor lines about refused credentials.
func TestRequestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		site := newSite(0)
		site.Log = slog.New(slog.NewTextHandler(&log, nil))
		site.Lines = NewLines(site.Log)
		h := site.server()
		send := func(addr, path, token string) {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			if token != "" {
				r.Header.Set("X-SCHED-USER-TOKEN", token)
			}
			h.ServeHTTP(httptest.NewRecorder(), r.WithContext(auth.WithPeer(r.Context(), auth.Peer{Network: "tcp", Addr: addr})))
		}
		const flood, logged = 5000, 50 // lines from one address, and how many of them are logged in a second
		for i := range flood {
			send(fmt.Sprintf("192.0.2.7:%d", 1024+i), "/nothing", "") // each connection has another port
		}
		send("198.51.100.1:1024", "/elsewhere", "")
		send("192.0.2.7:1024", "/sched/v0.0.42/ping", "no token")
		time.Sleep(time.Second)
		synctest.Wait()
		for text, want := range map[string]int{
			"path=/nothing":   logged,
			"path=/elsewhere": 1,
			"status=401":      1,
			fmt.Sprintf(`msg="log lines left out" lines=%d period=1s source=192.0.2.7`, flood-logged): 1,
		} {
			if n := strings.Count(log.String(), text); n != want {
				t.Errorf("%d lines with %s, want %d", n, text, want)
			}
		}
	})
}

package handlers

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"schedrestd/auth"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// TestScript checks which script is shown: that of the controller or, for a job that
// the controller no longer has, that of accounting.
func TestScript(t *testing.T) {
	const script, old = "#!/bin/sh\n<b>\x1b\xff\n", "#!/bin/sh\nold\n"
	for _, tt := range []struct {
		name, job, method string
		scopes            string
		change            func(*fake)
		status            int
		want              string
	}{
		{name: "a job", job: "7", status: 200, want: script},
		{name: "its header", job: "7", method: http.MethodHead, status: 200},
		{name: "a task", job: "23_3", status: 200, want: "third"},
		{name: "a task that does not exist", job: "23_4", status: 404, want: "there is no job 23 with a task 4"},
		{name: "without a script", job: "8", status: 404, want: "no script"},
		{name: "no such job", job: "9", status: 404, want: "there is no"},
		{name: "a job in accounting", job: "30", status: 200, want: old},
		{name: "a job in accounting, without the scope", job: "30", scopes: "compute.read", status: 404, want: "there is no"},
		{name: "accounting without its script", job: "31", status: 404, want: "no longer kept"},
		{name: "another user's", job: "7", change: func(f *fake) {
			f.callErrs = map[string]error{"script": errs.New(errs.Denied, "access denied").WithNumber(2010)}
		}, status: 403, want: "job 7: only the job's user, operators and administrators"},
		{name: "the controller is not reached", job: "7", change: func(f *fake) { f.callErrs = map[string]error{"script": errs.New(errs.Unavailable, "no controller")} }, status: 503},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			f.jobs = []model.Job{{StepID: model.StepID{JobID: 23}, ArrayJobID: 20, ArrayTaskID: model.Some[uint32](3)}}
			f.scripts = map[uint32]string{7: script, 8: "", 23: "third"}
			f.recorded.jobs = []model.AccountingJob{{JobID: 30, Cluster: "demo", Script: old}, {JobID: 31, Cluster: "demo"}}
			if tt.change != nil {
				tt.change(f)
			}
			cfg := config(f)
			if tt.scopes != "" {
				cfg.Scopes = []string{tt.scopes + "=here"}
			}
			r := request(cmp.Or(tt.method, http.MethodGet), "/sched/v0.0.45/job/"+tt.job+"/script", "")
			r = r.WithContext(auth.WithPeer(r.Context(), auth.Peer{Network: "tcp", Addr: "192.0.2.7:40000", Listener: "here"}))
			w := httptest.NewRecorder()
			New(cfg).ServeHTTP(w, r)
			body := w.Body.String()
			if w.Code != tt.status || tt.status == 200 && body != tt.want || !strings.Contains(body, tt.want) {
				t.Fatalf("status %d: %q", w.Code, body)
			}
			if h := w.Header(); tt.status == 200 && (h.Get("Content-Type") != "text/plain; charset=utf-8" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store") {
				t.Errorf("%v", h)
			}
		})
	}
}

package handlers

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
)

const clusterPath = "/metrics/cluster"

// TestClusterMetrics checks that the page counts the objects that the token's
// user may see. It must contain names of users and accounts only if the client
// requests them.
func TestClusterMetrics(t *testing.T) {
	f := demo()
	w := serve(t, config(f), request(http.MethodGet, clusterPath, ""))
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Fatalf("%d %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	for _, want := range []string{
		"\n# TYPE slurm_jobs gauge\nslurm_jobs 4\n", "\nslurm_partition_jobs_failed{partition=\"debug\"} 1\n", "\nslurm_partition_jobs_failed{partition=\"long\"} 0\n",
		"\nslurm_nodes_idle 1\n", "\nslurm_partition_nodes_idle{partition=\"debug\"} 1\n", "\nslurm_partition_nodes_idle{partition=\"long\"} 0\n",
		"\nslurm_sdiag_jobs_submitted 9\n", "\nschedrestd_cluster_cpus{state=\"down\"} 8\n",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("missing: %q", want)
		}
	}
	if strings.Contains(w.Body.String(), "alice") || strings.Contains(w.Body.String(), "fairshare") {
		t.Error("shows users that were not asked for")
	}
	if d := cmp.Diff([]string{"verify", "diag", "partitions", "nodes", "jobs"}, f.calls); d != "" {
		t.Errorf("calls: %s", d)
	}
	for _, cred := range f.creds {
		if cred.Token != token {
			t.Errorf("asked as %v", cred)
		}
	}
	if q := f.queries; len(q) != 2 || !q[0].Prompt || !q[1].Prompt {
		t.Errorf("long lists are held in memory: %+v", q)
	}

	w = serve(t, config(demo()), request(http.MethodGet, clusterPath+"?by=user,account,node", ""))
	for _, want := range []string{"\nslurm_user_jobs{username=\"alice\"} 1\n", "\nslurm_account_jobs{account=\"\"} 1\n", "\nslurm_node_cpus_alloc{node=\"n2\"} 1\n", "\nschedrestd_cluster_account_fairshare_factor{account=\"root\"} "} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("missing: %q", want)
		}
	}
}

// TestClusterMetricsRefused checks the answer when a request for metrics must
// fail. The answer must contain the usual envelope with an error, and no
// metrics.
func TestClusterMetricsRefused(t *testing.T) {
	tests := []struct {
		name, path string
		change     func(*http.Request, *fake)
		status     int
	}{
		{"no token", "", func(r *http.Request, _ *fake) { r.Header.Del("X-SCHED-USER-TOKEN") }, http.StatusUnauthorized},
		{"signature", "", func(_ *http.Request, f *fake) { f.callErr = errs.New(errs.Unauthenticated, "bad signature") }, http.StatusUnauthorized},
		{"method", "", func(r *http.Request, _ *fake) { r.Method = http.MethodPost }, http.StatusMethodNotAllowed},
		{"format", "", func(r *http.Request, _ *fake) { r.Header.Set("Accept", "application/json") }, http.StatusNotAcceptable},
		{"parameter", "?node=n1", nil, http.StatusUnprocessableEntity},
		{"label", "?by=partition", nil, http.StatusUnprocessableEntity},
		{"query", "?by=%zz", nil, http.StatusBadRequest},
		{"list", "", func(_ *http.Request, f *fake) { f.midwayErr = errs.New(errs.BadAnswer, "the list is broken") }, http.StatusBadGateway},
		{"unclassified", "", func(_ *http.Request, f *fake) { f.midwayErr = errors.New("cause") }, http.StatusInternalServerError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			r := request(http.MethodGet, clusterPath+tt.path, "")
			if tt.change != nil {
				tt.change(r, f)
			}
			w := serve(t, config(f), r)
			if w.Code != tt.status || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
				t.Errorf("%d %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
			}
			if body := envelope(t, w.Body.Bytes()); len(body.Errors) != 1 {
				t.Errorf("errors: %+v", body.Errors)
			}
			if strings.Contains(w.Body.String(), "slurm_") {
				t.Errorf("shows metrics: %s", w.Body)
			}
		})
	}
}

// TestClusterMetricsNeedController checks that the page does not exist if the
// controller's paths are not served.
func TestClusterMetricsNeedController(t *testing.T) {
	cfg := config(demo())
	cfg.Content = feature.Accounting
	if w := serve(t, cfg, request(http.MethodGet, clusterPath, "")); w.Code != http.StatusNotFound {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestClusterMetricsCompressed checks that the page is compressed with gzip,
// which Prometheus accepts.
func TestClusterMetricsCompressed(t *testing.T) {
	r := request(http.MethodGet, clusterPath, "")
	r.Header.Set("Accept-Encoding", "gzip")
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1")
	w := serve(t, config(demo()), r)
	z, err := gzip.NewReader(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil || !strings.Contains(string(text), "\nslurm_nodes 2\n") {
		t.Errorf("%v: %s", err, text)
	}
}

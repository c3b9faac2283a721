package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestClusterMetrics checks the numbers of jobs and nodes in the metrics,
// before and after jobs are submitted to the bundled controller. The metrics
// must require a token, and there must be no metrics when the controller does
// not answer.
func TestClusterMetrics(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	rest := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	l.StartGateway(t, nil, rest)
	scrape := func(token, query string) (int, string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+rest+"/metrics/cluster"+query, nil)
		harness.Must(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		harness.Must(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		harness.Must(t, err)
		return resp.StatusCode, string(body)
	}
	checkLines := func(text string, want ...string) {
		t.Helper()
		for _, line := range want {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("missing: %s", line)
			}
		}
	}
	status, text := scrape(l.OwnToken, "")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	checkLines(text, "slurm_jobs 0", "slurm_nodes 1", "slurm_nodes_idle 1", "slurm_partitions 1", "slurm_jobs_cpus_alloc 0", `schedrestd_cluster_cpus{state="allocated"} 0`)

	l.Submit("#!/bin/sh\nsleep 1000\n", nil)
	l.Submit("#!/bin/sh\n", map[string]any{"hold": true})
	harness.Eventually(t, "a job runs and one is held", func() bool {
		_, text = scrape(l.OwnToken, "?by=user,node")
		// The metrics count a job as running while it is being started,
		// although it has no node yet.
		return strings.Contains(text, "\nslurm_jobs_nodes_alloc 1\n") && strings.Contains(text, "\nslurm_jobs_hold 1\n")
	})
	checkLines(text, "slurm_jobs 2", "slurm_jobs_pending 1", "slurm_jobs_running 1", "slurm_jobs_cpus_alloc 1", "slurm_nodes_idle 0", "slurm_sdiag_jobs_submitted 2",
		`schedrestd_cluster_cpus{state="allocated"} 1`)
	if !strings.Contains(text, "slurm_user_jobs_running{username=\"") {
		t.Error("no jobs of users")
	}
	if !regexp.MustCompile(`\nslurm_node_cpus_alloc\{node="[^"]+"\} 1\n`).MatchString(text) || !strings.Contains(text, "\nslurm_node_gpus{node=") {
		t.Error("no resources of nodes")
	}
	if promtool, err := exec.LookPath("promtool"); err == nil {
		cmd := exec.Command(promtool, "check", "metrics")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v: %s", err, out)
		}
	}

	if status, text := scrape("", ""); status != http.StatusUnauthorized || strings.Contains(text, "slurm_") {
		t.Errorf("without a token: %d %s", status, text)
	}
	if status, text := scrape(l.OwnToken, "?user=root"); status != http.StatusUnprocessableEntity {
		t.Errorf("unknown parameter: %d %s", status, text)
	}
	harness.Must(t, l.Daemons[l.Ctld.Name].Stop())
	if status, text := scrape(l.OwnToken, ""); status < 500 || strings.Contains(text, "slurm_nodes") {
		t.Errorf("without a controller: %d %s", status, text)
	}
}

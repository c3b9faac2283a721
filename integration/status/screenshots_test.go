package status

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestScreenshots makes README's pictures of the demo in the directory that
// STATUS_SCREENSHOTS names ("make screenshots").
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("STATUS_SCREENSHOTS")
	if dir == "" {
		t.Skip("STATUS_SCREENSHOTS is not set")
	}
	demo := exec.Command(filepath.Join(harness.Bin, "schedctl"), "demo", "--listen", fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)))
	out, err := demo.StdoutPipe()
	harness.Must(t, err)
	demo.Stderr = os.Stderr
	harness.Must(t, demo.Start())
	t.Cleanup(func() {
		demo.Process.Signal(syscall.SIGTERM)
		demo.Wait()
	})
	var url, token, work string
	for lines := bufio.NewScanner(out); token == "" && lines.Scan(); {
		line := lines.Text()
		if address, ok := strings.CutSuffix(line, "/status"); ok {
			url = address
		}
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "output" {
			work = filepath.Dir(strings.TrimSuffix(fields[1], ","))
		}
		token, _ = strings.CutPrefix(line, "SCHED_JWT=")
		if !strings.HasPrefix(line, "SCHED_JWT=") {
			token = ""
		}
	}
	go func() { // otherwise the demo would wait
		for lines := bufio.NewScanner(out); lines.Scan(); {
		}
	}()
	submit := func(name string, seconds, minutes int) {
		body, err := json.Marshal(map[string]any{"job": map[string]any{"name": name, "script": fmt.Sprintf("#!/bin/sh\nsleep %d\n", seconds), "environment": []string{"PATH=/usr/bin:/bin"},
			"current_working_directory": work, "time_limit": minutes}})
		harness.Must(t, err)
		r, err := http.NewRequest("POST", url+"/sched/v0.0.45/job/submit", bytes.NewReader(body))
		harness.Must(t, err)
		r.Header.Set("X-SCHED-USER-TOKEN", token)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		harness.Must(t, err)
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("the job was refused: %s", answer.Status)
		}
	}
	p := harness.OpenStatus(t, url)
	p.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1200, "height": 760, "deviceScaleFactor": 1, "mobile": false}, nil)
	p.SignIn(token)
	for i, name := range []string{"align-reads", "md-water", "train", "post", "cfd-wing", "relax", "align-reads", "md-water", "train", "cfd-wing"} {
		submit(name, 20+15*(i%3), 10+5*i)
	}
	for range 4 { // so that the plot has something to show
		time.Sleep(20 * time.Second)
		submit("post", 25, 5)
	}
	os.Setenv("DOCS_SCREENSHOTS", dir)
	p.Screenshot("status-overview")
	p.Show("jobs")
	time.Sleep(time.Second)
	p.Screenshot("status-jobs")
	p.Check(token)
}

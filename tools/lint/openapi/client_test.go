package openapi

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	client "schedrestd/tools/lint/openapi/sched_v0_0_42"
)

// TestClient checks that a client generated from the OpenAPI document can use a
// running gateway. The environment variable SCHEDCTL names the program that
// starts a gateway.
func TestClient(t *testing.T) {
	url, token := demo(t)
	ctx := context.Background()
	c, err := client.NewClientWithResponses(url, client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("X-SCHED-USER-TOKEN", token)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	ping, err := c.SchedV0042GetPingWithResponse(ctx)
	if err != nil || ping.JSON200 == nil || len(ping.JSON200.Pings) != 1 || !ping.JSON200.Pings[0].Responding {
		t.Fatalf("ping: %v %s", err, ping.Body)
	}
	nodes, err := c.SchedV0042GetNodesWithResponse(ctx, nil)
	if err != nil || nodes.JSON200 == nil || len(nodes.JSON200.Nodes) != 1 || *nodes.JSON200.Nodes[0].Cpus < 1 {
		t.Fatalf("nodes: %v %s", err, nodes.Body)
	}
	if none, err := c.SchedV0042GetNodeWithResponse(ctx, "none", nil); err != nil || none.JSONDefault == nil || len(*none.JSONDefault.Errors) != 1 {
		t.Errorf("an unknown node: %v %s", err, none.Body)
	}
	text := func(s string) *string { return &s }
	submitted, err := c.SchedV0042PostJobSubmitWithResponse(ctx, nil, client.V0042JobSubmitReq{Job: &client.V0042JobDescMsg{
		Script: text("#!/bin/sh\ntrue\n"), Environment: &client.V0042StringArray{"PATH=/usr/bin:/bin"},
		CurrentWorkingDirectory: text("/"), StandardOutput: text("/dev/null"),
	}})
	if err != nil || submitted.JSON200 == nil || submitted.JSON200.JobId == nil || *submitted.JSON200.JobId < 1 {
		t.Fatalf("submit: %v %s", err, submitted.Body)
	}
	id := *submitted.JSON200.JobId
	job, err := c.SchedV0042GetJobWithResponse(ctx, fmt.Sprint(id), nil)
	if err != nil || job.JSON200 == nil || len(job.JSON200.Jobs) != 1 || *job.JSON200.Jobs[0].JobId != id {
		t.Fatalf("job: %v %s", err, job.Body)
	}
}

// TestServedDocument checks that the client compiles that is generated from the
// document that a gateway serves. The environment variable GENERATOR names
// oapi-codegen.
func TestServedDocument(t *testing.T) {
	url, _ := demo(t)
	if err := os.Mkdir("served", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{os.Getenv("GENERATOR"), "-generate", "types,client,skip-prune", "-package", "client", "-o", "served/client.go", url + "/sched/v0.0.45/openapi.json"},
		{"go", "vet", "./served"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %.2000s", args, err, out)
		}
	}
}

// TestLive compares the answers of a running gateway with the OpenAPI document.
// The environment variable LIVE names the program that makes the comparison.
func TestLive(t *testing.T) {
	url, token := demo(t)
	cmd := exec.Command("node", os.Getenv("LIVE"))
	cmd.Env = append(os.Environ(), "URL="+url, "TOKEN="+token)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s", out)
}

// demo starts a cluster of one machine for the duration of the test.
func demo(t *testing.T) (url, token string) {
	cmd := exec.Command(os.Getenv("SCHEDCTL"), "demo", "--listen", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) > 2 && f[1] == "gateway" { // schedrestd gateway URL ready in 193 ms
			url = f[2]
		}
		if rest, ok := strings.CutPrefix(lines.Text(), "SCHED_JWT="); ok {
			token = rest
		}
		if strings.HasPrefix(lines.Text(), "Ctrl-C") {
			go func() { // reads the pipe, so that it does not fill up
				for lines.Scan() {
				}
			}()
			return url, token
		}
	}
	t.Fatal("the demo did not start")
	return "", ""
}

package container

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/integration/harness"
	"schedrestd/integration/pod"
)

// TestSlinky runs the image as Slinky's operator runs that of slurmrestd, with
// nothing else changed. The daemons are ours. integration/slurm has the same
// test with Slurm's daemons.
func TestSlinky(t *testing.T) {
	harness.NeedRoot(t)
	for _, tt := range []struct {
		name                   string
		accounting, restricted bool
		layers                 string // of the workers' sandbox, as the log describes them
	}{
		{"as installed", true, false, `on="[^"]*\bno_new_privs, seccomp\b`}, // and what the node permits
		{"restricted", false, true, `on="empty capability bounding set, no_new_privs, seccomp[^"]*" off="descriptor table of their own \(disable_unshare_files\), ` +
			`IPC namespace \(disable_unshare_sysv\)" unavailable="user namespace, network namespace, root of their own, PID namespace"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, l, k := pod.NewSlinky(t), harness.NewDaemons(t), pod.NewCluster(t)
			for name, port := range map[string]int{"slurm-controller": l.Controller, "slurm-accounting": l.Accounting} {
				k.Service(t, s.Services[name], harness.DialFunc("tcp", fmt.Sprintf("127.0.0.1:%d", port)))
			}
			if !tt.accounting {
				s.WithoutAccounting()
			}
			p := s.Start(t, k, pod.BuildImage(t), tt.restricted)
			checkSlinky(t, l, p, tt.accounting)
			checkIDs(t, p.PID, fmt.Sprint(s.Pod.SecurityContext.RunAsUser), fmt.Sprint(s.Pod.SecurityContext.RunAsGroup))
			line := regexp.MustCompile(`msg="confinement of the workers".*`).FindString(p.Logged(t))
			if !regexp.MustCompile(tt.layers).MatchString(line) {
				t.Errorf("got %s\nwant %s", line, tt.layers)
			}
			t.Log(line)
			p.Terminate(t)
		})
	}
}

func checkSlinky(t *testing.T, l *harness.Lab, p *pod.Pod, accounting bool) {
	t.Helper()
	for range 30 { // the kubelet's probes of five minutes
		harness.Must(t, p.Probe())
	}
	key, err := os.ReadFile(l.Key())
	harness.Must(t, err)
	send := func(method, path, body string, want int) string {
		t.Helper()
		r, err := http.NewRequest(method, p.URL+path, strings.NewReader(body))
		harness.Must(t, err)
		// The controller knows this user, and the image does not.
		r.Header.Set("X-SLURM-USER-TOKEN", harness.NewToken(t, key, jwt.SigningMethodHS256, pod.Claims("daemon")))
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		resp, err := p.Client.Do(r)
		harness.Must(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		harness.Must(t, err)
		if resp.StatusCode != want {
			t.Errorf("%s %s: %s\n%s", method, path, resp.Status, text)
		}
		return string(text)
	}
	const version = "/slurm/v0.0.44"
	for _, path := range []string{"/nodes/", "/node/" + l.Node, "/ping/", "/diag/", "/partitions/"} {
		send("GET", version+path, "", http.StatusOK)
	}
	text := send("POST", version+"/job/submit", `{"job":{"script":"#!/bin/sh\n","current_working_directory":"/tmp","environment":["PATH=/usr/bin:/bin"],"hold":true}}`, http.StatusOK)
	id := regexp.MustCompile(`"job_id":(\d+)`).FindStringSubmatch(text)
	if id == nil {
		t.Fatalf("no job:\n%s", text)
	}
	send("POST", version+"/job/"+id[1], `{"comment":"from the pod"}`, http.StatusOK)
	if text := send("GET", version+"/job/"+id[1], "", http.StatusOK); !strings.Contains(text, "from the pod") {
		t.Errorf("the change had no effect:\n%s", text)
	}
	send("DELETE", version+"/job/"+id[1], "", http.StatusOK)
	want := http.StatusOK
	if !accounting {
		want = http.StatusNotFound
	}
	send("GET", "/slurmdb/v0.0.44/accounts/", "", want)
}

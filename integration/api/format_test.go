package api

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"schedrestd/integration/harness"
)

// send sends a request with exactly the given headers. It returns the answer,
// and the answer's body as it was transferred.
func send(l *harness.Lab, method, path, body string, headers map[string]string) (*http.Response, string) {
	l.T.Helper()
	r, err := http.NewRequest(method, l.URL+path, strings.NewReader(body))
	harness.Must(l.T, err)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	a, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(r)
	harness.Must(l.T, err)
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	harness.Must(l.T, err)
	return a, string(b)
}

// TestYAML submits a job as handwritten YAML, once for each YAML layout that
// can be configured. The answer to a request for the job must have that layout
// and contain the submitted name.
func TestYAML(t *testing.T) {
	t.Parallel()
	for layout, want := range map[string]string{"": "jobs:\n  - ", "compact": "!!map {jobs: !!seq [!!map {", "compact,no_tag": "{jobs: [{", "pretty": "jobs: !!seq\n  - !!map\n", "no_tag": "jobs:\n  - "} {
		t.Run(layout, func(t *testing.T) {
			var env []string
			if layout != "" {
				env = []string{"SCHEDRESTD_YAML=" + layout}
			}
			l := harness.NewLab(t, harness.WithOptions(nil, env...))
			headers := map[string]string{"X-SCHED-USER-TOKEN": l.OwnToken, "Content-Type": "application/yaml", "Accept": "application/yaml"}
			body := fmt.Sprintf("job:\n  name: 007 # a text\n  script: |\n    #!/bin/sh\n    exit 0\n  environment: [PATH=/usr/bin:/bin]\n  current_working_directory: %q\n  time_limit: {set: true, number: 5}\n", l.Work)
			a, text := send(l, "POST", "/sched/v0.0.43/job/submit", body, headers)
			var submitted struct {
				JobID    int `yaml:"job_id"`
				Warnings []any
			}
			if err := yaml.Unmarshal([]byte(text), &submitted); err != nil || a.StatusCode != 200 || submitted.JobID == 0 || len(submitted.Warnings) > 0 {
				t.Fatalf("status %d, %v:\n%s", a.StatusCode, err, text)
			}
			a, text = send(l, "GET", fmt.Sprintf("/sched/v0.0.43/job/%d", submitted.JobID), "", headers)
			var got struct{ Jobs []struct{ Name any } }
			if err := yaml.Unmarshal([]byte(text), &got); err != nil || len(got.Jobs) != 1 || got.Jobs[0].Name != "007" {
				t.Errorf("%v, %v", err, got)
			}
			if !strings.Contains(text, want) || a.Header.Get("Content-Type") != "application/yaml" {
				t.Errorf("%s:\n%.300s", a.Header.Get("Content-Type"), text)
			}
			headers["Accept"] = "text/html"
			if a, text := send(l, "GET", "/sched/v0.0.43/ping", "", headers); a.StatusCode != 406 || !strings.Contains(text, "application/x-yaml") {
				t.Errorf("status %d: %s", a.StatusCode, text)
			}
		})
	}
}

// TestJSONLayoutsAndCoding checks that layouts and content codings change the
// bytes of an answer but not its content.
func TestJSONLayoutsAndCoding(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, harness.WithOptions(nil, "SCHEDRESTD_JSON=pretty"))
	headers := map[string]string{"X-SCHED-USER-TOKEN": l.OwnToken}
	_, plain := send(l, "GET", "/sched/v0.0.43/nodes", "", headers)
	if !strings.HasPrefix(plain, "{\n  \"nodes\": [\n    {\n") {
		t.Errorf("not pretty: %.200s", plain)
	}
	headers["Accept-Encoding"] = "gzip"
	a, text := send(l, "GET", "/sched/v0.0.43/nodes", "", headers)
	if a.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("not compressed: %v", a.Header)
	}
	z, err := gzip.NewReader(strings.NewReader(text))
	harness.Must(t, err)
	b, err := io.ReadAll(z)
	harness.Must(t, err)
	if !strings.HasPrefix(string(b), "{\n  \"nodes\": [\n") || len(text)*2 > len(b) {
		t.Errorf("%d bytes of %d: %.200s", len(text), len(b), b)
	}
}

// TestHealth checks the health pages, which load balancers must be able to
// request without a token. When a controller stops answering, only /readyz may
// report it. When the controller is back, /readyz must report this, too.
func TestHealth(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	hasStatus := func(path string, want int) bool {
		a, text := send(l, "GET", path, "", nil)
		return a.StatusCode == want && (want != 200 || text == "ok\n") && (want != 503 ||
			text == "unready\n" && a.Header.Get("Retry-After") != "")
	}
	if !hasStatus("/healthz", 200) || !hasStatus("/livez", 200) || !hasStatus("/readyz", 200) {
		t.Error("not healthy, or not ready, at the start")
	}
	if a, text := send(l, "GET", "/readyz?verbose", "", map[string]string{"X-SCHED-USER-TOKEN": l.OwnToken}); a.StatusCode != 200 || text != "ok\ndraining: ok\nkeys: ok\ncontroller: ok\n" {
		t.Errorf("the administrator gets %d %q as the results of the checks", a.StatusCode, text)
	}
	if a, text := send(l, "GET", "/readyz?verbose", "", nil); a.StatusCode != 401 || strings.Contains(text, "draining") {
		t.Errorf("without a token: %d %q", a.StatusCode, text)
	}
	if user := harness.OrdinaryUser(t); os.Geteuid() == 0 {
		if a, text := send(l, "GET", "/readyz?verbose", "", map[string]string{"X-SCHED-USER-TOKEN": l.UserToken(user.Name)}); a.StatusCode != 403 || strings.Contains(text, "draining") {
			t.Errorf("an ordinary user gets %d %q", a.StatusCode, text)
		}
	}
	harness.Must(t, l.Daemons["schedctld"].Stop())
	// Each worker finds out for itself, and each of these requests may reach another one.
	harness.Eventually(t, "/readyz is 503", func() bool { return hasStatus("/readyz", 503) })
	if !hasStatus("/healthz", 200) || !hasStatus("/livez", 200) {
		t.Error("the gateway is not healthy without a controller")
	}
	harness.Eventually(t, "a user gets the reason", func() bool {
		a, text := send(l, "GET", "/readyz", "", map[string]string{"X-SCHED-USER-TOKEN": l.OwnToken})
		return a.StatusCode == 503 && strings.Contains(text, "\ncontroller: unreachable for ")
	})
	harness.Eventually(t, "a guessed token gets 401", func() bool {
		a, _ := send(l, "GET", "/readyz", "", map[string]string{"X-SCHED-USER-TOKEN": "guess"})
		return a.StatusCode == 401
	})
	defer func() {
		l.Up(l.Ctld)
		harness.Eventually(t, "/readyz is 200 again", func() bool { return hasStatus("/readyz", 200) })
	}()
	if a, _ := send(l, "GET", "/sched/v0.0.43/ping", "", map[string]string{"X-SCHED-USER-TOKEN": l.OwnToken}); a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("ping without a controller: status %d, %v", a.StatusCode, a.Header)
	}
}

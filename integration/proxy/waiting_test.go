package proxy

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// impatientNginx contains the timeouts of a proxy that gives up soon, unless the
// example says otherwise.
const impatientNginx = "send_timeout 2s;\nproxy_read_timeout 2s;\nproxy_send_timeout 2s;\n"

// TestWaiting checks that requests that wait, and streams of events, work behind
// proxies that are configured as in deploy/examples.
func TestWaiting(t *testing.T) {
	t.Parallel()
	f := harness.NewPortalLab(t)
	haproxy := func(server string) string {
		return harness.Substitute(t, harness.HAProxyExample(t), `^\ttimeout client .*$`, "\ttimeout client 2s", `^\ttimeout server .*$`, server)
	}
	f.Frontends = f.Frontends[:1]
	f.StartHAProxy(t, "haproxy", haproxy("\ttimeout server 1400s"))
	f.StartNginx(t, "nginx", impatientNginx+harness.NginxExample(t))
	configured := f.Frontends
	f.StartHAProxy(t, "haproxy without the timeout", haproxy("\ttimeout server 2s"))
	f.StartNginx(t, "nginx without the timeout", impatientNginx+harness.Substitute(t, harness.NginxExample(t), `^\t\tproxy_read_timeout .*$`, ""))
	for _, frontend := range configured {
		t.Run(frontend.Name, func(t *testing.T) {
			if got := waitThrough(t, frontend, "jobs/?wait=4s"); got != 304 {
				t.Errorf("after a wait of seconds: status %d, want 304", got)
			}
			checkLeaving(t, f, frontend)
			harness.NeedRoot(t)
			checkEvents(t, f, frontend)
		})
	}
	for _, frontend := range f.Frontends[len(configured):] { // proves that the page's timeouts have an effect
		if got := waitThrough(t, frontend, "jobs/?wait=4s"); got != http.StatusGatewayTimeout {
			t.Errorf("%s: status %d, want 504", frontend.Name, got)
		}
	}
}

// waitThrough waits for a change that does not happen, and returns the status of
// the answer.
func waitThrough(t *testing.T, frontend harness.Frontend, path string) int {
	t.Helper()
	answers := harness.Exchange(t, frontend.Address, 1, "GET /sched/"+harness.Version+"/"+path+" HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\nIf-None-Match: *\r\n"+frontend.Headers+"\r\n")
	if len(answers) != 1 {
		t.Fatalf("%s: %d answers", frontend.Name, len(answers))
	}
	return answers[0].Status
}

// checkEvents checks that each event arrives although no more follow, and that
// the stream outlives the timeouts of the proxy.
func checkEvents(t *testing.T, f *harness.ProxyLab, frontend harness.Frontend) {
	t.Helper()
	url := "http://" + frontend.Address + "/sched/" + harness.Version + "/jobs/?fields=job_id,name,job_state"
	headers := strings.Split(strings.TrimSpace(frontend.Headers), "\r\n")
	stream := harness.Follow(t, url, headers...)
	known := stream.Await("snapshot", `"more":false`)
	time.Sleep(3 * time.Second) // longer than the timeouts
	name := strings.ReplaceAll(frontend.Name, " ", "-") + "-job"
	submit := func(script, name string) {
		t.Helper()
		if a := sendThrough(f, t, frontend, "POST", "job/submit", f.JobRequest(script, map[string]any{"name": name})); a.Status != http.StatusOK {
			t.Fatalf("submitted: %s", a.Text)
		}
	}
	submit("sleep 3", name)
	known = stream.Await("added", name)
	for known.ID == "" || !strings.Contains(known.Data, `["COMPLETED"]`) {
		known = stream.Await("changed", name)
	}
	stream.Close()
	resumed := harness.Follow(t, url, append(headers, "Last-Event-ID: "+known.ID)...)
	submit("true", name+"-2")
	e := resumed.Next()
	if e.Name == "reset" { // by a worker that has not seen the last change yet
		resumed.Await("", name+"-2")
	} else if e.Name != "added" || !strings.Contains(e.Data, name+"-2") {
		t.Errorf("after the stream was resumed: %v", e)
	}
}

// checkLeaving checks that the gateway notices that a client has left while it
// waits. Otherwise the log would have the status 304 a minute later.
func checkLeaving(t *testing.T, f *harness.ProxyLab, frontend harness.Frontend) {
	t.Helper()
	noticed := func() int {
		return len(regexp.MustCompile(`msg=request .*route=get_reservations status=503 `).FindAllString(f.Gateway.Logged(), -1))
	}
	before := noticed()
	for _, pause := range []time.Duration{time.Second, 5 * time.Second, 20 * time.Second} { // until the request has reached the gateway
		c, err := net.Dial("tcp", frontend.Address)
		harness.Must(t, err)
		_, err = io.WriteString(c, "GET /sched/"+harness.Version+"/reservations/?wait=60s HTTP/1.1\r\nHost: cluster\r\nIf-None-Match: *\r\n"+frontend.Headers+"\r\n")
		harness.Must(t, err)
		time.Sleep(pause)
		c.Close()
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			if noticed() > before {
				return
			}
		}
	}
	t.Error("the gateway does not notice that the client has left")
}

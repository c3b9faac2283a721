package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/integration/page"
)

// eventSource is a script that follows a list with an EventSource.
const eventSource = `const source = new EventSource(list);
for (const name of ["snapshot", "added", "changed", "removed", "reset", "end"])
	source.addEventListener(name, (e) => show(name, JSON.parse(e.data)));`

// TestBrowserEvents checks that a web page can follow a list: with the script in
// the guide for clients, which sends a token, and with an EventSource behind
// nginx, which adds the token. After the gateway has ended the stream, the page
// must come back with the id of the last event, so that it gets no list again,
// even from a gateway that was restarted.
func TestBrowserEvents(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	b := harness.StartBrowser(t)
	f := harness.NewPortalLab(t)
	direct, list := f.Frontends[0], "/sched/"+harness.Version+"/jobs/?fields=job_id,name,job_state"
	// A restart would make nginx answer 502, after which an EventSource gives up.
	reload := func() { harness.Must(t, syscall.Kill(f.Gateway.PID(), syscall.SIGHUP)) }
	restart := func() {
		harness.Must(t, f.Gateway.Stop())
		f.StartGateway(t)
	}

	b.Call("Page.navigate", map[string]any{"url": "http://" + direct.Address + "/docs"}, nil)
	checkPageEvents(t, b, f, direct, fmt.Sprintf("follow(%q, %q, show);", list, f.UserToken(f.User.Name)), followScript(t), restart)

	for _, frontend := range f.Frontends {
		if frontend.Name != "nginx" {
			continue
		}
		address := url.URL{Scheme: "http", Host: frontend.Address, Path: "/docs", User: url.UserPassword(f.User.Name, harness.Password)}
		b.Call("Page.navigate", map[string]any{"url": address.String()}, nil)
		checkPageEvents(t, b, f, frontend, eventSource, fmt.Sprintf("const list = %q;", list), reload)
	}
}

// followScript returns the script in the guide for clients.
func followScript(t *testing.T) string {
	t.Helper()
	blocks, err := page.Blocks(filepath.Join(harness.Root, "docs/CLIENTS.md"))
	harness.Must(t, err)
	for _, b := range blocks {
		if b.Language == "js" {
			return b.Text
		}
	}
	t.Fatal("the guide for clients has no script")
	return ""
}

// checkPageEvents lets a page follow the user's jobs with a script, and calls
// interrupt, which ends the stream. The text before is a script that the page
// executes first.
func checkPageEvents(t *testing.T, b *harness.Browser, f *harness.ProxyLab, frontend harness.Frontend, script, before string, interrupt func()) {
	t.Helper()
	b.Await("the page is loaded", fmt.Sprintf(`location.host === %q && document.readyState === "complete"`, frontend.Address))
	b.Eval("var events = [], show = (name, data) => events.push([name, JSON.stringify(data)]);\n" + before + "\n" + script + "\n0")
	defer func() { // also if the page does not receive what the test waits for
		if t.Failed() {
			t.Logf("%s: the page received %v", frontend.Name, b.Eval("JSON.stringify(events)"))
		}
	}()
	has := func(name, text string) string {
		return fmt.Sprintf(`events.some(([name, data]) => name === %q && data.includes(%q))`, name, text)
	}
	submit := func(name string) {
		t.Helper()
		if a := sendThrough(f, t, frontend, "POST", "job/submit", f.JobRequest("sleep 3", map[string]any{"name": name})); a.Status != http.StatusOK {
			t.Fatalf("submitted: %s", a.Text)
		}
		b.Await("the page knows job "+name, has("added", name))
		b.Await("the page knows the end of job "+name, has("changed", `"name":"`+name+`","job_state":["COMPLETED"]`)+"||"+has("changed", `"job_state":["COMPLETED"],"name":"`+name))
	}
	b.Await("the page knows the list", has("snapshot", `"more":false`))
	submit(frontend.Name + "-first")
	streams := func() (n int) {
		for _, address := range b.Answers {
			if strings.Contains(address, "/jobs/") {
				n++
			}
		}
		return n
	}
	seen := streams()
	interrupt()
	b.Await("the stream has ended", has("end", `"reason":`))
	harness.Eventually(t, "the page has requested the stream again", func() bool {
		b.Eval("0") // reads the messages of the browser
		return streams() > seen
	})
	submit(frontend.Name + "-second")
	if got := b.Eval(`events.filter(([name]) => name === "snapshot").length`); got != 1.0 {
		t.Errorf("%s: %v snapshots, want 1: %v", frontend.Name, got, b.Eval(`JSON.stringify(events)`))
	}
}

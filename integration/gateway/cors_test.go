package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/integration/harness"
)

// TestPagesOfAnotherServer opens web pages of two servers in Chromium. A page of
// the origin that the gateway allows can use the API with a token, and follow
// events. A page of another origin can neither read an answer nor make a change.
func TestPagesOfAnotherServer(t *testing.T) {
	t.Parallel()
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>portal</title>")
	}))
	t.Cleanup(pages.Close)
	b := harness.StartBrowser(t)
	l := harness.NewLab(t, harness.WithOptions(nil, "SCHEDRESTD_CORS_ORIGINS="+pages.URL))
	l.Submit("#!/bin/sh\n", map[string]any{"hold": true})

	const script = `(async () => {
	const api = %q, headers = {"X-SCHED-USER-TOKEN": %q}, said = {};
	const attempt = async (name, f) => { try { said[name] = await f() } catch (e) { said[name] = e.name } };
	let tag = "";
	await attempt("list", async () => {
		const r = await fetch(api + "/sched/v0.0.43/jobs/", {headers});
		tag = r.headers.get("ETag");
		return r.status + " " + (await r.json()).jobs.length + " " + (tag !== null) + " " + (r.headers.get("X-Request-Id") !== null);
	});
	await attempt("unchanged", async () => (await fetch(api + "/sched/v0.0.43/jobs/", {headers: {...headers, "If-None-Match": tag || "x"}, cache: "no-store"})).status);
	await attempt("no such path", async () => (await fetch(api + "/sched/v0.0.43/nothing", {headers})).status);
	await attempt("no token", async () => (await fetch(api + "/sched/v0.0.43/jobs/")).status);
	await attempt("with cookies", async () => (await fetch(api + "/sched/v0.0.43/jobs/", {headers, credentials: "include"})).status);
	await attempt("document", async () => (await (await fetch(api + "/openapi.json")).json()).openapi);
	await attempt("latest", async () => (await fetch(api + "/sched/latest/ping/", {headers})).headers.get("Content-Location"));
	await attempt("submit", async () => {
		const job = {script: "#!/bin/sh\n", job: {current_working_directory: %q, environment: ["PATH=/usr/bin:/bin"], hold: true}};
		const r = await fetch(api + "/sched/v0.0.43/job/submit", {method: "POST", headers: {...headers, "Content-Type": "application/json"}, body: JSON.stringify(job)});
		return r.status + " " + ((await r.json()).job_id > 0);
	});
	await attempt("cancel", async () => (await fetch(api + "/sched/v0.0.43/job/1", {method: "DELETE", headers})).status);
	await attempt("events", async () => {
		const r = await fetch(api + "/sched/v0.0.43/jobs/", {headers: {...headers, Accept: "text/event-stream"}});
		const reader = r.body.getReader();
		const {value} = await reader.read();
		reader.cancel();
		return r.status + " " + r.headers.get("Content-Type") + " " + (value.length > 0);
	});
	return said;
})()`
	ask := func(page string) map[string]any {
		t.Helper()
		b.Call("Page.navigate", map[string]any{"url": page}, nil)
		b.Await("the page is open", `document.title === "portal"`)
		said, _ := b.Eval(fmt.Sprintf(script, l.URL, l.OwnToken, l.Work)).(map[string]any)
		return said
	}
	jobs := func() int {
		return len(l.Request("GET", "/sched/v0.0.43/jobs/", "").Want(t, http.StatusOK).List("jobs"))
	}

	got := ask(pages.URL)
	want := map[string]any{"list": "200 1 true true", "unchanged": 304.0, "no token": 401.0, "no such path": 404.0, "with cookies": "TypeError", "document": "3.0.3",
		"submit": "200 true", "cancel": 200.0, "events": "200 text/event-stream true"}
	if location, _ := got["latest"].(string); !strings.Contains(location, "/v0.0.") {
		t.Errorf("latest: Content-Location is %v", got["latest"])
	}
	delete(got, "latest")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("a page of the allowed origin: -want +got\n%s", d)
	}
	before := jobs()
	other := strings.Replace(pages.URL, "127.0.0.1", "localhost", 1) // the same server, but another origin
	for name, said := range ask(other) {
		if said != "TypeError" { // this is how fetch reports that it may not show the answer
			t.Errorf("a page of another origin: %s: %v", name, said)
		}
	}
	if n := jobs(); n != before {
		t.Errorf("a page of another origin submitted a job: %d jobs, %d before", n, before)
	}
}

package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"schedrestd/bundled/demo/thread"
	"schedrestd/integration/harness"
)

// startAttacker starts the server of another site. Its pages run the script that
// follows the question mark in their address.
func startAttacker(t *testing.T) (port string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		script, _ := url.QueryUnescape(r.URL.RawQuery)
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Referrer-Policy", "no-referrer")
		fmt.Fprintf(w, "<!doctype html><title>attack</title><body><script>%s</script>", script)
	}))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	harness.Must(t, err)
	return port
}

// TestForgedRequests signs a browser in at nginx, which adds a token, and then
// opens pages of another site that make the browser send requests. They must
// change nothing, whether the browser says where requests come from (to
// 127.0.0.1, as with TLS) or not (over plain HTTP). The gateway's own page works.
func TestForgedRequests(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	harness.FindProgram(t, "nginx", "nginx-light")
	attacker := startAttacker(t)
	f := harness.NewPortalLab(t)
	var frontend harness.Frontend
	for _, other := range f.Frontends {
		if other.Name == "nginx" {
			frontend = other
		}
	}
	_, port, err := net.SplitHostPort(frontend.Address)
	harness.Must(t, err)
	for _, tt := range []struct{ name, host, attacker string }{
		{"another site", "127.0.0.1", "localhost"},
		{"the same site", "127.0.0.1", "127.0.0.1"},
		{"plain HTTP, another site", "gateway.test", "attacker.test"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := sendThrough(f, t, frontend, "POST", "job/submit", f.JobRequest("sleep 600", map[string]any{"comment": "mine"}))
			if a.Status != 200 {
				t.Fatalf("submitted: %s", a.Text)
			}
			job := fmt.Sprint("job/", a.Get("job_id"))
			gateway := "http://" + tt.host + ":" + port
			path := "/sched/" + requeueVersion + "/" + job
			b := harness.StartBrowser(t)
			signedIn := url.URL{Scheme: "http", Host: tt.host + ":" + port, Path: "/healthz", User: url.UserPassword(f.User.Name, harness.Password)}
			b.Call("Page.navigate", map[string]any{"url": signedIn.String()}, nil)
			b.Await("the user is signed in", `document.body !== null && document.body.innerText.trim() === "ok"`)
			p := harness.OpenStatusIn(b, t, gateway)
			p.AwaitText("no token needed")

			attack := func(name, script, done string) {
				t.Helper()
				before := len(refusedLines(f.Gateway.Logged()))
				p.Call("Page.navigate", map[string]any{"url": "http://" + tt.attacker + ":" + attacker + "/?" + url.QueryEscape(script)}, nil)
				p.Await(name+" has been tried", done)
				state := sendThrough(f, t, harness.Frontend{Address: f.Frontends[0].Address, Headers: f.Frontends[0].Headers}, "GET", job, "")
				text := fmt.Sprint(state.Get("jobs", 0, "comment"), state.Get("jobs", 0, "restart_cnt"), state.Get("jobs", 0, "job_state"))
				if state.Get("jobs", 0, "comment") != "mine" || strings.Contains(fmt.Sprint(state.Get("jobs", 0, "job_state")), "REQUEUE") || fmt.Sprint(state.Get("jobs", 0, "restart_cnt")) != "0" {
					t.Errorf("%s changed the job: %s", name, text)
				}
				t.Logf("%s: %d requests refused by the gateway; job %s", name, len(refusedLines(f.Gateway.Logged()))-before, text)
			}
			requeue := gateway + path + "/requeue"
			inGateway := fmt.Sprintf(`location.port === %q && document.readyState === "complete"`, port)
			attack("a navigation", fmt.Sprintf(`location = %q`, requeue), inGateway)
			if text := p.Text(); !strings.Contains(text, "nothing was changed: ") {
				t.Errorf("the navigation was answered with %s", text)
			}
			attack("a form", fmt.Sprintf(`document.body.innerHTML = '<form method=post enctype="text/plain" action="%s"><input name=\'{"comment":"forged","admin_comment":"\' value=\'"}\'></form>'; document.forms[0].submit()`, gateway+path), inGateway)
			attack("an image", fmt.Sprintf(`const i = new Image(); i.onload = i.onerror = () => { document.title = "done" }; i.src = %q`, requeue), `document.title === "done"`)
			attack("a body without a type", fmt.Sprintf(`fetch(%q, {method: "POST", mode: "no-cors", credentials: "include", body: new Blob(['{"comment":"forged"}'])}).catch(() => 0).then(() => { document.title = "done" })`, gateway+path), `document.title === "done"`)
			attack("a fetch", fmt.Sprintf(`fetch(%q, {mode: "no-cors", credentials: "include"}).catch(() => 0).then(() => { document.title = "done" })`, requeue), `document.title === "done"`)
			attack("a frame", fmt.Sprintf(`const f = document.createElement("iframe"); f.onload = () => { document.title = "done" }; f.src = %q; document.body.append(f)`, requeue), `document.title === "done"`)

			p.Call("Page.navigate", map[string]any{"url": gateway + "/status"}, nil)
			p.Await("the page is back", fmt.Sprintf(`location.host === %q && document.querySelector(".shell") !== null`, tt.host+":"+port))
			post := fmt.Sprintf(`fetch(%q, {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"comment":"changed"}'}).then((r) => r.status)`, path)
			if got := p.Eval(post); got != 200.0 {
				t.Errorf("the gateway's page changes the job: status %v", got)
			}
			if got := p.Eval(fmt.Sprintf(`fetch(%q).then((r) => r.status)`, path+"/requeue")); got != 200.0 {
				t.Errorf("the gateway's page requeues the job: status %v", got)
			}
			p.Show(job)
			p.Ask("Cancel")
			p.Click("Cancel job")
			harness.Eventually(t, "the job is cancelled with the page", func() bool {
				state := sendThrough(f, t, f.Frontends[0], "GET", job, "")
				return strings.Contains(fmt.Sprint(state.Get("jobs", 0, "job_state")), "CANCELLED")
			})
		})
	}
}

// refusedLines returns the log lines of requests that were refused because of
// their cause.
func refusedLines(log string) []string {
	return regexp.MustCompile(`(?m)^.*msg=request .* status=4(?:03|15) .*because=.*$`).FindAllString(log, -1)
}

// TestRebinding opens a page of an attacker, whose host name then stands for a
// program on the browser's machine that forwards connections to a UNIX socket of
// the gateway. The page has the gateway's origin, but must not be served as the
// user of the program.
func TestRebinding(t *testing.T) {
	t.Parallel()
	u := harness.OrdinaryUser(t)
	var socket string
	l := harness.NewLab(t, func(l *harness.Lab) {
		harness.Must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755)) // the worker's user connects to the controller's socket in it
		socket = filepath.Join(l.Dir, "run", "rest.sock")
		if os.Geteuid() == 0 {
			socket = filepath.Join(harness.SocketDir(t, l), "sock")
			l.Restd.Args = []string{"-f", l.Conf(), "-u", u.Name, "-g", strconv.Itoa(int(u.GID)), l.Restd.Args[len(l.Restd.Args)-1]}
		}
		l.Restd.Args = append(l.Restd.Args, "unix:"+socket)
		l.Restd.Env = append(l.Restd.Env, "SCHEDRESTD_HOSTS=portal.test")
	})
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { // as ssh -L does, it changes nothing
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "socket", r.In.Host
		},
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: harness.NewClient(func() (net.Conn, error) {
			return thread.DialAs(u.UID, u.GID, socket)
		}).Transport.(*http.Transport).DialContext},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/attack" { // before the name stands for the user's machine
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<!doctype html><title>attack</title>")
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	harness.Must(t, err)
	b := harness.StartBrowser(t)
	for host, want := range map[string]float64{"rebound.test": 403, "localhost": 200, "127.0.0.1": 200, "portal.test": 200} {
		b.Call("Page.navigate", map[string]any{"url": "http://" + host + ":" + port + "/attack"}, nil)
		b.Await("the page is open", fmt.Sprintf(`location.hostname === %q && document.title === "attack"`, host))
		for name, init := range map[string]string{
			"GET jobs/":       `{}`,
			"POST job/submit": fmt.Sprintf(`{method: "POST", headers: {"Content-Type": "application/json"}, body: %q}`, l.JobRequest("true", map[string]any{"hold": true})),
		} {
			_, path, _ := strings.Cut(name, " ")
			if got := b.Eval(fmt.Sprintf(`fetch("/sched/%s/%s", %s).then((r) => r.status)`, harness.Version, path, init)); got != want {
				t.Errorf("a page of %s: %s: status %v, want %v", host, name, got, want)
			}
		}
	}
}

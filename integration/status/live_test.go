package status

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/bundled/demo/thread"
	"schedrestd/integration/harness"
	"schedrestd/model"
)

// startProxy starts a proxy in front of the gateway. The function change may
// change requests.
func startProxy(t *testing.T, target string, change func(*http.Request)) string {
	t.Helper()
	to, err := url.Parse(target)
	harness.Must(t, err)
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		change(r.Out)
	}}
	s := httptest.NewServer(proxy)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// TestStream checks that the page shows changes as soon as the gateway sends
// them, that it forgets jobs that are gone, and that it goes on after a restart
// of its streams.
func TestStream(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(40, 30)
	c := newController(t, nodes, jobs, partitions)
	g := startFor(t, c)
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	p.Await("changes arrive as a stream", `document.querySelector(".fresh.live") !== null`)
	p.Show("jobs?scope=all")
	p.AwaitText("100030")
	c.change(func() {
		c.jobs[29].Name = "renamed-job"
		c.jobs = append(c.jobs, model.Job{StepID: model.StepID{JobID: 200_000}, Name: "new-job", UserName: "ann", Partition: "batch", Detailed: true})
	})
	p.AwaitText("renamed-job")
	p.AwaitText("new-job")
	c.change(func() { c.jobs = c.jobs[1:30] })
	p.Await("the removed jobs are gone", `!document.body.innerText.includes("new-job") && document.querySelector('a[href="#/job/100001"]') === null`)
	if rows := p.Eval(`document.querySelector(".table table").getAttribute("aria-rowcount")`); rows != "30" { // with the header
		t.Errorf("the table has %v rows", rows)
	}
	p.Show("overview")
	p.Await("the changes are listed", `document.querySelector(".changes li") !== null`)
	p.Check(g.Lab.OwnToken)
}

// TestLateStream checks that the page sends requests of its own while its stream
// is late, because the controller does not answer.
func TestLateStream(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(40, 30)
	c := newController(t, nodes, jobs, partitions)
	g := startFor(t, c)
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	p.Await("changes arrive as a stream", `document.querySelector(".fresh.live") !== null`)
	c.change(func() {
		p.Await("the page does not wait for the stream", `document.querySelector(".fresh.live") === null`)
	})
	p.Await("the page is current again", `document.querySelector(".fresh:not(.bad)") !== null`)
	p.Check(g.Lab.OwnToken)
}

// TestPolling checks that the page works through a proxy that lets no stream
// through: it shows changes, and answers without changes are not sent again.
func TestPolling(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(40, 30)
	c := newController(t, nodes, jobs, partitions)
	g := startFor(t, c)
	proxy := startProxy(t, "http://"+g.Address, func(r *http.Request) {
		if r.Header.Get("Accept") == "text/event-stream" {
			r.Header.Set("Accept", "application/json")
		}
	})
	p := harness.OpenStatus(t, proxy)
	p.SignIn(g.Lab.OwnToken)
	p.AwaitText("Every 5 s")
	p.Show("jobs?scope=all")
	p.AwaitText("100030")
	c.change(func() { c.jobs[29].Name = "renamed-job" })
	p.AwaitText("renamed-job")
	c.change(func() { c.jobs = c.jobs[:29] })
	p.Await("the removed job is gone", `!document.body.innerText.includes("renamed-job")`)
	p.Check(g.Lab.OwnToken)
}

// TestNoTokenNeeded checks that the page asks for no token behind a proxy that
// authenticates users, and that it then offers no signing out.
func TestNoTokenNeeded(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	proxy := startProxy(t, l.URL, func(r *http.Request) { r.Header.Set("X-SCHED-USER-TOKEN", l.OwnToken) })
	p := harness.OpenStatus(t, proxy)
	p.Await("the nodes are shown", `document.querySelector(".legend li") !== null`)
	p.AwaitText("no token needed")
	if p.Eval(`[...document.querySelectorAll("button")].some((e) => e.textContent === "Sign out")`) != false {
		t.Error("the page offers to sign out")
	}
	p.Show("submit")
	if command, _ := p.Eval(`document.querySelector("pre.source").textContent`).(string); !strings.Contains(command, "curl") || strings.Contains(command, "token") {
		t.Errorf("the command contains a token, or is none: %s", command)
	}
	p.Check("")
}

// TestSocket checks that the page asks for no token if the kernel identifies the
// user: through a program that forwards connections to the gateway's UNIX socket.
// The page must then know who the user is, and be able to submit a job.
func TestSocket(t *testing.T) {
	t.Parallel()
	u := harness.OrdinaryUser(t)
	var socket string
	harness.NewLab(t, func(l *harness.Lab) {
		harness.Must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755)) // the worker's user connects to the controller's socket in it
		socket = filepath.Join(l.Dir, "run", "rest.sock")
		if os.Geteuid() == 0 {
			socket = filepath.Join(harness.SocketDir(t, l), "sock")
			l.Restd.Args = []string{"-f", l.Conf(), "-u", u.Name, "-g", strconv.Itoa(int(u.GID)), l.Restd.Args[len(l.Restd.Args)-1]}
		}
		l.Restd.Args = append(l.Restd.Args, "unix:"+socket)
	})
	p := harness.OpenStatus(t, forwardAs(t, u, socket))
	p.Await("the nodes are shown", `document.querySelector(".legend li") !== null`)
	p.Await("changes arrive as a stream", `document.querySelector(".fresh.live") !== null`)
	if name := p.Eval(`document.querySelector(".user .name").innerText`); name != u.Name {
		t.Errorf("the page shows the user %v, want %s", name, u.Name)
	}
	p.Show("submit")
	p.Fill("Script", "#!/bin/sh\n#SBATCH -o /dev/null -J socket\ntrue\n")
	p.Fill("Working directory", "/")
	p.Await("the script is read", `document.querySelector("pre.source").textContent.includes('"name": "socket"')`)
	p.Click("Submit")
	p.AwaitText("The job that you submitted has ended.")
	p.Check("")
}

// forwardAs forwards connections to a UNIX socket as a user, and returns the
// address for a browser.
func forwardAs(t *testing.T, u harness.Account, socket string) (url string) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	harness.Must(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer from.Close()
				to, err := thread.DialAs(u.UID, u.GID, socket)
				if err != nil {
					return
				}
				defer to.Close()
				go io.Copy(to, from)
				io.Copy(from, to)
			}()
		}
	}()
	return "http://" + ln.Addr().String()
}

// TestBelowPath checks the page behind a proxy that serves the gateway below
// another path.
func TestBelowPath(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	proxy := startProxy(t, l.URL, func(r *http.Request) { r.URL.Path = strings.TrimPrefix(r.URL.Path, "/cluster") })
	p := harness.OpenStatus(t, proxy+"/cluster")
	p.SignIn(l.OwnToken)
	p.Await("the nodes are shown", `document.querySelector(".legend li") !== null`)
	p.Show("submit")
	p.AwaitText("/cluster/sched/v0.0.45/job/submit")
	p.Check(l.OwnToken)
}

// TestSlurmSpelling checks the page with a gateway that serves only slurmrestd's
// paths.
func TestSlurmSpelling(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, harness.WithOptions(nil, "SCHEDRESTD_NAMES=slurm"))
	p := harness.OpenStatus(t, l.URL)
	p.SignIn(l.OwnToken)
	p.Await("the nodes are shown", `document.querySelector(".legend li") !== null`)
	p.Await("changes arrive as a stream", `document.querySelector(".fresh.live") !== null`)
	p.Show("node/" + l.Node)
	p.AwaitText("Jobs on this node")
	p.Show("qos")
	p.AwaitText("normal")
	p.Show("submit")
	p.AwaitText("X-SLURM-USER-TOKEN")
	for _, url := range p.Requests {
		if strings.Contains(url, "/sched/") && !strings.HasSuffix(url, "/ping/") || strings.Contains(url, "/scheddb/") {
			t.Errorf("the page requested %s", url)
		}
	}
	p.Check(l.OwnToken)
}

// TestExpiry checks that the page counts down the validity of a token, and asks
// for a new one when it has expired. The data must be gone from the page.
func TestExpiry(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	p := harness.OpenStatus(t, l.URL)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	token, err := l.Token(ctx, "", 50*time.Second) // on a busy machine, signing in takes seconds
	harness.Must(t, err)
	p.SignIn(token)
	p.AwaitText("token: 0:")
	p.Await("a screen reader is warned", `document.querySelector(".user [role=alert]").textContent.includes("expires in less than a minute")`)
	p.AwaitText("Your token has expired")
	if p.Eval(`document.querySelector(".shell") === null`) != true {
		t.Error("the page still shows the cluster")
	}
	p.SignIn(l.OwnToken)
	p.Await("the nodes are shown", `document.querySelector(".legend li") !== null`)
	p.Check(token)
}

// TestOutage checks that the page keeps what it shows while the controller is
// down, shows how old that is, and goes on by itself when the controller is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	p := harness.OpenStatus(t, l.URL)
	p.SignIn(l.OwnToken)
	p.Await("changes arrive as a stream", `document.querySelector(".fresh.live") !== null`)
	l.Daemons["schedctld"].Stop()
	p.AwaitText("Not updated for")
	if p.Eval(`document.querySelector(".legend li") !== null`) != true {
		t.Error("the nodes are gone")
	}
	p.Screenshot("outage")
	p.Show("node/" + l.Node)
	p.Await("an error is shown", `document.querySelector(".problem") !== null`)
	p.Screenshot("outage-node")
	l.Up(l.Ctld)
	p.AwaitText("Jobs on this node")
	p.Await("the page is current again", `document.querySelector(".fresh.live") !== null`)
	p.Check(l.OwnToken)
}

// TestHidden checks that a page in a hidden tab stops asking, and goes on when
// it is shown again.
func TestHidden(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(40, 30)
	c := newController(t, nodes, jobs, partitions)
	g := startFor(t, c)
	var open, requests atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		requests.Add(1)
		defer open.Add(-1)
		to := &url.URL{Scheme: "http", Host: g.Address}
		(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}).ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	p := harness.OpenStatus(t, s.URL)
	p.SignIn(g.Lab.OwnToken)
	p.Await("changes arrive as a stream", `document.querySelector(".fresh.live") !== null`)
	visible := func(yes bool) {
		p.Eval(fmt.Sprintf(`Object.defineProperty(document, "hidden", { configurable: true, get: () => %t }); document.dispatchEvent(new Event("visibilitychange"))`, !yes))
	}
	visible(false)
	harness.Eventually(t, "the page has ended its requests", func() bool { return open.Load() == 0 })
	before := requests.Load()
	c.change(func() { c.jobs[29].Name = "renamed-job" })
	time.Sleep(12 * time.Second) // longer than each interval of a visible page except those of partitions
	if got := requests.Load(); got != before {
		t.Errorf("the hidden page has sent %d requests", got-before)
	}
	visible(true)
	p.Show("jobs?scope=all")
	p.AwaitText("renamed-job")
	p.Check(g.Lab.OwnToken)
}

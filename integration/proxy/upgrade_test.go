package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// An activated is a gateway whose sockets stay open while it is replaced, as with
// systemd.
type activated struct {
	*pair
	i       int
	sockets []*os.File
	names   []string // of the sockets
	cmd     *exec.Cmd
	log     *os.File
	exited  chan struct{}
}

// activate opens the sockets of the gateway i, and starts it.
func (p *pair) activate(i int) *activated {
	g := &activated{pair: p, i: i, exited: make(chan struct{})}
	close(g.exited)
	listen := func(network, address, name string) {
		l, err := net.Listen(network, address)
		harness.Must(p.t, err)
		if local, ok := l.(*net.UnixListener); ok {
			local.SetUnlinkOnClose(false)
			harness.Must(p.t, os.Chmod(address, 0o666))
		}
		f, err := l.(interface{ File() (*os.File, error) }).File()
		harness.Must(p.t, err)
		harness.Must(p.t, l.Close())
		p.t.Cleanup(func() { f.Close() })
		g.sockets, g.names = append(g.sockets, f), append(g.names, name)
	}
	listen("tcp", p.address[i], "https")
	if i == 0 {
		listen("unix", p.Socket, "http")
	}
	p.t.Cleanup(g.stop)
	g.start(harness.Bin)
	return g
}

// start starts the programs in dir.
func (g *activated) start(dir string) {
	var err error
	g.log, err = os.CreateTemp(filepath.Join(g.Dir, "log"), "gate-")
	harness.Must(g.t, err)
	defer g.log.Close()
	script := fmt.Sprintf(`LISTEN_PID=$$ LISTEN_FDS=%d LISTEN_FDNAMES=%s exec "$0" "$@"`, len(g.sockets), strings.Join(g.names, ":"))
	g.cmd = exec.Command("/bin/sh", append([]string{"-c", script, filepath.Join(dir, "schedrestd")}, g.Restd.Args[:len(g.Restd.Args)-1]...)...)
	g.cmd.Dir, g.cmd.ExtraFiles, g.cmd.Stdout, g.cmd.Stderr = "/", g.sockets, g.log, g.log
	g.cmd.Env = append(append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, g.Restd.Env...), g.env(g.i)...)
	harness.Must(g.t, g.cmd.Start())
	g.exited = make(chan struct{})
	go func() { g.cmd.Wait(); close(g.exited) }()
	g.awaitLine("msg=serving")
}

func (g *activated) awaitLine(text string) {
	g.t.Helper()
	harness.Eventually(g.t, fmt.Sprintf("gateway %d logs %s", g.i, text), func() bool {
		log, err := os.ReadFile(g.log.Name())
		return err == nil && strings.Contains(string(log), text)
	})
}

// stop stops the gateway as systemd does.
func (g *activated) stop() {
	select {
	case <-g.exited:
		return
	default:
	}
	g.cmd.Process.Signal(syscall.SIGTERM)
	<-g.exited
	if text, _ := os.ReadFile(g.log.Name()); g.t.Failed() {
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, "msg=request ") || strings.Contains(line, " status=5") {
				g.t.Logf("gateway %d: %s", g.i, line)
			}
		}
	}
}

// buildUpgrade builds the gateway again, as another version, and returns the
// directory of its programs.
func buildUpgrade(t *testing.T) string {
	dir := t.TempDir()
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -X schedrestd/internal/release.commit=upgrade", "-o", dir+"/", "./cmd/schedrestd...")
	build.Dir, build.Env = harness.Root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	programs, err := filepath.Glob(filepath.Join(dir, "schedrestd-*"))
	harness.Must(t, err)
	for _, program := range programs { // as after "make install"
		harness.Must(t, os.Chmod(program, 0o711))
	}
	if version, err := exec.Command(filepath.Join(dir, "schedrestd"), "-V").Output(); !strings.Contains(string(version), "upgrade") {
		t.Fatalf("the other version is %s, %v", version, err)
	}
	return dir
}

// TestUpgrade replaces two gateways behind the example proxies, one after the
// other, by another version, while clients send requests of each kind. Before, it
// makes each reload its configuration. Each request must succeed, although no
// client tries again, and each submission must make one job.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	p := newPair(t)
	upgrade := buildUpgrade(t)
	gateways := []*activated{p.activate(0), p.activate(1)}
	var proxies []string
	for _, start := range []func(tokens string){ // a busy machine needs longer than the examples permit
		func(tokens string) {
			p.StartHAProxy(t, "haproxy", harness.Substitute(t, p.haproxy(tokens), `^\ttimeout connect 5s$`, "\ttimeout connect 60s", `^\ttimeout check 5s$`, "\ttimeout check 60s"))
		},
		func(tokens string) {
			p.StartNginx(t, "nginx", harness.Substitute(t, p.nginx(tokens), `proxy_connect_timeout 10s`, "proxy_connect_timeout 60s", `proxy_next_upstream_timeout 30s`, "proxy_next_upstream_timeout 180s"))
		},
	} {
		tokens, before := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), len(p.Frontends)
		if start(tokens); len(p.Frontends) > before {
			proxies = append(proxies, tokens)
		}
	}
	if len(proxies) == 0 {
		t.Skip("no proxy is installed")
	}
	l := &load{pair: p, outcomes: map[string]int{}}
	for i, user := range []string{"games", "daemon", "bin", "mail"} {
		if _, ok := harness.LookupAccount(user); ok {
			for _, proxy := range proxies {
				l.startClients(proxy, fmt.Sprintf("127.0.0.%d", 2+i), user)
			}
		}
	}
	l.awaitMore()
	for _, g := range gateways {
		harness.Must(t, g.cmd.Process.Signal(syscall.SIGHUP))
		g.awaitLine("configuration reloaded")
		l.awaitMore()
	}
	for _, g := range gateways {
		g.stop()
		g.start(upgrade)
		l.awaitMore()
	}
	l.check()
}

// A load is clients that send requests until the test stops them.
type load struct {
	*pair
	clients sync.WaitGroup
	streams []*harness.Follower

	mu       sync.Mutex // guards the fields below
	ended    bool
	outcomes map[string]int // number of answers, by kind of request and outcome
	sequence int            // number of submissions
}

// kinds has the requests of a client, by name. A list is long enough that the
// gateway sends it in several pieces.
var kinds = map[string]struct {
	method, path string
	fresh        bool // opens a connection for each request
	pause        time.Duration
	clients      int // of each user at each proxy
}{
	"ping":                  {"GET", "ping", false, 5 * time.Millisecond, 2},
	"ping, new connection":  {"GET", "ping", true, 10 * time.Millisecond, 1},
	"ping, now and then":    {"GET", "ping", false, 400 * time.Millisecond, 1},
	"list":                  {"GET", "jobs/", false, 100 * time.Millisecond, 1},
	"wait":                  {"GET", "nodes/?wait=1s", false, 0, 1},
	"submission":            {"POST", "job/submit", false, 50 * time.Millisecond, 1},
	"submission with a key": {"POST", "job/submit", false, 50 * time.Millisecond, 1},
}

// startClients starts a user's clients of each kind.
func (l *load) startClients(proxy, from, user string) {
	token := l.UserToken(user)
	for kind, k := range kinds {
		run := func() {
			c := &strictClient{proxy: proxy, from: from}
			defer c.close()
			for {
				l.mu.Lock()
				l.sequence++
				n, ended := l.sequence, l.ended
				l.mu.Unlock()
				if ended {
					return
				}
				body, header := "", "X-SLURM-USER-TOKEN: "+token+"\r\n"
				switch {
				case k.method == "POST":
					body = l.JobRequest("true #"+strings.Repeat("x", 2000), map[string]any{"hold": true, "name": fmt.Sprint(kind, n)})
					header += "Content-Type: application/json\r\n"
					if strings.HasSuffix(kind, "key") {
						header += fmt.Sprintf("Idempotency-Key: key-%d\r\n", n)
					}
				case kind == "wait":
					header += "If-None-Match: *\r\n"
				}
				l.count(kind, c.send(k.method, k.path, header, body, k.fresh))
				time.Sleep(k.pause)
			}
		}
		for range k.clients {
			l.clients.Go(run)
		}
	}
	f := &harness.Follower{Client: &http.Client{Transport: l}, URL: "http://" + proxy + "/sched/" + harness.Version + "/jobs/?fields=job_id,name", Token: token, List: "jobs", Key: "job_id"}
	l.streams = append(l.streams, f)
	go f.Run(l.t.Context())
}

// count records the outcome of a request. Only a status that begins with 2 or 3 is
// a success.
func (l *load) count(kind, outcome string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if outcome < "200" || outcome >= "400" {
		l.outcomes["failure of "+kind+": "+outcome]++
	} else {
		l.outcomes[kind]++
	}
}

// RoundTrip counts the streams of a Follower, and those that break.
func (l *load) RoundTrip(r *http.Request) (*http.Response, error) {
	w, err := http.DefaultTransport.RoundTrip(r)
	if r.Context().Err() != nil {
		return w, err
	}
	if err != nil {
		l.count("stream", err.Error())
		return w, err
	}
	l.count("stream", fmt.Sprint(w.StatusCode))
	w.Body = &streamBody{w.Body, r.Context(), l}
	return w, nil
}

type streamBody struct {
	io.ReadCloser
	ctx  context.Context
	load *load
}

func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.ctx.Err() == nil {
		b.load.count("stream", err.Error())
	}
	return n, err
}

// awaitMore waits until each kind of request has succeeded several times more.
func (l *load) awaitMore() {
	l.t.Helper()
	snapshot := func(kind string) int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.outcomes[kind]
	}
	for kind := range kinds {
		before := snapshot(kind)
		harness.Eventually(l.t, "more successes of "+kind, func() bool { return snapshot(kind) >= before+2 })
	}
}

// check stops the clients, and compares what they have seen with the jobs.
func (l *load) check() {
	l.t.Helper()
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.clients.Wait()
	for outcome, n := range l.outcomes {
		if l.t.Logf("%d × %s", n, outcome); strings.HasPrefix(outcome, "failure") {
			l.t.Errorf("%d × %s", n, outcome)
		}
	}
	if want, got := l.outcomes["submission"]+l.outcomes["submission with a key"], l.countJobs(); got != want {
		l.t.Errorf("%d jobs, but %d submissions have succeeded", got, want)
	}
	for _, f := range l.streams {
		harness.Eventually(l.t, "a stream has everything", func() bool { return f.Missing() == "" })
		if s := f.Seen(); len(s.Faults) > 0 || len(s.Ends) == 0 {
			l.t.Errorf("a stream had the ends %v, and the faults %.1000v", s.Ends, s.Faults)
		}
	}
}

// A strictClient never sends a request twice, unlike the client of net/http.
type strictClient struct {
	proxy, from string
	conn        net.Conn // nil: none is open
	in          *bufio.Reader
}

// send returns the status of the answer, or an error.
func (c *strictClient) send(method, path, header, body string, fresh bool) string {
	if c.conn == nil {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.from)}}).Dial("tcp", c.proxy)
		if err != nil {
			return err.Error()
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	if fresh {
		header += "Connection: close\r\n"
	}
	_, err := fmt.Fprintf(c.conn, "%s /sched/%s/%s HTTP/1.1\r\nHost: cluster\r\nContent-Length: %d\r\n%s\r\n%s", method, harness.Version, path, len(body), header, body)
	if err != nil {
		c.close()
		return err.Error()
	}
	w, err := http.ReadResponse(c.in, nil)
	var answer []byte
	if err == nil {
		answer, err = io.ReadAll(w.Body)
	}
	if err != nil || w.Close {
		c.close()
	}
	if err != nil {
		return err.Error()
	}
	if w.StatusCode >= http.StatusBadRequest {
		return fmt.Sprintf("%d at %s: %s", w.StatusCode, time.Now().Format(time.StampMilli), answer)
	}
	return fmt.Sprint(w.StatusCode)
}

func (c *strictClient) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

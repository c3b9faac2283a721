package rest

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"schedrestd/cli/direct"
	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
)

const token = "eyJhbGciOiJIUzI1NiJ9.e30.c2ln"

// apiHandler returns a handler for requests whose paths begin with an element
// of paths, such as /slurm/v0.0.45/. The handler answers pings for these paths
// itself, and passes other requests for them to the handler answer. For any
// other path, it answers 404.
func apiHandler(answer http.HandlerFunc, paths ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, p := range paths {
			rest, ok := strings.CutPrefix(r.URL.Path, p)
			switch {
			case !ok:
			case strings.Trim(rest, "/") == "ping":
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"pings": []}`)
				return
			default:
				answer(w, r)
				return
			}
		}
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "unable to find the URL")
	})
}

func reply(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func dialTest(t *testing.T, h http.Handler) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := Dial(t.Context(), Config{URL: s.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNegotiation checks that the client uses the newest version that both
// sides support, and a preview only if they have no other. The client's paths must begin with the word that the server
// expects, slurm or sched.
func TestNegotiation(t *testing.T) {
	for _, tt := range []struct {
		name, url string // url is appended to the server's address
		paths     []string
		version   string
		spelling  string
	}{
		{"only the oldest", "", []string{"/slurm/v0.0.40/", "/slurm/v0.0.42/"}, "v0.0.42", "slurm"},
		{"several", "", []string{"/slurm/v0.0.42/", "/slurm/v0.0.43/", "/slurm/v0.0.44/"}, "v0.0.44", "slurm"},
		{"a preview, too", "", []string{"/slurm/v0.0.43/", "/slurm/v0.0.45/", "/slurm/v0.0.46/"}, "v0.0.45", "slurm"},
		{"only a preview", "", []string{"/slurm/v0.0.46/"}, "v0.0.46", "slurm"},
		{"newer than known", "", []string{"/slurm/v0.0.45/", "/slurm/v0.0.99/"}, "v0.0.45", "slurm"},
		{"the other spelling", "", []string{"/sched/v0.0.43/"}, "v0.0.43", "sched"},
		{"below a prefix", "/hpc/", []string{"/hpc/slurm/v0.0.43/"}, "v0.0.43", "slurm"},
		{"chosen by the URL", "/slurm/v0.0.43/", []string{"/slurm/v0.0.43/", "/slurm/v0.0.45/"}, "v0.0.43", "slurm"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(apiHandler(reply(200, `{"jobs": [{"job_id": 3}]}`), tt.paths...))
			defer s.Close()
			c, err := Dial(t.Context(), Config{URL: s.URL + tt.url})
			if err != nil {
				t.Fatal(err)
			}
			if c.Version() != tt.version || c.spelling != tt.spelling {
				t.Errorf("%s %s, want %s %s", c.spelling, c.Version(), tt.spelling, tt.version)
			}
			if jobs, err := c.Job(t.Context(), "3"); err != nil || len(jobs) != 1 {
				t.Errorf("%v, %v", jobs, err)
			}
		})
	}
}

// TestDialErrors checks the kinds and hints of errors for unusable servers.
func TestDialErrors(t *testing.T) {
	plain := httptest.NewServer(apiHandler(reply(200, `{}`), "/slurm/v0.0.45/"))
	defer plain.Close()
	secure := httptest.NewTLSServer(apiHandler(reply(200, `{}`), "/slurm/v0.0.45/"))
	defer secure.Close()
	old := httptest.NewServer(apiHandler(reply(200, `{}`), "/slurm/v0.0.38/"))
	defer old.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	defer page.Close()
	refusing := httptest.NewServer(reply(401, `{"errors": [{"error_number": 1007, "description": "bad\u001b[2J token"}]}`))
	defer refusing.Close()
	refusing511 := httptest.NewServer(reply(511, `{}`))
	defer refusing511.Close()
	socket := filepath.Join(sockettest.Dir(t), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	local := &http.Server{Handler: refusing.Config.Handler}
	defer local.Close()
	go local.Serve(l)
	redirecting := httptest.NewServer(http.RedirectHandler("http://elsewhere.example/", http.StatusFound))
	defer redirecting.Close()
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for _, tt := range []struct {
		name, url string
		kind      errs.Kind
		text      string
		hint      string
	}{
		{"no server", "http://" + closed.Addr().String(), errs.Unavailable, "connection refused", "is the gateway running"},
		{"no socket", "unix:/nowhere/socket", errs.Unavailable, "no such file", "is the gateway running"},
		{"relative socket", "unix:socket", errs.Malformed, "begins with a slash", "unix:/PATH"},
		{"no scheme", "localhost:6820", errs.Malformed, "unsupported form", "http://HOST:PORT"},
		{"password", "http://a:secret@host", errs.Malformed, "must not contain", "--token-file"},
		{"query", "http://host/?token=secret", errs.Malformed, "must not contain", "unix:/PATH"},
		{"unknown host", "http://host.invalid:1", errs.Unavailable, "host.invalid", "check the host name"},
		{"TLS expected", strings.Replace(secure.URL, "https", "http", 1), errs.BadAnswer, "", "https://"},
		{"no TLS", strings.Replace(plain.URL, "http", "https", 1), errs.Unavailable, "", "http:// instead of https://"},
		{"unknown authority", secure.URL, errs.Unavailable, "certificate", "--cacert"},
		{"too old", old.URL, errs.Unsupported, "none of the API versions v0.0.45", "24.11"},
		{"another service", page.URL, errs.BadAnswer, "not JSON", "may not be slurmrestd"},
		{"no token", refusing.URL, errs.Unauthenticated, "no token is set", "SCHED_JWT"},
		{"refused", refusing.URL, errs.Unauthenticated, `bad\x1b[2J token`, "SCHED_JWT"},
		{"refused by slurmrestd", refusing511.URL, errs.Unauthenticated, "511", "SCHED_JWT"},
		{"refused at a socket", "unix:" + socket, errs.Unauthenticated, "bad", "unset SCHED_JWT"},
		{"redirect", redirecting.URL, errs.BadAnswer, "elsewhere.example", "--url"},
		{"no answer", slow.URL, errs.Timeout, "did not answer within 200ms", "--timeout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limit := time.Minute
			if tt.kind == errs.Timeout {
				limit = 200 * time.Millisecond
			}
			sent := token
			if tt.name == "no token" {
				sent = ""
			}
			_, err := Dial(t.Context(), Config{URL: tt.url, Token: sent, Timeout: limit})
			if err == nil || errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.text) || !strings.Contains(errs.HintOf(err), tt.hint) {
				t.Errorf("%v (kind %v), hint %q", err, errs.KindOf(err), errs.HintOf(err))
			}
			if err != nil && (strings.Contains(err.Error(), token) || strings.Contains(err.Error()+errs.HintOf(err), "secret")) {
				t.Errorf("shows a secret: %v", err)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, certificate(secure), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(t.Context(), Config{URL: secure.URL, Token: token, CACert: file}); err != nil {
		t.Errorf("with the server's certificate: %v", err)
	}
}

// TestUnixSocket checks requests over a UNIX socket.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(sockettest.Dir(t), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: apiHandler(reply(200, `{"jobs": []}`), "/sched/v0.0.45/")}
	defer s.Close()
	go s.Serve(l)
	for _, url := range []string{"unix:" + path, "unix://" + path} {
		if c, err := Dial(t.Context(), Config{URL: url, Token: token}); err != nil || c.Version() != "v0.0.45" {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestCauses checks that the error for a request to the daemons has all of its
// causes in one line.
func TestCauses(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(direct.Cause, url.QueryEscape("connect to h: no socket\nno \x1bport"))
		reply(503, `{}`)(w, r)
	}))
	defer s.Close()
	dial := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}
	c, err := Dial(t.Context(), Config{URL: "/etc/c.conf", Direct: dial})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Job(t.Context(), "3")
	if want := `connect to h: no socket; no \x1bport`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestTokenOfAnotherServer runs a server as another user of this machine. It
// checks that the client sends that server no token, unless the client's
// configuration names the other user.
func TestTokenOfAnotherServer(t *testing.T) {
	if os.Getenv("SERVE_AS_OTHER") != "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("at", l.Addr())
		http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Println("token", r.Header.Get("X-Slurm-User-Token") != "")
			apiHandler(reply(200, `{}`), "/slurm/v0.0.45/").ServeHTTP(w, r)
		}))
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to start a server of another user")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const other = 23456
	cmd := exec.Command(self, "-test.run=^TestTokenOfAnotherServer$")
	cmd.Env = append(os.Environ(), "SERVE_AS_OTHER=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
	program, err := os.Open(self) // opened here, because its directory may be closed to other users
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	cmd.ExtraFiles, cmd.Path = []*os.File{program}, "/proc/self/fd/3"
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var address string
	if _, err := fmt.Fscanf(out, "at %s\n", &address); err != nil {
		t.Fatal(err)
	}
	_, err = Dial(t.Context(), Config{URL: "http://" + address, Token: token})
	if errs.KindOf(err) != errs.Denied || !strings.Contains(err.Error(), "the token was not sent") || !strings.Contains(errs.HintOf(err), "--server-user 23456") {
		t.Fatalf("%v, hint %q", err, errs.HintOf(err))
	}
	if _, err := Dial(t.Context(), Config{URL: "http://" + address, Token: token, ServerUsers: []uint32{other}}); err != nil {
		t.Errorf("a user that is named: %v", err)
	}
	if _, err := Dial(t.Context(), Config{URL: "http://" + address}); err != nil {
		t.Errorf("without a token: %v", err)
	}
	for _, want := range []bool{true, false} { // the first Dial must send no request, so only two arrive
		var got bool
		if _, err := fmt.Fscanf(out, "token %t\n", &got); err != nil || got != want {
			t.Errorf("the server received a token: %t, %v; want %t", got, err, want)
		}
	}
}

// TestAnswers checks how the client parses answers, including slurmrestd's.
func TestAnswers(t *testing.T) {
	const unknownJob = `{"jobs": [], "errors": [{"description": "Unable to query JobId=7", "error_number": 2017, "error": "Invalid job id specified", "source": "_handle_job_get"}]}`
	for _, tt := range []struct {
		name   string
		status int
		body   string
		kind   errs.Kind
		text   string // "" for no error
	}{
		{"a list", 200, `{"meta": {"a": [1]}, "jobs": [{"job_id": 7}], "errors": [], "warnings": []}`, 0, ""},
		{"null", 200, `{"jobs": null}`, errs.NotFound, "job 7 is unknown"},
		{"unknown", 404, unknownJob, errs.NotFound, "job 7 is unknown"},
		{"unknown, with another status", 500, unknownJob, errs.NotFound, "job 7 is unknown"},
		{"an error beside a list", 200, `{"errors": [{"description": "no", "error_number": 2002, "error": "bad"}]}`, errs.Invalid, "no (bad)"},
		{"cut off", 200, `{"jobs": [{"job_id": 7}, {"job_`, errs.BadAnswer, "unexpected EOF"},
		{"no object", 200, `[]`, errs.BadAnswer, "no object"},
		{"no list", 200, `{"jobs": {}}`, errs.BadAnswer, "no array"},
		{"a wrong type", 200, `{"jobs": [{"job_id": "x"}]}`, errs.BadAnswer, "job_id"},
		{"an element without an end", 200, `{"jobs": [{"x": "` + strings.Repeat("x", 2*maxValue), errs.TooLarge, "too long"},
		{"white space without an end", 200, `{"jobs": [` + strings.Repeat(" ", 2*maxValue), errs.TooLarge, "too long"},
		{"a long member beside the list", 200, `{"other": [` + strings.Repeat("1,", maxValue) + `1], "jobs": []}`, errs.TooLarge, "too long"},
		{"denied", 403, `{"errors": [{"description": "not yours", "source": "#/job/x"}]}`, errs.Denied, "#/job/x: not yours"},
		{"unavailable", 503, `{}`, errs.Unavailable, "503"},
		{"a proxy's error", 502, `<html>`, errs.BadAnswer, "502"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := dialTest(t, apiHandler(reply(tt.status, tt.body), "/slurm/v0.0.44/"))
			jobs, err := c.Job(t.Context(), "7")
			if tt.text == "" {
				if err != nil || len(jobs) != 1 || jobs[0].ID != 7 {
					t.Errorf("%v, %v", jobs, err)
				}
				return
			}
			if err == nil || errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%v (kind %v), want %q (kind %v)", err, errs.KindOf(err), tt.text, tt.kind)
			}
		})
	}
}

// TestBoundedBody checks that values which are short enough can't make up an
// answer of any length.
func TestBoundedBody(t *testing.T) {
	b := &boundedBody{body: strings.NewReader(strings.Repeat("x", 100)), total: 50}
	for i, want := range []int{20, 20, 10, 0} {
		b.value = 20
		text, err := io.ReadAll(b)
		if len(text) != want || err != errTooLong {
			t.Errorf("value %d: %d bytes, %v", i, len(text), err)
		}
	}
}

// TestEndlessAnswers checks that an answer ends although the server never ends
// it, and that the error says what to do. The time that the client takes between
// two Reads does not count.
func TestEndlessAnswers(t *testing.T) {
	defer func(idle, transfer time.Duration, records int) {
		maxIdle, maxTransfer, maxRecords = idle, transfer, records
	}(maxIdle, maxTransfer, maxRecords)
	endless := func(begin, piece string, pause time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for text := begin; r.Context().Err() == nil; text = piece {
				io.WriteString(w, text)
				w.(http.Flusher).Flush()
				time.Sleep(pause)
			}
		}
	}
	for _, tt := range []struct {
		name           string
		idle, transfer time.Duration
		handler        http.HandlerFunc
		kind           errs.Kind
		text, hint     string
	}{
		{"records", time.Hour, time.Hour, endless(`{"jobs": [{"job_id": 7}`, strings.Repeat(`,{"job_id": 7}`, 100), 0), errs.TooLarge, "the answer is too long", "select fewer"},
		{"a drip", time.Hour, 300 * time.Millisecond, endless(`{"jobs": [{"job_id": 7}`, ` `, 10*time.Millisecond), errs.Timeout, "the answer has no end", "proxies"},
		{"silence", 300 * time.Millisecond, time.Hour, endless(`{"jobs": [{"job_id": 7}`, "", 10*time.Millisecond), errs.Timeout, "stopped sending", "proxies"},
		{"silence within a record", 300 * time.Millisecond, time.Hour, endless(`{"jobs": [{"job_id": `, "", 10*time.Millisecond), errs.Timeout, "stopped sending", "proxies"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			maxIdle, maxTransfer, maxRecords = time.Hour, time.Hour, 1000
			c := dialTest(t, apiHandler(tt.handler, "/slurm/v0.0.44/"))
			maxIdle, maxTransfer = tt.idle, tt.transfer
			_, err := c.Job(t.Context(), "7")
			if errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.text) || !strings.Contains(errs.HintOf(err), tt.hint) {
				t.Errorf("%v (kind %v), hint %q", err, errs.KindOf(err), errs.HintOf(err))
			}
		})
	}

	maxIdle = time.Hour
	b := newTimedBody(t.Context(), func(error) {}, io.NopCloser(strings.NewReader("a")))
	for range 2 {
		if b.timer.Stop() {
			t.Error("the time between two Reads counts")
		}
		b.Read(make([]byte, 1))
	}
}

// TestUnchanged checks that the client understands all answers with which
// servers report that nothing has changed.
func TestUnchanged(t *testing.T) {
	for _, h := range []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) },
		reply(200, `{"jobs": [], "last_update": {"set": true, "number": 0}, "errors": [], "warnings": [{"description": "No job changes"}]}`),
		reply(200, `{"jobs": [], "errors": [{"error_number": 1900}]}`),
	} {
		c := dialTest(t, apiHandler(h, "/slurm/v0.0.45/"))
		if m, err := c.Jobs(t.Context(), &List{Since: 5}, func(*Job) error { return errors.New("called") }); err != nil || !m.Unchanged {
			t.Errorf("%+v, %v", m, err)
		}
	}
	c := dialTest(t, apiHandler(reply(200, `{"jobs": [], "last_update": {"set": true, "number": 9}}`), "/slurm/v0.0.45/"))
	if m, err := c.Jobs(t.Context(), &List{Since: 5}, func(*Job) error { return nil }); err != nil || m.Unchanged || m.LastUpdate != 9 {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestMemoryOfLists reads a list of 20,000 jobs, each about as long as a job
// from a controller. It checks that the heap stays small.
func TestMemoryOfLists(t *testing.T) {
	element := fmt.Sprintf(`{"job_id": 7, "job_state": ["RUNNING"], "tres_req_str": %q}`, strings.Repeat("x", 4000))
	const jobs = 20_000
	c := dialTest(t, apiHandler(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jobs": [`, element)
		for range jobs - 1 {
			fmt.Fprint(w, ",", element)
		}
		fmt.Fprint(w, `]}`)
	}, "/slurm/v0.0.45/"))
	n, maxHeap := 0, uint64(0)
	_, err := c.RawJobs(t.Context(), nil, func(j *Job, text json.RawMessage) error {
		if n++; n%1000 == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			maxHeap = max(maxHeap, m.HeapAlloc)
		}
		return nil
	})
	if err != nil || n != jobs {
		t.Fatal(n, err)
	}
	if maxHeap > 20<<20 {
		t.Errorf("%d MiB of heap for a list of %d MiB", maxHeap>>20, jobs*len(element)>>20)
	}
}

// certificate returns the certificate of s in PEM form.
func certificate(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// TestPermits checks which scopes the client has after an answer.
func TestPermits(t *testing.T) {
	var header []string
	c := dialTest(t, apiHandler(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-Oauth-Scopes"] = header
		reply(http.StatusForbidden, `{"errors": [{"description": "no"}]}`)(w, nil)
	}, "/slurm/v0.0.45/"))
	for _, tt := range []struct {
		header []string
		want   bool
	}{
		{nil, true}, {[]string{"compute.read, compute.cancel"}, true}, {[]string{"compute.read", "compute.cancel"}, true},
		{[]string{"compute.read"}, false}, {[]string{""}, false}, {[]string{"compute.cancels"}, false},
	} {
		header = tt.header
		c.Partitions(t.Context(), nil, nil)
		if got := c.Permits("compute.cancel"); got != tt.want {
			t.Errorf("%q: %t", tt.header, got)
		}
	}
}

// TestKeyedSubmission checks that the client sends a submission with a key once
// if its answer is lost, because the server may ignore the key.
func TestKeyedSubmission(t *testing.T) {
	var sent atomic.Int32
	c := dialTest(t, apiHandler(func(http.ResponseWriter, *http.Request) {
		sent.Add(1)
		panic(http.ErrAbortHandler)
	}, "/slurm/v0.0.45/"))
	if _, err := c.Submit(t.Context(), map[string]any{}, "a key"); err == nil || sent.Load() != 1 {
		t.Errorf("sent %d times: %v", sent.Load(), err)
	}
}

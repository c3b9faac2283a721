package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/auth"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

var (
	errForged = &errs.Error{Kind: errs.Unauthenticated, Message: "protocol authentication error", Number: 1007}
	errDown   = &errs.Error{Kind: errs.Unavailable, Message: "the daemon can't be reached"}
)

// verifyCount returns how many times f was asked to verify a credential.
func verifyCount(f *fake) (n int) {
	for _, call := range f.calls {
		if call == "verify" {
			n++
		}
	}
	return n
}

// TestAuthenticatesFirst checks that a client without a valid credential gets
// 401. Any other answer may reveal only whether the gateway supports the path,
// the method and the format. The OpenAPI document reveals this to everyone.
func TestAuthenticatesFirst(t *testing.T) {
	const submit = "/sched/v0.0.42/job/submit"
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	tests := []struct {
		name, method, path, body string
		change                   func(*http.Request)
		known, unknown           int // expected status with and without a valid credential
	}{
		{"good", "GET", "/sched/v0.0.42/nodes", "", nil, 200, 401},
		{"HEAD", "HEAD", "/sched/v0.0.42/nodes", "", nil, 200, 401},
		{"no such node", "GET", "/sched/v0.0.42/node/nobody", "", nil, 404, 401},
		{"no job's number", "GET", "/sched/v0.0.42/job/x", "", nil, 404, 401},
		{"a parameter", "GET", "/sched/v0.0.42/nodes?update_time=soon", "", nil, 422, 401},
		{"a query that can't be read", "GET", "/sched/v0.0.42/nodes?a=%zz", "", nil, 400, 401},
		{"many parameters", "GET", "/sched/v0.0.42/nodes?" + strings.Repeat("&", maxParams), "", nil, 414, 401},
		{"no JSON", "POST", submit, "{", nil, 400, 401},
		{"no job", "POST", submit, "{}", nil, 422, 401},
		{"too large", "POST", submit, "{}", func(r *http.Request) { r.ContentLength = 50<<20 + 1 }, 413, 401},
		{"compressed", "POST", submit, "{}", header("Content-Encoding", "gzip"), 415, 401},
		{"a form", "POST", submit, "{}", header("Content-Type", "application/x-www-form-urlencoded"), 415, 401},
		{"no such path", "GET", "/sched/v0.0.42/nodez", "", nil, 404, 404},
		{"no such version", "GET", "/sched/v0.0.39/nodes", "", nil, 404, 404},
		{"no such method", "PUT", "/sched/v0.0.42/nodes", "{}", nil, 405, 405},
		{"no such format", "GET", "/sched/v0.0.42/nodes", "", header("Accept", "text/html"), 406, 406},
		{"OPTIONS", "OPTIONS", "/sched/v0.0.42/nodes", "", nil, 204, 204},
		{"the document", "GET", "/openapi/v3", "", nil, 200, 200},
		{"health", "GET", "/healthz", "", nil, 200, 200},
	}
	for _, tt := range tests {
		for _, client := range []struct {
			name   string
			change func(*http.Request, *fake)
			calls  []string // permitted calls of the daemon
		}{
			{"known", func(*http.Request, *fake) {}, nil},
			{"nobody", func(r *http.Request, _ *fake) { r.Header.Del("X-SCHED-USER-TOKEN") }, nil},
			{"garbage", func(r *http.Request, _ *fake) { r.Header.Set("X-SCHED-USER-TOKEN", "a.b.c") }, nil},
			{"forged", func(_ *http.Request, f *fake) { f.callErr = errForged }, []string{"verify"}},
		} {
			t.Run(tt.name+", "+client.name, func(t *testing.T) {
				f, want := demo(), tt.unknown
				r := request(tt.method, tt.path, tt.body)
				if client.name == "known" {
					want = tt.known
				} else if tt.body != "" {
					r.Body = untouched{t}
				}
				if tt.change != nil {
					tt.change(r)
				}
				client.change(r, f)
				w := serve(t, config(f), r)
				if w.Code != want {
					t.Fatalf("status %d, want %d: %s", w.Code, want, w.Body)
				}
				if want != http.StatusUnauthorized {
					if want == tt.unknown && len(f.calls) > 0 {
						t.Errorf("a daemon was asked: %v", f.calls)
					}
					return
				}
				if d := cmp.Diff(client.calls, f.calls); d != "" {
					t.Errorf("calls: %s", d)
				}
				if tt.body != "" && w.Header().Get("Connection") != "close" {
					t.Error("the connection stays open, with an unread body")
				}
			})
		}
	}
}

// TestWordCounts checks that the gateway relies on a daemon's verification of a
// token for one minute. It must ask the daemon again if a request names another
// user. A verification by one daemon must not count for requests to the other.
func TestWordCounts(t *testing.T) {
	ctl, dbd, clock := demo(), demo(), now
	cfg := config(ctl)
	cfg.Accounting = accounts{dbd}
	cfg.Auth.Now = func() time.Time { return clock }
	cfg.Authenticator = &auth.Authenticator{Now: cfg.Auth.Now}
	get := func(path, name string) int {
		r := request(http.MethodGet, path, "")
		if name != "" {
			r.Header.Set("X-SCHED-USER-NAME", name)
		}
		return serve(t, cfg, r).Code
	}
	const nodes, diag = "/sched/v0.0.42/nodes", "/scheddb/v0.0.42/diag"
	for range 100 {
		if code := get(nodes, ""); code != 200 {
			t.Fatalf("status %d", code)
		}
	}
	if n := verifyCount(ctl); n != 1 {
		t.Errorf("the controller verified tokens %d times for 100 requests", n)
	}
	steps := []struct {
		title      string
		path, name string
		after      time.Duration
		ctl, dbd   int // total number of verifications
	}{
		{"another name", nodes, "bob", 0, 2, 0},
		{"that name again", nodes, "bob", 0, 2, 0},
		{"and without it", nodes, "", 0, 2, 0},
		{"another daemon", diag, "", 0, 2, 1},
		{"with a name there", diag, "bob", 0, 2, 2},
		{"that daemon again", diag, "", 59 * time.Second, 2, 2},
		{"after the minute", nodes, "", time.Second, 3, 2},
		{"at the other one, too", diag, "", 0, 3, 3},
	}
	for _, s := range steps {
		clock = clock.Add(s.after)
		if code := get(s.path, s.name); code != 200 {
			t.Errorf("%s: status %d", s.title, code)
		}
		if verifyCount(ctl) != s.ctl || verifyCount(dbd) != s.dbd {
			t.Errorf("%s: verified %d times by the controller and %d by the accounting daemon, want %d and %d", s.title, verifyCount(ctl), verifyCount(dbd), s.ctl, s.dbd)
		}
	}
}

// TestVerificationCountsForSource checks that the daemons' limits count a token
// for the client's source until it is verified: neither for the user whom it
// names, because it may be forged, nor for itself, because a client could send as
// many forged tokens as it likes. Afterwards, it counts for the user.
func TestVerificationCountsForSource(t *testing.T) {
	for _, path := range []string{"/sched/v0.0.42/nodes", "/scheddb/v0.0.42/diag"} {
		f := demo()
		cfg := config(f)
		cfg.Accounting = accounts{f}
		cfg.Authenticator = &auth.Authenticator{Now: cfg.Auth.Now}
		r := request(http.MethodGet, path, "")
		r.Header.Set("X-SCHED-USER-NAME", "bob")
		r = r.WithContext(auth.WithPeer(r.Context(), auth.Peer{Network: "tcp", Addr: "192.0.2.7:1234"}))
		serve(t, cfg, r)
		var got []string
		for i, cred := range f.creds {
			got = append(got, f.calls[i]+" "+cred.ActAs+" "+cred.Holder)
		}
		if len(got) < 3 || got[0] != "verify  from 192.0.2.7" || got[1] != "verify bob from 192.0.2.7" || !strings.HasSuffix(got[2], " bob bob by alice") {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// TestOneDaemonDown checks that each request's credential is verified by the
// daemon that serves the request, even while the other daemon is down. If the
// daemon that serves the request is down or refuses the credential, the client
// must not be served, and the log must name no verified user.
func TestOneDaemonDown(t *testing.T) {
	for _, tt := range []struct {
		name       string
		ctl, dbd   error
		nodes, acc int
	}{
		{"none", nil, nil, 200, 200},
		{"the controller", errDown, nil, 503, 200},
		{"the accounting daemon", nil, errDown, 200, 503},
		{"both", errDown, errDown, 503, 503},
		{"the controller refuses", errForged, nil, 401, 200},
		{"the accounting daemon refuses", nil, errForged, 200, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			ctl, dbd := demo(), demo()
			ctl.callErr, dbd.callErr = tt.ctl, tt.dbd
			cfg := config(ctl)
			cfg.Accounting = accounts{dbd}
			cfg.Authenticator = new(auth.Authenticator)
			cfg.Authenticator.Now = cfg.Auth.Now
			cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
			for path, want := range map[string]int{"/sched/v0.0.42/nodes": tt.nodes, "/scheddb/v0.0.42/diag": tt.acc} {
				log.Reset()
				w := serve(t, cfg, request(http.MethodGet, path, ""))
				if w.Code != want {
					t.Errorf("%s: status %d, want %d", path, w.Code, want)
				}
				user, claimed := `user=alice`, false
				if want != 200 {
					user, claimed = `user=""`, true
				}
				if !strings.Contains(log.String(), user) || strings.Contains(log.String(), "unverified_user=alice") != claimed {
					t.Errorf("%s: log %s", path, &log)
				}
				if named := strings.Contains(w.Body.String(), "alice"); named != (want == 200) {
					t.Errorf("%s: the answer has the name: %v: %s", path, named, w.Body)
				}
			}
		})
	}
}

// TestAfterAChangeOfKey checks the case that a daemon gets a new key after it
// has verified a token. The gateway relies on the verification for one minute.
// But if the daemon refuses the token when serving a request, the gateway must
// forget the verification at once.
func TestAfterAChangeOfKey(t *testing.T) {
	f, clock := demo(), now
	cfg := config(f)
	cfg.Auth.Now = func() time.Time { return clock }
	cfg.Authenticator = &auth.Authenticator{Now: cfg.Auth.Now}
	do := func(method, path, body string) int { return serve(t, cfg, request(method, path, body)).Code }
	bad := func() int { return do(http.MethodPost, "/sched/v0.0.42/job/submit", "{") }
	if got := bad(); got != 400 {
		t.Fatalf("before: %d", got)
	}
	f.callErr = errForged
	clock = clock.Add(59 * time.Second)
	if got := bad(); got != 400 {
		t.Errorf("within the minute: %d", got)
	}
	clock = clock.Add(time.Second)
	if got := bad(); got != 401 {
		t.Errorf("after it: %d", got)
	}
	f.callErr = nil
	clock = clock.Add(time.Second) // the refusal is remembered for a second
	if got := bad(); got != 400 {
		t.Fatalf("with the old key again: %d", got)
	}
	f.callErr = errForged
	if got := do(http.MethodGet, "/sched/v0.0.42/nodes", ""); got != 401 {
		t.Errorf("the daemon's refusal became %d", got)
	}
	f.calls = nil
	if got := bad(); got != 401 || verifyCount(f) != 1 {
		t.Errorf("after its refusal: %d, asked %v", got, f.calls)
	}
}

// TestRefusedLater checks the case that a daemon has verified a credential, but
// refuses it when serving a request. The answer must be the same 401 as if the
// daemon had refused to verify the credential. The log must name no verified
// user.
func TestRefusedLater(t *testing.T) {
	var log bytes.Buffer
	f := demo()
	cfg := config(f)
	cfg.Authenticator = &auth.Authenticator{Now: cfg.Auth.Now}
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	serve(t, cfg, request(http.MethodGet, "/sched/v0.0.42/nodes", ""))
	f.callErr = errForged
	log.Reset()
	later := serve(t, cfg, request(http.MethodGet, "/sched/v0.0.42/nodes", ""))
	if !strings.Contains(log.String(), `user=""`) || !strings.Contains(log.String(), "unverified_user=alice") {
		t.Errorf("log %s", &log)
	}
	first := serve(t, cfg, request(http.MethodGet, "/sched/v0.0.42/nodes", ""))
	if d := cmp.Diff(first.Body.String(), later.Body.String()); d != "" || later.Code != 401 {
		t.Errorf("status %d: %s", later.Code, d)
	}
}

// slow is a controller whose calls take longer than a token's remaining
// lifetime.
type slow struct {
	*fake
	pass func()
}

func (s slow) Submit(ctx context.Context, cred model.Credential, desc *model.JobDesc) (*model.Submitted, error) {
	s.pass()
	return s.fake.Submit(ctx, cred, desc)
}

func (s slow) Jobs(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Job) error) (model.ListTimes, error) {
	n := 0
	return s.fake.Jobs(ctx, cred, q, func(j *model.Job) error {
		if n++; n == 100 {
			s.pass()
		}
		return each(j)
	})
}

// slowBody is a request body that takes longer to arrive than a token's
// remaining lifetime.
type slowBody struct {
	*strings.Reader
	pass func()
}

func (b slowBody) Read(p []byte) (int, error) {
	b.pass()
	return b.Reader.Read(p)
}

func (slowBody) Close() error { return nil }

// TestTokenEndsMeanwhile checks a token that expires while the daemon works,
// while a list is sent, or while a body arrives. The gateway checks the expiry
// only when a request begins, so it must complete the request. It must refuse
// the next one.
func TestTokenEndsMeanwhile(t *testing.T) {
	const submit, job = "/sched/v0.0.42/job/submit", `{"job":{"script":"x"}}`
	for _, tt := range []struct {
		name, method, path, body string
		bodyIsSlow               bool // the token expires while the body arrives
		want                     string
	}{
		{"the daemon is slow", "POST", submit, job, false, `"job_id":17`},
		{"the body is slow", "POST", submit, job, true, `"job_id":17`},
		{"a list goes out", "GET", "/sched/v0.0.42/jobs", "", false, `"job_id":1499`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock, passed := now, 0
			pass := func() { clock, passed = clock.Add(time.Hour), passed+1 }
			f := big()
			cfg := config(f)
			cfg.Controller = slow{f, pass}
			cfg.Auth.Now = func() time.Time { return clock }
			cfg.Authenticator = &auth.Authenticator{Now: cfg.Auth.Now}
			r := request(tt.method, tt.path, tt.body)
			if tt.bodyIsSlow {
				cfg.Controller, r.Body = f, slowBody{strings.NewReader(tt.body), pass}
			}
			w := serve(t, cfg, r)
			if passed == 0 || w.Code != 200 || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("time passed %d times; status %d: %.300s", passed, w.Code, w.Body)
			}
			if w := serve(t, cfg, request("GET", "/sched/v0.0.42/ping", "")); w.Code != 401 {
				t.Errorf("the next request: status %d", w.Code)
			}
		})
	}
}

// TestTokenElsewhere checks that a token is accepted in its own header and in
// Authorization: Bearer, but in no other header. No token may be logged.
func TestTokenElsewhere(t *testing.T) {
	const otherToken = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3OTUwMDA2MDAsImlhdCI6MTc5NTAwMDAwMCwic3VuIjoiYm9iIn0.c2lnbmF0dXJlc2lnbmF0dXJlc2lnbmF0dXJlc2lnbmE"
	headers := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	tests := []struct {
		name     string
		headers  http.Header
		status   int
		wantText string
	}{
		{"its header", headers("X-SCHED-USER-TOKEN", token), 200, ""},
		{"Bearer", headers("Authorization", "bearer "+token), 200, ""},
		{"a password for the proxy beside", headers("X-SCHED-USER-TOKEN", token, "Authorization", "Basic YTpi"), 200, ""},
		{"Cookie", headers("Cookie", "X-SCHED-USER-TOKEN="+token), 401, "no token"},
		{"X-Auth-Token", headers("X-Auth-Token", token), 401, "no token"},
		{"Proxy-Authorization", headers("Proxy-Authorization", "Bearer "+token), 401, "no token"},
		{"Basic", headers("Authorization", "Basic "+token), 401, "no token"},
		{"Token", headers("Authorization", "Token "+token), 401, "no token"},
		{"no scheme", headers("Authorization", token), 401, "no token"},
		{"Bearer with a colon", headers("Authorization", "Bearer: "+token), 401, "no token"},
		{"Bearer with another name", headers("Authorization", "Bearers "+token), 401, "no token"},
		{"Bearer, empty", headers("Authorization", "Bearer"), 401, "empty Bearer"},
		{"Bearer, quoted", headers("Authorization", `Bearer "`+token+`"`), 401, "token:"},
		{"Bearer and more", headers("Authorization", "Bearer "+token+", Bearer "+token), 401, "token:"},
		{"the variable's name", headers("SCHED_JWT", token), 401, "no token"},
		{"the name's header", headers("X-SCHED-USER-NAME", token), 401, "name"},
		{"underscores", http.Header{"X_sched_user_token": {token}}, 401, "underscores"},
		{"a trailer", headers("Trailer", "X-SCHED-USER-TOKEN"), 401, "no token"},
		{"two that differ", headers("X-SCHED-USER-TOKEN", token, "X-SCHED-USER-TOKEN", otherToken), 401, "2 headers"},
		{"two that differ in spelling", headers("X-SCHED-USER-TOKEN", token, "X-SLURM-USER-TOKEN", otherToken), 401, "2 headers"},
		{"twice the same", headers("X-SCHED-USER-TOKEN", token, "X-SCHED-USER-TOKEN", token), 401, "2 headers"},
		{"empty", headers("X-SCHED-USER-TOKEN", ""), 401, "empty X-Sched-User-Token"},
		{"empty beside Bearer", headers("X-SCHED-USER-TOKEN", "", "Authorization", "Bearer "+token), 401, "empty X-Sched-User-Token"},
		{"Bearer beside", headers("X-SCHED-USER-TOKEN", token, "Authorization", "Bearer "+otherToken), 401, "and a Bearer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			f := demo()
			cfg := config(f)
			cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			r := newRequest(http.MethodPost, "/sched/v0.0.42/job/submit", `{"job":{"script":"x","token":"`+token+`"},"X-SCHED-USER-TOKEN":"`+token+`"}`)
			if tt.status == 401 {
				r.Body = untouched{t}
			}
			for name, values := range tt.headers {
				r.Header[name] = values
			}
			r.Trailer = http.Header{"X-Sched-User-Token": {token}}
			w := serve(t, cfg, r)
			if w.Code != tt.status {
				t.Errorf("status %d, want %d: %s", w.Code, tt.status, w.Body)
			}
			if tt.status == 401 && len(f.calls) > 0 {
				t.Errorf("a daemon was asked: %v", f.calls)
			}
			if !strings.Contains(log.String(), tt.wantText) {
				t.Errorf("the log does not say %q: %s", tt.wantText, &log)
			}
			for _, part := range append(strings.Split(token, "."), strings.Split(otherToken, ".")...) {
				if strings.Contains(log.String(), part) || strings.Contains(w.Body.String(), part) {
					t.Errorf("%s: log %s, answer %s", part, &log, w.Body)
				}
			}
		})
	}
}

// TestLocalUserIsNotVerified checks that a client on a UNIX socket is served
// without verification by a daemon, because the kernel identifies the client.
func TestLocalUserIsNotVerified(t *testing.T) {
	f := demo()
	cfg := config(f)
	cfg.Auth = auth.Options{Local: true, JWT: true, UID: 20001, User: func() string { return "alice" }, Now: cfg.Auth.Now}
	peer := auth.Peer{Network: "unix", UID: 20001, GID: 20002, Verified: true}
	local := func(r *http.Request) *http.Request { return r.WithContext(auth.WithPeer(r.Context(), peer)) }
	if w := serve(t, cfg, local(newRequest("GET", "/sched/v0.0.42/nodes", ""))); w.Code != 200 || verifyCount(f) != 0 {
		t.Errorf("status %d, %v", w.Code, f.calls)
	}
	f.callErr = errForged // a token that is sent takes precedence
	if w := serve(t, cfg, local(request("GET", "/sched/v0.0.42/nodes", ""))); w.Code != 401 || verifyCount(f) != 1 {
		t.Errorf("with a forged token: status %d, %v", w.Code, f.calls)
	}
}

// TestVerificationFails checks the answer if an internal error keeps the daemon
// from verifying a token. The client must get no details, and the log must name
// no verified user.
func TestVerificationFails(t *testing.T) {
	f := demo()
	f.callErr = fmt.Errorf("dial: %w", errors.New("inner cause"))
	w := serve(t, config(f), request(http.MethodGet, "/sched/v0.0.42/nodes", ""))
	if text := w.Body.String(); w.Code != 500 || strings.Contains(text, "inner") || strings.Contains(text, "alice") {
		t.Errorf("status %d: %s", w.Code, text)
	}
}

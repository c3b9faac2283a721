package auth

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// register returns the path of an empty register of gateway tokens.
func register(t *testing.T, l *harness.Lab) string {
	t.Helper()
	path := filepath.Join(l.Dir, "tokens")
	harness.ReplaceFile(t, path, nil, 0o644)
	return path
}

// newGatewayToken creates a gateway token for the lab's owner.
func newGatewayToken(t *testing.T, l *harness.Lab, register, scopes string, args ...string) (token, id string) {
	t.Helper()
	out := l.Schedctl(t, append([]string{"token", "create", "--register", register, "--user", l.Owner, "--scope", scopes}, args...)...)
	token = strings.TrimSpace(strings.TrimPrefix(out, "SCHED_JWT="))
	text, err := os.ReadFile(register)
	harness.Must(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return token, strings.Fields(lines[len(lines)-1])[1]
}

// security returns the settings for a gateway whose user is SlurmUser, if this
// process is not root's.
func security() []string {
	if os.Geteuid() == 0 {
		return nil
	}
	return []string{"SCHEDRESTD_SECURITY=disable_user_check"}
}

// TestGatewayTokens checks what gateway tokens permit, who accepts them, and that
// one that is revoked ends everything that uses it, on each gateway with the same
// register.
func TestGatewayTokens(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t, func(l *harness.Lab) {
		l.AuthParameters = "jwt_key=" + l.Key() + ",disable_token_creation"
	})
	path := register(t, l)
	address := func() string { return fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)) }
	first, second, without := address(), address(), address()
	env := append(security(), "SCHEDRESTD_TOKEN_REGISTER="+path)
	auditLog := filepath.Join(l.Dir, "audit.log")
	gateway := l.StartGateway(t, append(slices.Clone(env), "SCHEDRESTD_AUDIT_LOG="+auditLog), first)
	l.StartGateway(t, env, second)
	l.StartGateway(t, security(), without)
	send := func(address, token, method, path, body string, headers ...string) harness.Answer {
		t.Helper()
		c := harness.NewClient(func() (net.Conn, error) { return net.Dial("tcp", address) })
		a, err := l.TryRequest(c, method, path, body, append(headers, "X-SCHED-USER-TOKEN: "+token)...)
		harness.Must(t, err)
		return a
	}
	const jobs, submit = "/sched/v0.0.43/jobs/", "/sched/v0.0.43/job/submit"
	reader, readerID := newGatewayToken(t, l, path, "compute.read", "--label", "monitor")
	creator, creatorID := newGatewayToken(t, l, path, "compute.read+compute.create+slurmdb.read")
	body := l.JobRequest("#!/bin/sh\n", nil)
	for _, tt := range []struct {
		name, address, token, method, path, body string
		headers                                  []string
		status                                   int
		missing                                  string // scope
	}{
		{"a list", first, reader, "GET", jobs, "", nil, 200, ""},
		{"another gateway", second, reader, "GET", jobs, "", nil, 200, ""},
		{"a gateway without the register", without, reader, "GET", jobs, "", nil, 401, ""},
		{"no scope for a submission", first, reader, "POST", submit, body, nil, 403, "compute.create"},
		{"no scope for accounting", first, reader, "GET", "/scheddb/v0.0.43/users/", "", nil, 403, "slurmdb.read"},
		{"a submission", first, creator, "POST", submit, body, nil, 200, ""},
		{"accounting", first, creator, "GET", "/scheddb/v0.0.43/users/", "", nil, 200, ""},
		{"the own name", first, reader, "GET", jobs, "", []string{"X-SCHED-USER-NAME: " + l.Owner}, 200, ""},
		{"another name", first, reader, "GET", jobs, "", []string{"X-SCHED-USER-NAME: daemon"}, 401, ""},
		{"a changed signature", first, reader[:len(reader)-4] + "AAAA", "GET", jobs, "", nil, 401, ""},
		{"the payload of another token", first, strings.Join([]string{strings.Split(creator, ".")[0], strings.Split(creator, ".")[1], strings.Split(reader, ".")[2]}, "."), "GET", jobs, "", nil, 401, ""},
	} {
		a := send(tt.address, tt.token, tt.method, tt.path, tt.body, tt.headers...)
		if a.Status != tt.status || tt.missing != "" && !strings.Contains(a.Header.Get("WWW-Authenticate"), `scope="`+tt.missing+`"`) {
			t.Errorf("%s: %d %.300s", tt.name, a.Status, a.Text)
		}
	}

	harness.Eventually(t, "the audit log has the token's id", func() bool {
		text, err := os.ReadFile(auditLog)
		harness.Must(t, err)
		return strings.Contains(string(text), `"gateway_token":"`+creatorID+`"`) && !strings.Contains(string(text), readerID)
	})

	// Two gateways with the same files say so.
	line := func(address string) string {
		a := send(address, l.OwnToken, "GET", "/readyz?verbose", "")
		_, rest, _ := strings.Cut(a.Text, "gateway tokens: ")
		text, _, _ := strings.Cut(rest, "\n")
		return text
	}
	harness.Eventually(t, "both gateways have the same register", func() bool {
		a, b := line(first), line(second)
		return a != "" && a == b && !strings.Contains(a, "none")
	})

	// A revocation ends waits and streams, and only those of the token.
	type stream struct {
		answer *http.Response
		ended  chan string // what it has sent
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	follow := func(address, token string) stream {
		r, err := http.NewRequestWithContext(ctx, "GET", "http://"+address+jobs, nil)
		harness.Must(t, err)
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("X-SCHED-USER-TOKEN", token)
		answer, err := http.DefaultClient.Do(r)
		harness.Must(t, err)
		if answer.StatusCode != 200 {
			t.Fatalf("stream: %d", answer.StatusCode)
		}
		s := stream{answer, make(chan string, 1)}
		go func() {
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			s.ended <- string(text)
		}()
		return s
	}
	waited := make(chan harness.Answer, 1)
	const unchanging = "/sched/v0.0.43/reservations/" // there are none, but the job changes
	tag := send(first, reader, "GET", unchanging, "").Header.Get("ETag")
	go func() {
		c := harness.NewClient(func() (net.Conn, error) { return net.Dial("tcp", first) })
		a, _ := l.TryRequest(c, "GET", unchanging+"?wait=10m", "", "X-SCHED-USER-TOKEN: "+reader, "If-None-Match: "+tag)
		waited <- a
	}()
	readers, other := []stream{follow(first, reader), follow(second, reader)}, follow(first, creator)
	l.Schedctl(t, "token", "revoke", "--register", path, readerID)
	begun := time.Now()
	for _, s := range readers {
		if text := <-s.ended; !strings.Contains(text, "event: end\ndata: {\"reason\":\"the gateway token is no longer accepted\"}") {
			t.Errorf("the stream ended with %q", text[max(0, len(text)-300):])
		}
	}
	if a := <-waited; a.Status != 401 {
		t.Errorf("the wait ended with %d %.300s", a.Status, a.Text)
	}
	t.Logf("all ended within %v", time.Since(begun))
	for _, address := range []string{first, second} {
		// The worker that has not ended them asks the keeper a moment later.
		harness.Eventually(t, "the revoked token is refused", func() bool { return send(address, reader, "GET", jobs, "").Status == 401 })
		if a := send(address, creator, "GET", jobs, ""); a.Status != 200 {
			t.Errorf("another token gets %d", a.Status)
		}
	}
	select {
	case text := <-other.ended:
		t.Errorf("the stream of another token has ended: %q", text[max(0, len(text)-300):])
	default:
	}
	if list := l.Schedctl(t, "token", "list", "--register", path); strings.Count(list, " revoked ") != 1 || strings.Count(list, " valid ") != 1 || !strings.Contains(list, "monitor") {
		t.Errorf("the list is:\n%s", list)
	}

	// A register that can't be used permits nothing, and the next right one does.
	text, err := os.ReadFile(path)
	harness.Must(t, err)
	status := func(address, token string) int { // 0 if a revocation has cut the answer off
		c := harness.NewClient(func() (net.Conn, error) { return net.Dial("tcp", address) })
		a, _ := l.TryRequest(c, "GET", jobs, "", "X-SCHED-USER-TOKEN: "+token)
		return a.Status
	}
	harness.ReplaceFile(t, path, append(text, "revoke everything\n"...), 0o644)
	harness.Eventually(t, "a wrong register is noticed", func() bool { return status(first, creator) == 503 && status(second, creator) == 503 })
	if text := <-other.ended; !strings.Contains(text, "event: end") {
		t.Errorf("the stream ended with %q", text[max(0, len(text)-300):])
	}
	workers := gateway.Workers()
	harness.Must(t, syscall.Kill(gateway.PID(), syscall.SIGHUP))
	harness.Eventually(t, "it does not prevent a reload", func() bool {
		return slices.ContainsFunc(gateway.Workers(), func(pid int) bool { return !slices.Contains(workers, pid) }) &&
			send(first, l.OwnToken, "GET", jobs, "").Status == 200 && status(first, creator) == 503
	})
	harness.ReplaceFile(t, path, text, 0o644)
	harness.Eventually(t, "the right register is noticed", func() bool { return status(first, creator) == 200 && status(second, creator) == 200 })

	// All tokens of a user, and then all.
	l.Schedctl(t, "token", "revoke", "--register", path, "--user", l.Owner)
	harness.Eventually(t, "the user's tokens are revoked", func() bool { return status(first, creator) == 401 && status(second, creator) == 401 })
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // tokens of the same second are revoked, too
	later, _ := newGatewayToken(t, l, path, "compute.read", "--for", "1h")
	if got := status(first, later); got != 200 {
		t.Errorf("a later token gets %d", got)
	}
	l.Schedctl(t, "token", "revoke", "--register", path, "--all")
	harness.Eventually(t, "all tokens are revoked", func() bool { return status(first, later) == 401 && status(second, later) == 401 })
	if a := send(first, l.OwnToken, "GET", jobs, ""); a.Status != 200 {
		t.Errorf("the user's own token gets %d", a.Status)
	}
}

// TestGatewayTokenExpires checks that a stream ends with its gateway token, and
// that the token is refused then.
func TestGatewayTokenExpires(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t, func(l *harness.Lab) {
		l.AuthParameters = "jwt_key=" + l.Key() + ",max_token_lifespan=3600,disable_token_creation"
	})
	path := register(t, l)
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	l.StartGateway(t, append(security(), "SCHEDRESTD_TOKEN_REGISTER="+path), address)
	token, _ := newGatewayToken(t, l, path, "compute.read", "--for", "50s")
	ask := func(accept string) (int, string) {
		r, err := http.NewRequest("GET", "http://"+address+"/sched/v0.0.43/jobs/", nil)
		harness.Must(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Accept", accept)
		a, err := http.DefaultClient.Do(r)
		harness.Must(t, err)
		defer a.Body.Close()
		text, _ := io.ReadAll(a.Body)
		return a.StatusCode, string(text)
	}
	if status, text := ask("text/event-stream"); status != 200 || !strings.Contains(text, "the token has expired") {
		t.Errorf("%d, the stream ended with %q", status, text[max(0, len(text)-300):])
	}
	if status, text := ask("application/json"); status != 401 {
		t.Errorf("the token gets %d after its end: %.300s", status, text)
	}
}

// TestGatewayTokenSettings checks that a gateway does not start with a register that
// can't be used, or that others may change.
func TestGatewayTokenSettings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ parameters, register, want string }{
		"no register":         {"disable_token_creation", "missing", "no such file"},
		"a wrong line":        {"disable_token_creation", "wrong", "line 1"},
		"others may write it": {"disable_token_creation", "open", "lets other users write it"},
	} {
		l := harness.NewDaemons(t, func(l *harness.Lab) { l.AuthParameters = "jwt_key=" + l.Key() + "," + tt.parameters })
		path := filepath.Join(l.Dir, "tokens")
		switch tt.register {
		case "wrong":
			harness.ReplaceFile(t, path, []byte("revoke it\n"), 0o644)
		case "open":
			harness.ReplaceFile(t, path, nil, 0o666)
			harness.Must(t, os.Chmod(path, 0o666))
		}
		out := l.FailsToStart(t, nil, []string{"SCHEDRESTD_SECURITY=disable_user_check", "SCHEDRESTD_TOKEN_REGISTER=" + path}, "-f", l.Conf(), fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)))
		if !strings.Contains(out, tt.want) {
			t.Errorf("%s: %s", name, out)
		}
	}
}

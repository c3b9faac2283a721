package auth

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"schedrestd/integration/harness"
)

// A tokenLab has two gateways with the same register of gateway tokens.
type tokenLab struct {
	*harness.Lab
	register, auditLog string
	first, second      string // addresses
	gateway            *harness.Gateway
	alice, bob         string // users
	tokens             map[string]string
}

func newTokenLab(t *testing.T, env ...string) *tokenLab {
	harness.NeedRoot(t)
	alice, bob := harness.TwoUsers(t)
	l := &tokenLab{alice: alice.Name, bob: bob.Name, tokens: map[string]string{}}
	l.Lab = harness.NewDaemons(t, func(l *harness.Lab) {
		l.AuthParameters = "jwt_key=" + l.Key() + ",disable_token_creation"
	})
	l.register, l.auditLog = register(t, l.Lab), filepath.Join(l.Dir, "audit.log")
	l.first, l.second = fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	env = append([]string{"SCHEDRESTD_TOKEN_REGISTER=" + l.register, "SCHEDRESTD_MIN_UID=1"}, env...) // the users are users of the system
	l.gateway = l.StartGateway(t, append(slices.Clone(env), "SCHEDRESTD_AUDIT_LOG="+l.auditLog), l.first)
	l.StartGateway(t, env, l.second)
	for _, user := range []string{l.alice, l.bob, "root"} {
		l.tokens[user] = l.UserToken(user)
	}
	return l
}

// send sends a request with a token.
func (l *tokenLab) send(t *testing.T, address, token, method, path, body string, headers ...string) harness.Answer {
	t.Helper()
	c := harness.NewClient(func() (net.Conn, error) { return net.Dial("tcp", address) })
	a, err := l.TryRequest(c, method, "/sched/v0.0.43/"+path, body, append(headers, "X-SCHED-USER-TOKEN: "+token)...)
	harness.Must(t, err)
	return a
}

// create creates a token, at the first gateway.
func (l *tokenLab) create(t *testing.T, user, body string) (jwt, id string) {
	t.Helper()
	a := l.send(t, l.first, l.tokens[user], "POST", "tokens/", body).Want(t, 200)
	jwt, _ = a.Get("jwt").(string)
	id, _ = a.Get("token", "id").(string)
	return jwt, id
}

// states returns the state of each token in a user's list, by id.
func (l *tokenLab) states(t *testing.T, token string) map[string]string {
	t.Helper()
	states := map[string]string{}
	for _, entry := range l.send(t, l.second, token, "GET", "tokens/", "").Want(t, 200).List("tokens") {
		record := entry.(map[string]any)
		states[fmt.Sprint(record["id"])] = fmt.Sprint(record["user_name"], " ", record["scopes"], " ", record["label"], " ", record["revoked"])
	}
	return states
}

// refusedSoon checks that both gateways refuse a token, although it was revoked only
// at the first one.
func (l *tokenLab) refusedSoon(t *testing.T, token string) {
	t.Helper()
	for _, address := range []string{l.first, l.second} {
		harness.Eventually(t, "the token is refused", func() bool { return l.send(t, address, token, "GET", "jobs/", "").Status == 401 })
	}
}

// TestManageTokens creates, lists and revokes gateway tokens with requests.
func TestManageTokens(t *testing.T) {
	t.Parallel()
	l := newTokenLab(t)
	alice := l.tokens[l.alice]

	// A token does what its scopes say, at both gateways.
	ci, ciID := l.create(t, l.alice, `{"scopes": ["compute.read", "compute.create"], "label": "ci"}`)
	for _, address := range []string{l.first, l.second} {
		harness.Eventually(t, "the token is accepted", func() bool { return l.send(t, address, ci, "GET", "jobs/", "").Status == 200 })
	}
	if a := l.send(t, l.first, ci, "DELETE", "job/1", ""); a.Status != 403 {
		t.Errorf("without the scope compute.cancel: %d", a.Status)
	}
	other, otherID := l.create(t, l.alice, `{"scopes": ["compute.read"]}`)
	bobs, bobsID := l.create(t, l.bob, `{"scopes": ["compute.read"]}`)
	want := map[string]string{ciID: l.alice + " [compute.read compute.create] ci false", otherID: l.alice + " [compute.read]  false"}
	if got := l.states(t, alice); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the list is %v, want %v", got, want)
	}
	if got := l.states(t, ci); fmt.Sprint(got) != fmt.Sprint(map[string]string{ciID: want[ciID]}) {
		t.Errorf("the list of a gateway token is %v", got)
	}

	// It ends with the token that it was made with.
	var payload struct{ Exp, Iat float64 }
	a := l.send(t, l.first, alice, "POST", "tokens/", `{"scopes": ["compute.read"], "lifetime": 31622400}`).Want(t, 200)
	text, err := base64.RawURLEncoding.DecodeString(strings.Split(alice, ".")[1])
	harness.Must(t, err)
	harness.Must(t, json.Unmarshal(text, &payload))
	if got := a.Get("token", "expires", "number"); got != payload.Exp || !strings.Contains(fmt.Sprint(a.List("warnings")), "the token ends after") {
		t.Errorf("it ends at %v, and the token of the request at %v; warnings %v", got, payload.Exp, a.List("warnings"))
	}
	long, _ := a.Get("jwt").(string)

	// Refusals. None of them writes to the register.
	before, err := os.ReadFile(l.register)
	harness.Must(t, err)
	for _, tt := range []struct {
		name, token, method, path, body string
		status                          int
		text                            string
	}{
		{"a gateway token creates one", ci, "POST", "tokens/", `{"scopes": ["compute.read"]}`, 403, "only itself"},
		{"a gateway token revokes another of its user", ci, "DELETE", "token/" + otherID, "", 403, "only itself"},
		{"a gateway token revokes all of its user", ci, "DELETE", "tokens/", "", 403, "only itself"},
		{"a user revokes another user's", alice, "DELETE", "token/" + bobsID, "", 404, "no gateway token"},
		{"a user revokes one that does not exist", alice, "DELETE", "token/" + strings.Repeat("A", 26), "", 404, "no gateway token"},
		{"root revokes a user's", l.tokens["root"], "DELETE", "token/" + bobsID, "", 404, "no gateway token"},
		{"root creates one", l.tokens["root"], "POST", "tokens/", `{"scopes": ["compute.read"]}`, 403, "no gateway tokens are created for this user"},
		{"self of a token of the cluster", alice, "DELETE", "token/self", "", 422, "is none"},
		{"not an id", alice, "DELETE", "token/x", "", 422, "26 characters"},
		{"a line break in the id", alice, "DELETE", "token/AAAAAAAAAAAAAAAAAAAAAAAAAA%0Arevoke%20all", "", 422, ""},
		{"no scope", alice, "POST", "tokens/", `{"scopes": []}`, 422, "scope"},
		{"no scopes", alice, "POST", "tokens/", `{}`, 422, "scopes"},
		{"a scope that does not exist", alice, "POST", "tokens/", `{"scopes": ["compute.read", "root"]}`, 422, "is not a scope"},
		{"two scopes in one", alice, "POST", "tokens/", `{"scopes": ["compute.read cluster.admin"]}`, 422, "is not a scope"},
		{"a line break in the label", alice, "POST", "tokens/", `{"scopes": ["compute.read"], "label": "x\nrevoke all before 2100-01-01T00:00:00Z"}`, 422, "label"},
		{"a longer label", alice, "POST", "tokens/", `{"scopes": ["compute.read"], "label": "` + strings.Repeat("x", 65) + `"}`, 422, "label"},
		{"no time", alice, "POST", "tokens/", `{"scopes": ["compute.read"], "lifetime": 0}`, 422, "366 days"},
		{"more than a year", alice, "POST", "tokens/", `{"scopes": ["compute.read"], "lifetime": 31622401}`, 422, "366 days"},
		{"no object", alice, "POST", "tokens/", `[]`, 422, ""},
	} {
		a := l.send(t, l.first, tt.token, tt.method, tt.path, tt.body)
		if a.Status != tt.status || !strings.Contains(a.Text, tt.text) {
			t.Errorf("%s: %d %.400s", tt.name, a.Status, a.Text)
		}
	}
	for _, a := range []harness.Answer{l.send(t, l.first, l.tokens["root"], "POST", "tokens/", `{"scopes": ["compute.read"]}`, "X-SCHED-USER-NAME: "+l.bob),
		l.send(t, l.first, l.tokens["root"], "DELETE", "tokens/", "", "X-SCHED-USER-NAME: "+l.bob)} {
		if a.Status != 403 || !strings.Contains(a.Text, "another user") {
			t.Errorf("root as another user: %d %.400s", a.Status, a.Text)
		}
	}
	if after, err := os.ReadFile(l.register); err != nil || string(after) != string(before) {
		t.Errorf("refused requests have changed the register: %v\n%s", err, after)
	}

	// A token revokes itself, whatever its scopes; then it can do nothing more.
	stream := harness.Follow(t, "http://"+l.second+"/sched/v0.0.43/jobs/", "X-SCHED-USER-TOKEN: "+ci)
	l.send(t, l.first, ci, "DELETE", "token/self", "").Want(t, 200)
	l.refusedSoon(t, ci)
	stream.Await("end", "the gateway token is no longer accepted")
	if a := l.send(t, l.first, ci, "DELETE", "token/self", ""); a.Status != 401 {
		t.Errorf("a second time: %d", a.Status)
	}
	// A token of the cluster revokes one by its id, and may repeat that.
	for range 2 {
		l.send(t, l.first, alice, "DELETE", "token/"+otherID, "").Want(t, 200)
	}
	l.refusedSoon(t, other)
	text, err = os.ReadFile(l.register)
	if harness.Must(t, err); strings.Count(string(text), "revoke token ") != 2 {
		t.Errorf("the register is\n%s", text)
	}
	harness.Eventually(t, "the second gateway lists them as revoked", func() bool {
		s := l.states(t, alice)
		return strings.HasSuffix(s[ciID], "true") && strings.HasSuffix(s[otherID], "true")
	})
	// All of the user, and none of another one.
	l.send(t, l.first, alice, "DELETE", "tokens/", "").Want(t, 200)
	l.refusedSoon(t, long)
	for _, address := range []string{l.first, l.second} {
		if a := l.send(t, address, bobs, "GET", "jobs/", ""); a.Status != 200 {
			t.Errorf("another user's token gets %d", a.Status)
		}
	}
	harness.Eventually(t, "all are revoked at most once a minute", func() bool { return l.send(t, l.first, alice, "DELETE", "tokens/", "").Status == 429 })
	// One that is created in the same second is valid.
	again, _ := l.create(t, l.alice, `{"scopes": ["compute.read"]}`)
	if a := l.send(t, l.first, again, "GET", "jobs/", ""); a.Status != 200 {
		t.Errorf("a token that was created after the revocation gets %d", a.Status)
	}

	harness.Eventually(t, "the audit log has lines about all of it", func() bool {
		log, err := os.ReadFile(l.auditLog)
		harness.Must(t, err)
		for _, part := range []string{`"method":"POST","route":"tokens/","fields":"scopes label"`, `"result":"` + ciID + ` scope=compute.read+compute.create until=`,
			`"gateway_token":"` + ciID + `","method":"DELETE","route":"token/{token_id}","object":"` + ciID + `"`, `"method":"DELETE","route":"tokens/","object":"all of the user"`} {
			if !strings.Contains(string(log), part) {
				return false
			}
		}
		return true
	})
	if strings.Contains(l.gateway.Logged(), again) || strings.Contains(l.gateway.Logged(), "level=ERROR") {
		t.Errorf("the log has a token or an error:\n%s", l.gateway.Logged())
	}
}

// TestRegisterOfRequests checks what requests do to a register that is full, replaced
// or not writable.
func TestRegisterOfRequests(t *testing.T) {
	t.Parallel()
	l := newTokenLab(t, "SCHEDRESTD_TOKEN_LIFETIME=720h")
	alice := l.tokens[l.alice]
	jwt, _ := l.create(t, l.alice, `{"scopes": ["compute.read"]}`)
	if a := l.send(t, l.first, alice, "POST", "tokens/", `{"scopes": ["compute.read"]}`).Want(t, 200); a.Get("token", "expires", "number").(float64)-a.Get("token", "issued", "number").(float64) != 30*24*3600 {
		t.Errorf("SCHEDRESTD_TOKEN_LIFETIME has no effect: %s", a.Text)
	}

	// An editor replaces the register: the gateway appends to the new one.
	text, err := os.ReadFile(l.register)
	harness.Must(t, err)
	harness.ReplaceFile(t, l.register, append([]byte("# edited\n"), text...), 0o644)
	harness.Eventually(t, "a token is created in the new register", func() bool {
		return l.send(t, l.first, alice, "POST", "tokens/", `{"scopes": ["compute.read"], "label": "after"}`).Status == 200
	})
	if text, err := os.ReadFile(l.register); err != nil || strings.Count(string(text), "label=after") != 1 {
		t.Errorf("%v, the register is\n%s", err, text)
	}

	// Others append at the same time; no line is lost or mixed with another.
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 10 {
			l.Schedctl(t, "token", "create", "--register", l.register, "--user", l.bob, "--scope", "compute.read", "--label", "by-hand")
		}
	}()
	for range 10 {
		l.create(t, l.alice, `{"scopes": ["compute.read"], "label": "by-request"}`)
	}
	<-done
	if text, err = os.ReadFile(l.register); err != nil || strings.Count(string(text), "label=by-hand\n") != 10 || strings.Count(string(text), "label=by-request\n") != 10 {
		t.Errorf("%v, the register is\n%s", err, text)
	}

	// A user who may read the file can't prevent a revocation by locking it.
	f, err := os.Open(l.register)
	harness.Must(t, err)
	harness.Must(t, syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_RDLCK}))
	l.send(t, l.first, jwt, "DELETE", "token/self", "").Want(t, 200)
	f.Close()

	// A full register still takes revocations.
	jwt, id := l.create(t, l.alice, `{"scopes": ["compute.read"]}`)
	text, err = os.ReadFile(l.register)
	harness.Must(t, err)
	full := append(text, strings.Repeat("#"+strings.Repeat("x", 1022)+"\n", (4<<20-200<<10-len(text))/1024)...)
	harness.ReplaceFile(t, l.register, full, 0o644)
	harness.Eventually(t, "no token is created in a full register", func() bool {
		a := l.send(t, l.first, alice, "POST", "tokens/", `{"scopes": ["compute.read"]}`)
		return a.Status == 503 && strings.Contains(a.Text, "has no room")
	})
	l.send(t, l.first, jwt, "DELETE", "token/self", "").Want(t, 200)
	harness.Eventually(t, "the token is listed as revoked", func() bool { return strings.HasSuffix(l.states(t, alice)[id], "true") })

	// The gateway has no capability to write a file that root may only read.
	harness.ReplaceFile(t, l.register, text, 0o444)
	harness.Eventually(t, "the register can't be written", func() bool {
		a := l.send(t, l.first, alice, "POST", "tokens/", `{"scopes": ["compute.read"]}`)
		return a.Status == 503 && strings.Contains(a.Text, "can't write the register")
	})
	if log := l.gateway.Logged(); !strings.Contains(log, "register of gateway tokens can't be written") {
		t.Errorf("the log is\n%s", log)
	}
}

// TestTokenRecipes runs the scripts for CI jobs in GATEWAY-TOKENS.md, and checks that
// their tokens have revoked themselves.
func TestTokenRecipes(t *testing.T) {
	t.Parallel()
	l := newTokenLab(t)
	home := filepath.Join(l.Dir, "home")
	harness.Must(t, os.Mkdir(home, 0o755))
	user, _ := harness.LookupAccount(l.alice)
	harness.Must(t, os.Chown(home, int(user.UID), int(user.GID)))
	for i, name := range []string{"ci-job.sh", "ci-job-curl.sh"} {
		if name == "ci-job-curl.sh" {
			harness.FindProgram(t, "curl", "curl")
		}
		cmd := exec.Command("sh", "-c", harness.CodeBlock(t, "GATEWAY-TOKENS.md", name), name, "true")
		cmd.Dir = home
		cmd.Env = []string{"PATH=" + harness.Bin + ":/usr/bin:/bin", "SCHED_URL=http://" + l.first, "SCHED_JWT=" + l.tokens[l.alice], "HOME=/"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		text, err := os.ReadFile(l.register)
		harness.Must(t, err)
		if n := i + 1; strings.Count(string(text), "\nrevoke token ") != n || strings.Count(string(text), " scope=compute.read+compute.create ") != n || strings.Count(string(text), " label=ci\n") != n {
			t.Errorf("%s: the register is\n%s", name, text)
		}
	}
	if jobs := l.send(t, l.first, l.tokens[l.alice], "GET", "jobs/", "").Want(t, 200).List("jobs"); len(jobs) != 2 {
		t.Errorf("%d jobs", len(jobs))
	}

	// The same commands, with other arguments.
	schedctl := func(token string, args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(harness.Bin, "schedctl"), append([]string{"token"}, args...)...)
		cmd.Env = []string{"SCHED_URL=http://" + l.first, "SCHED_JWT=" + token}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	alice := l.tokens[l.alice]
	out, err := schedctl(alice, "create", "--scope", "compute.read")
	token, _, _ := strings.Cut(strings.TrimPrefix(out, "SCHED_JWT="), "\n")
	if err != nil || !strings.Contains(out, "valid until") {
		t.Fatalf("%v: %s", err, out)
	}
	list, err := schedctl(alice, "list")
	if err != nil || strings.Count(list, " revoked ") != 2 || strings.Count(list, " valid ") != 1 {
		t.Errorf("%v: %s", err, list)
	}
	for _, tt := range []struct {
		token, want string
		args        []string
	}{
		{token, "only itself", []string{"create", "--scope", "compute.read"}},
		{alice, "is none", []string{"revoke", "--self"}},
		{alice, "your own", []string{"revoke", "--user", l.bob}},
		{alice, "is for root", []string{"revoke", "--all"}},
		{alice, "are for root", []string{"create", "--scope", "compute.read", "--user", l.bob}},
		{alice, "exclude each other", []string{"list", "--register", l.register, "--url", "http://" + l.first}},
		{alice, "the register has no gateway token", []string{"revoke", strings.Repeat("A", 26)}},
	} {
		if out, err := schedctl(tt.token, tt.args...); err == nil || !strings.Contains(out, tt.want) {
			t.Errorf("%q: %v: %s", tt.args, err, out)
		}
	}
	if out, err := schedctl(alice, "revoke", "--user", l.alice); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	l.refusedSoon(t, token)
}

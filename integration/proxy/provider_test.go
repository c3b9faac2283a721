package proxy

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// provider is an identity provider with one realm and the features that
// docs/IDENTITY-PROVIDER.md uses.
type provider struct {
	t      *testing.T
	server *httptest.Server
	ca     string // file with its certificate
	user   string

	mu             sync.Mutex
	keys           map[string]*rsa.PrivateKey // by kid
	published      []string                   // kids in the key set
	signingKid     string                     // kid of new tokens
	keySetOverride string                     // served instead of the key set, if not empty
	down           bool
	deniesLogin    bool // the user denies the login on the other device
	polls          int  // number of polls since the last login on another device began
}

const realm = "https://id.example.org/realms/hpc"

// newProvider starts a provider that knows one user, with the password
// harness.Password.
func newProvider(t *testing.T, user string) *provider {
	t.Helper()
	p := &provider{t: t, user: user, keys: map[string]*rsa.PrivateKey{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /realms/hpc/protocol/openid-connect/certs", p.certs)
	mux.HandleFunc("POST /realms/hpc/protocol/openid-connect/auth/device", p.device)
	mux.HandleFunc("POST /realms/hpc/protocol/openid-connect/token", p.token)
	p.server = httptest.NewTLSServer(mux)
	t.Cleanup(p.server.Close)
	p.ca = filepath.Join(t.TempDir(), "ca.pem")
	harness.Must(t, os.WriteFile(p.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw}), 0o644))
	return p
}

// rotate publishes only the keys with the given ids. It first creates those
// that do not exist yet. The last of these keys signs new tokens.
func (p *provider) rotate(kids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kid := range kids {
		if p.keys[kid] == nil {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			harness.Must(p.t, err)
			p.keys[kid] = key
		}
	}
	p.published, p.signingKid = kids, kids[len(kids)-1]
}

// update calls change while it holds p.mu, so that no request reads the fields
// while change modifies them.
func (p *provider) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *provider) certs(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.down:
		http.Error(w, "<html>out of order", http.StatusServiceUnavailable)
	case p.keySetOverride != "":
		fmt.Fprint(w, p.keySetOverride)
	default:
		var keys []string
		for _, kid := range p.published {
			keys = append(keys, harness.PublicJWK(&p.keys[kid].PublicKey, kid))
		}
		fmt.Fprintf(w, `{"keys":[%s]}`, strings.Join(keys, ","))
	}
}

// device begins a login on another device (RFC 8628, 3.1).
func (p *provider) device(w http.ResponseWriter, r *http.Request) {
	p.update(func() { p.polls = 0 })
	json.NewEncoder(w).Encode(map[string]any{"device_code": "Gm+Rh/mn=", "user_code": "WDJB-MJHT", "verification_uri": realm + "/device",
		"verification_uri_complete": realm + "/device?user_code=WDJB-MJHT", "expires_in": 60, "interval": 0})
}

// token issues a token to a user who sends the password or logs in on another
// device. A login on another device succeeds at the third poll.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	fail := func(code string) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":%q,"error_description":"said in more words"}`, code)
	}
	p.mu.Lock()
	down, denied := p.down, p.deniesLogin
	p.mu.Unlock()
	switch {
	case down:
		http.Error(w, "<html>out of order", http.StatusServiceUnavailable)
		return
	case r.PostFormValue("client_id") != "sched":
		fail("invalid_client")
		return
	case r.PostFormValue("grant_type") == "password":
		if r.PostFormValue("username") != p.user || r.PostFormValue("password") != harness.Password {
			fail("invalid_grant")
			return
		}
	case denied:
		fail("access_denied")
		return
	case r.PostFormValue("grant_type") == "urn:ietf:params:oauth:grant-type:device_code" && r.PostFormValue("device_code") == "Gm+Rh/mn=":
		p.mu.Lock()
		p.polls++
		pending := p.polls < 3
		p.mu.Unlock()
		if pending {
			fail("authorization_pending")
			return
		}
	default:
		fail("unsupported_grant_type")
		return
	}
	token := p.sign(`"preferred_username":"` + p.user + `"`)
	json.NewEncoder(w).Encode(map[string]any{"access_token": "of another realm", "id_token": token, "token_type": "Bearer", "expires_in": 300})
}

// sign makes a token that contains the given claims and the other claims of
// Keycloak's tokens.
func (p *provider) sign(claims string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now().Unix()
	return harness.SignToken(p.t, p.keys[p.signingKid], `{"alg":"RS256","typ":"JWT","kid":"`+p.signingKid+`"}`, fmt.Sprintf(`{"exp":%d,"iat":%d,"auth_time":0,
		"iss":%q,"aud":"sched","sub":"3f1d4e8a","typ":"ID","azp":"sched","email_verified":true,"name":"Ada Lovelace",%s}`, now+300, now, realm, claims))
}

// providerLab is a lab whose users log in at a provider.
type providerLab struct {
	*harness.Lab
	*provider
	t *testing.T
}

// run runs the shell commands in before, and then a block of the page. Their
// standard input is the text input. It returns the output, followed by the
// value of SCHED_JWT.
func (i *providerLab) run(block, before, input string) (string, error) {
	i.t.Helper()
	text := harness.CodeBlock(i.t, "IDENTITY-PROVIDER.md", block)
	if strings.HasPrefix(block, "by ") {
		text = harness.CodeBlock(i.t, "IDENTITY-PROVIDER.md", "at first") + text
	}
	for old, replacement := range map[string]string{"https://id.example.org": i.server.URL, "/etc/sched/": i.Dir + "/etc/", "http://127.0.0.1:6820": i.URL} {
		text = strings.ReplaceAll(text, old, replacement)
	}
	cmd := exec.Command("bash", "-c", before+"\n"+text+"\nstatus=$?\nprintf '\\n%s' \"${SCHED_JWT-}\"\nexit $status")
	cmd.Env = []string{"PATH=" + harness.Bin + ":/usr/bin:/bin", "SCHED_CONF=" + i.Conf(), "CURL_CA_BUNDLE=" + i.ca, "USER=" + i.provider.user}
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// fetchKeySet runs the script that fetches the key set.
func (i *providerLab) fetchKeySet() {
	i.t.Helper()
	if out, err := i.run("/etc/cron.hourly/sched-jwks", "", ""); err != nil {
		i.t.Fatalf("%v\n%s", err, out)
	}
}

// login returns the token that a block of the page puts into SCHED_JWT.
func (i *providerLab) login(block, input string) string {
	i.t.Helper()
	out, err := i.run(block, "", input)
	if err != nil {
		i.t.Fatalf("%s: %v\n%s", block, err, out)
	}
	return out[strings.LastIndexByte(out, '\n')+1:]
}

// configure restarts the daemons with the AuthAltParameters in a block of the
// page.
func (i *providerLab) configure(block string) {
	i.t.Helper()
	text := harness.CodeBlock(i.t, "IDENTITY-PROVIDER.md", block)
	m := regexp.MustCompile(`(?m)^AuthAltParameters=(.*)$`).FindStringSubmatch(text)
	if m == nil {
		i.t.Fatalf("no AuthAltParameters in %s", text)
	}
	parameters := strings.ReplaceAll(strings.ReplaceAll(m[1], "/etc/sched/keys/", i.Dir+"/etc/"), "/etc/sched/", i.Dir+"/etc/")
	restartWithKeys(i.Lab, i.t, parameters)
}

// outcome returns the result of a request with the given token.
func (i *providerLab) outcome(token string) string {
	i.t.Helper()
	return requestFrom(i.Lab, i.t, i.URL, "/sched/"+harness.Version+"/ping", token).UserOrStatus()
}

// awaitOutcome waits until requests with the token have the result want. This
// may take a minute, because a gateway caches results for a minute.
func (i *providerLab) awaitOutcome(token, want string) {
	i.t.Helper()
	var got string
	for deadline := time.Now().Add(3 * time.Minute); got != want; time.Sleep(100 * time.Millisecond) {
		if got = i.outcome(token); time.Now().After(deadline) {
			i.t.Fatalf("counted %s, want %s", got, want)
		}
	}
}

// awaitLog waits until both daemons have logged a line that matches pattern.
func (i *providerLab) awaitLog(pattern string) {
	i.t.Helper()
	for _, name := range []string{"schedctld", "scheddbd"} {
		harness.Eventually(i.t, name+" logs "+pattern, func() bool {
			log, err := os.ReadFile(i.Log(name))
			harness.Must(i.t, err)
			return regexp.MustCompile(pattern).Match(log)
		})
	}
}

// readyWhenListening makes the lab treat a daemon as started when the daemon
// accepts connections. The usual check sends requests with a token, which the
// lab can't create.
func readyWhenListening(l *harness.Lab) {
	l.Ctld.Check = harness.Accepts(l.Ctld.Address)
	l.Restd.Check = harness.Accepts(strings.TrimPrefix(l.Restd.Address, "http://"))
}

// TestIdentityProvider follows docs/IDENTITY-PROVIDER.md with the commands on
// that page. It fetches the key set, logs users in, changes the keys, and
// breaks the provider.
func TestIdentityProvider(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bash", "curl"} {
		harness.FindProgram(t, name, name)
	}
	u := harness.OrdinaryUser(t)
	i := &providerLab{Lab: harness.NewLab(t), provider: newProvider(t, u.Name), t: t}
	i.rotate("first")
	readyWhenListening(i.Lab)
	i.fetchKeySet()
	i.configure("both files")
	pids := i.daemonPIDs()

	// A user logs in with each of the two methods, sends requests and submits a
	// job. The second login on another device must also wait for the user.
	i.checkFailedLogins()
	var token string
	for _, login := range []struct {
		block, input string
		polls        int
	}{{"by password", harness.Password + "\n", 0}, {"by device", "", 3}, {"by device", "", 3}} {
		token = i.login(login.block, login.input)
		if got := i.outcome(token); got != "as "+u.Name {
			t.Fatalf("%s: counted %s", login.block, got)
		}
		i.update(func() {
			if i.polls != login.polls {
				t.Errorf("%s: the provider was polled %d times, want %d", login.block, i.polls, login.polls)
			}
		})
	}
	out, err := i.run("use", "export SCHED_JWT="+token, "")
	if err != nil || !strings.Contains(out, `"user":"`+u.Name+`"`) || !strings.Contains(out, i.Node+" ") {
		t.Errorf("%v\n%s", err, out)
	}
	i.OwnToken = token
	id := i.Submit("id -un; env", nil)
	if a := i.AwaitEnd(id); a.Get("jobs", 0, "user_name") != u.Name {
		t.Errorf("the job is %v's", a.Get("jobs", 0, "user_name"))
	}
	if got := i.Output(t, id); !strings.HasPrefix(got, u.Name+"\n") || strings.Contains(got, tokenBegins) {
		t.Errorf("the job printed:\n%s", got)
	}

	// The claim sun takes precedence over username, and username over the claim
	// that the site has configured.
	for _, tt := range []struct{ claims, want string }{
		{`"sun":"` + u.Name + `","username":"somebody-else","preferred_username":"somebody-else"`, "as " + u.Name},
		{`"username":"` + u.Name + `","preferred_username":"somebody-else"`, "as " + u.Name},
		{`"sun":"somebody-else","preferred_username":"` + u.Name + `"`, "401"},
		{`"username":"somebody-else","preferred_username":"` + u.Name + `"`, "401"},
		{`"preferred_username":"` + u.Name + `@example.org"`, "401"},
		{`"name":"` + u.Name + `"`, "401"},
	} {
		if got := i.outcome(i.sign(tt.claims)); got != tt.want {
			t.Errorf("%s: counted %s, want %s", tt.claims, got, tt.want)
		}
	}

	i.checkKeyRotation(token)
	i.checkBrokenProvider()
	if got := i.daemonPIDs(); got != pids {
		t.Errorf("the daemons are %s, were %s", got, pids)
	}
	i.checkClusterTokens()
}

// checkFailedLogins checks failed logins. The user must see the reason in one
// or two lines, and SCHED_JWT must keep its value.
func (i *providerLab) checkFailedLogins() {
	i.t.Helper()
	for _, tt := range []struct {
		name, block, input string
		down, denied       bool
		want               string // regular expression for the whole output
	}{
		{name: "a wrong password", block: "by password", input: "guess\n", want: `the provider gave no id_token: invalid_grant: said in more words\n`},
		{name: "no password", block: "by password", input: "\n", want: `the provider gave no id_token: invalid_grant: said in more words\n`},
		{name: "a provider that is down", block: "by password", input: "guess\n", down: true, want: `the provider gave no answer in JSON\n`},
		{name: "no by device", block: "by device", denied: true, want: `open https://\S+\nthe provider gave no id_token: access_denied: said in more words\n`},
		{name: "a provider that is down, by device", block: "by device", down: true,
			want: `open https://\S+\nthe provider gave no answer in JSON\n`},
	} {
		i.update(func() { i.down, i.deniesLogin = tt.down, tt.denied })
		for before, wantToken := range map[string]string{"": "none", "set -eo pipefail": "none", "export SCHED_JWT=old": "old"} {
			show := `trap 'bash -c "echo it has \${SCHED_JWT-none}"' EXIT` + "\n"
			want := regexp.MustCompile(`^(?:` + tt.want + `)(?:bash: line \d+: token: was not given\n)?it has ` + wantToken + `\n$`)
			if out, err := i.run(tt.block, show+before, tt.input); err == nil || !want.MatchString(out) {
				i.t.Errorf("%s, after %q: %v\n%s", tt.name, before, err, out)
			}
		}
	}
	i.update(func() { i.down, i.deniesLogin = false, false })
}

// daemonPIDs returns the process ids of the daemons.
func (i *providerLab) daemonPIDs() string {
	return fmt.Sprint(i.Daemons["schedctld"].PID(), i.Daemons["scheddbd"].PID(), i.Daemons["schedrestd"].PID())
}

// checkKeyRotation checks that tokens signed with a new key are soon accepted,
// and that tokens signed with a removed key are refused.
func (i *providerLab) checkKeyRotation(old string) {
	i.t.Helper()
	i.rotate("first", "second")
	i.fetchKeySet()
	token := i.login("by password", harness.Password+"\n")
	i.awaitOutcome(token, "as "+i.provider.user)
	if got := i.outcome(old); got != "as "+i.provider.user {
		i.t.Errorf("the old key's token counted %s while it was published", got)
	}
	i.rotate("second")
	i.fetchKeySet()
	i.awaitOutcome(old, "401")
	if got := i.outcome(token); got != "as "+i.provider.user {
		i.t.Errorf("the new key's token counted %s", got)
	}
	stranger := newProvider(i.t, i.provider.user)
	stranger.rotate("second") // a different key with the same id
	if got := i.outcome(stranger.sign(`"preferred_username":"` + i.provider.user + `"`)); got != "401" {
		i.t.Errorf("a token of an unknown issuer counted %s", got)
	}
}

// checkBrokenProvider checks that users are still served after the key set
// could not be fetched, and after an unusable key set was fetched.
func (i *providerLab) checkBrokenProvider() {
	i.t.Helper()
	file := filepath.Join(i.Dir, "etc", "jwks.json")
	before, err := os.ReadFile(file)
	harness.Must(i.t, err)
	i.update(func() { i.down = true })
	if out, err := i.run("/etc/cron.hourly/sched-jwks", "", ""); err == nil {
		i.t.Errorf("a fetch from a provider that is down succeeded: %s", out)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		i.t.Errorf("the file is now %s, %v", after, err)
	}
	i.update(func() { i.down = false })

	token := i.login("by password", harness.Password+"\n")
	for _, broken := range []string{"<html>please log in</html>", `{"keys":[]}`} {
		i.update(func() { i.keySetOverride = broken })
		i.fetchKeySet()
		i.awaitLog(`level=ERROR .*new key set rejected; keeping the current one`)
		for _, token := range []string{token, i.sign(`"preferred_username":"` + i.provider.user + `"`)} {
			if got := i.outcome(token); got != "as "+i.provider.user {
				i.t.Errorf("with %q as the key set counted %s", broken, got)
			}
		}
	}
	i.update(func() { i.keySetOverride = "" })
	i.fetchKeySet()
}

// checkClusterTokens checks schedctl with and without jwt_key=. Without it,
// schedctl must make no token, and must name the missing setting. With it,
// schedctl must make a token, and the cluster must accept both this token and
// the provider's tokens.
func (i *providerLab) checkClusterTokens() {
	i.t.Helper()
	if out, err := schedctl(i.Lab, "", "token"); err == nil || !strings.Contains(out, "jwt_key=") {
		i.t.Errorf("schedctl token: %v\n%s", err, out)
	}
	i.configure("both files, with tokens of the cluster's own")
	if got := i.outcome(i.Lab.UserToken("")); got != "as "+i.Owner {
		i.t.Errorf("a token of the cluster's own counted %s", got)
	}
	if got := i.outcome(i.login("by password", harness.Password+"\n")); got != "as "+i.provider.user {
		i.t.Errorf("a token of the provider's counted %s", got)
	}
}

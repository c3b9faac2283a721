package auth

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/bundled/demo/site"
	"schedrestd/integration/harness"
)

// keyedGateway is a site whose gateway has its own keys to verify tokens. The
// gateway's connections to the daemons are counted.
type keyedGateway struct {
	*harness.CountedGateway
	user   string
	client *http.Client
}

func startKeyed(t *testing.T, l *harness.Lab, parameters string) *keyedGateway {
	t.Helper()
	k := &keyedGateway{CountedGateway: l.StartCountedWith(t, parameters), user: l.Owner}
	k.client = k.Client()
	t.Cleanup(k.client.CloseIdleConnections)
	return k
}

// hs256 returns a new token for the user, signed with key.
func (k *keyedGateway) hs256(key []byte) string {
	k.T.Helper()
	return harness.NewToken(k.T, key, jwt.SigningMethodHS256, k.claims())
}

// rs256 returns a new token for the user, signed with an RSA key.
func (k *keyedGateway) rs256(key *rsa.PrivateKey) string {
	k.T.Helper()
	claims, err := json.Marshal(k.claims())
	harness.Must(k.T, err)
	return harness.SignToken(k.T, key, `{"alg":"RS256","typ":"JWT"}`, string(claims))
}

var tokensMade atomic.Int64

// claims returns different claims each time, so that every token is a new one.
func (k *keyedGateway) claims() jwt.MapClaims {
	now := time.Now()
	return jwt.MapClaims{"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "sun": k.user, "jti": fmt.Sprint(tokensMade.Add(1))}
}

// connsUsed sends three requests with a token: a ping, a diag request to the
// accounting daemon, and a malformed submission. It returns how many
// connections each daemon accepted.
func (k *keyedGateway) connsUsed(token string, status int) (ctl, dbd int64) {
	k.T.Helper()
	header := "X-SCHED-USER-TOKEN: " + token
	ctl = k.Ctl.ConnsDuring(func() {
		dbd = k.Dbd.ConnsDuring(func() {
			k.Request(k.client, "GET", harness.PingPath, "", header).Want(k.T, status)
			k.Request(k.client, "GET", harness.DiagPath, "", header).Want(k.T, status)
			// Only an authenticated client learns that its request is
			// malformed. No daemon receives the request.
			if status == http.StatusOK {
				k.Request(k.client, "POST", harness.SubmitPath, "{", header).Want(k.T, http.StatusBadRequest)
			} else {
				k.Request(k.client, "POST", harness.SubmitPath, "{", header).Want(k.T, status)
			}
		})
	})
	return ctl, dbd
}

// status returns the status of the answer to a ping with token.
func (k *keyedGateway) status(token string) int {
	k.T.Helper()
	return k.Request(k.client, "GET", harness.PingPath, "", "X-SCHED-USER-TOKEN: "+token).Status
}

// checkRefusesLocally checks that the gateway refuses a token without asking a
// daemon.
func (k *keyedGateway) checkRefusesLocally(name, token string) {
	k.T.Helper()
	if ctl, dbd := k.connsUsed(token, http.StatusUnauthorized); ctl+dbd != 0 {
		k.T.Errorf("%s: refused after %d connections to the controller and %d to the accounting daemon", name, ctl, dbd)
	}
}

// awaitReadiness waits until /readyz reports the given reason why the gateway
// is not ready. If reason is "", it waits until the gateway is ready.
func (k *keyedGateway) awaitReadiness(token, reason string) {
	k.T.Helper()
	want := "ok\n"
	if reason != "" {
		want = "unready\nkeys: " + reason + "; see the log\n"
	}
	harness.Eventually(k.T, fmt.Sprintf("/readyz is %q", want), func() bool {
		a := k.Request(k.client, "GET", "/readyz", "", "X-SCHED-USER-TOKEN: "+token)
		return a.Text == want && (a.Status == http.StatusOK) == (reason == "")
	})
}

// refusesLocally reports whether the gateway refuses a ping with the given
// token and does not ask the controller about it.
func (k *keyedGateway) refusesLocally(token string) bool {
	k.T.Helper()
	status := 0
	cost := k.Ctl.ConnsDuring(func() { status = k.status(token) })
	return status == http.StatusUnauthorized && cost == 0
}

// keeperPID returns the pid of the gateway's keeper, or 0 if there is none.
func (k *keyedGateway) keeperPID() int {
	k.T.Helper()
	return harness.DescendantNamed(k.T, k.PID(), "schedrestd-keep")
}

var strangersSecret = []byte("12345678901234567890123456789012")

// TestGatewayKey checks that a gateway that has the daemons' key refuses tokens
// of other keys without asking a daemon. For a good token, the gateway must
// connect to the daemons only to serve the request, and not to verify the
// token.
func TestGatewayKey(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	key, err := os.ReadFile(l.Key())
	harness.Must(t, err)
	k := startKeyed(t, l, "jwt_key="+l.Key())
	k.connsUsed(l.OwnToken, 200)                                                                 // the gateway determines the protocol version
	if ctl, dbd := k.connsUsed(k.hs256(key), http.StatusOK); ctl < 1 || dbd < 1 || ctl+dbd > 3 { // asking a daemon to verify each token would need more connections
		t.Errorf("a good token cost %d and %d connections", ctl, dbd)
	}
	for range 5 {
		k.checkRefusesLocally("signed with another key", k.hs256(strangersSecret))
	}
	if os.Geteuid() == 0 { // only the controller knows whether a token may act for another user
		u := harness.OrdinaryUser(t)
		a := k.Request(k.client, "GET", harness.PingPath, "", "X-SCHED-USER-TOKEN: "+k.hs256(key), "X-SCHED-USER-NAME: "+u.Name)
		a.Want(t, http.StatusOK)
		if n := k.Ctl.ConnsDuring(func() {
			k.Request(k.client, "GET", harness.PingPath, "", "X-SCHED-USER-TOKEN: "+k.hs256(strangersSecret), "X-SCHED-USER-NAME: "+u.Name).Want(t, http.StatusUnauthorized)
		}); n != 0 {
			t.Errorf("a forged token that names another user cost %d connections", n)
		}
	}
}

// TestGatewayKeyChanges checks that the gateway uses a new key soon after the
// key's file changes, without a restart. From then on, the gateway must refuse
// tokens of the old key without asking a daemon.
func TestGatewayKeyChanges(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	old, err := os.ReadFile(l.Key())
	harness.Must(t, err)
	k := startKeyed(t, l, "jwt_key="+l.Key())
	cached := k.hs256(old)
	if k.status(cached) != http.StatusOK {
		t.Fatal("the gateway does not use the existing key")
	}
	kept := &http.Client{Transport: new(http.Transport)} // its connection stays with a worker that has the old key
	defer kept.CloseIdleConnections()
	k.Request(kept, "GET", harness.PingPath, "", "X-SCHED-USER-TOKEN: "+cached).Want(t, http.StatusOK)
	harness.ReplaceFile(t, l.Key(), []byte("short"), 0o600)
	k.Eventually(t, "the gateway logs that the key is too short", func() bool { return strings.Contains(k.Logged(), "5 bytes; HS256 needs at least 32") })
	if k.status(k.hs256(old)) != http.StatusOK {
		t.Error("after an unusable file, the gateway no longer uses its key")
	}
	k.awaitReadiness(k.hs256(old), "the file of jwt_key can't be used any more")
	harness.Eventually(t, "the gateway asks a daemon about tokens of the key that it could not load", func() bool {
		return k.Ctl.ConnsDuring(func() {
			k.Request(k.client, "GET", harness.PingPath, "", "X-SCHED-USER-TOKEN: "+k.hs256(strangersSecret)).Want(t, 401)
		}) > 0
	})

	next := []byte("a new key that the administrator has made")
	harness.ReplaceFile(t, l.Key(), next, 0o600)
	for _, p := range []site.Part{l.Ctld, l.DBD} {
		l.Daemons[p.Name].Stop()
		l.Up(p)
	}
	harness.Eventually(t, "the gateway itself refuses tokens of the old key", func() bool { return k.refusesLocally(k.hs256(old)) })
	k.checkRefusesLocally("what it remembered", cached)
	if status := k.status(k.hs256(next)); status != http.StatusOK {
		t.Errorf("the new key's token: status %d", status)
	}
	k.Request(kept, "GET", harness.PingPath, "", "X-SCHED-USER-TOKEN: "+k.hs256(next)).Want(t, http.StatusOK)
	k.checkRefusesLocally("neither key's", k.hs256(strangersSecret))
	k.awaitReadiness(k.hs256(next), "")
}

// TestGatewayWithoutItsKeeper checks that users are served while the keeper is
// stopped or has exited. In the meantime, the daemons must verify the tokens.
// The next keeper must have the key.
func TestGatewayWithoutItsKeeper(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	key, err := os.ReadFile(l.Key())
	harness.Must(t, err)
	k := startKeyed(t, l, "jwt_key="+l.Key())
	k.checkRefusesLocally("with a keeper", k.hs256(strangersSecret))
	first := k.keeperPID()
	if first == 0 {
		t.Fatal("there is no keeper")
	}
	harness.Suspend(t, first)
	if status := k.status(k.hs256(key)); status != http.StatusOK {
		t.Errorf("with a keeper that does not answer: status %d", status)
	}
	if n := k.Ctl.ConnsDuring(func() {
		k.Request(k.client, "GET", harness.PingPath, "", "X-SCHED-USER-TOKEN: "+k.hs256(strangersSecret)).Want(t, 401)
	}); n == 0 {
		t.Error("a forged token was refused without a keeper and without a daemon")
	}
	harness.Must(t, syscall.Kill(first, syscall.SIGKILL))
	for range 20 {
		if status := k.status(k.hs256(key)); status != http.StatusOK {
			t.Fatalf("while the keeper is gone: status %d", status)
		}
	}
	harness.Eventually(t, "the next keeper has the key", func() bool { return k.refusesLocally(k.hs256(strangersSecret)) })
	if next := k.keeperPID(); next == first || next == 0 {
		t.Errorf("the keeper was %d and is %d", first, next)
	}
	if status := k.status(k.hs256(key)); status != http.StatusOK {
		t.Errorf("with the next keeper: status %d", status)
	}
	k.awaitReadiness(l.OwnToken, "")
	for kills := 0; kills < 4; { // the pauses before the next keeper grow
		if pid := k.keeperPID(); pid != 0 && pid != first {
			harness.Must(t, syscall.Kill(pid, syscall.SIGKILL))
			first = pid
			kills++
		}
		time.Sleep(10 * time.Millisecond)
	}
	k.awaitReadiness(l.OwnToken, "the keeper exited")
	k.awaitReadiness(l.OwnToken, "")
}

// TestGatewayKeySet checks that a gateway with a key set verifies RS256 tokens.
// If the file changes, the gateway must use the new key set, as the daemons do.
func TestGatewayKeySet(t *testing.T) {
	t.Parallel()
	oldKey, newKey, strangerKey := newRSAKey(t), newRSAKey(t), newRSAKey(t)
	var set string
	write := func(key *rsa.PrivateKey) {
		t.Helper()
		harness.ReplaceFile(t, set, []byte(`{"keys":[`+harness.PublicJWK(&key.PublicKey, "")+`]}`), 0o644)
	}
	l := harness.NewDaemons(t, func(l *harness.Lab) {
		set = filepath.Join(l.Dir, "etc", "jwks.json")
		write(oldKey)
		l.AuthParameters = "jwt_key=" + l.Key() + ",jwks=" + set
	})
	k := startKeyed(t, l, "jwks="+set)
	k.connsUsed(k.rs256(oldKey), http.StatusOK) // the gateway determines the protocol version
	if ctl, dbd := k.connsUsed(k.rs256(oldKey), http.StatusOK); ctl < 1 || dbd < 1 || ctl+dbd > 3 {
		t.Errorf("a good token cost %d and %d connections", ctl, dbd)
	}
	for range 5 {
		k.checkRefusesLocally("a stranger's", k.rs256(strangerKey))
	}
	if n := k.Ctl.ConnsDuring(func() {
		k.Request(k.client, "GET", harness.PingPath, "", "X-SCHED-USER-TOKEN: "+l.OwnToken).Want(t, 200)
	}); n < 2 {
		t.Errorf("HS256 without a key in the gateway: the controller was not asked, %d connections", n)
	}
	if k.keeperPID() != 0 {
		t.Error("a keeper runs although it has no keys")
	}
	write(newKey) // without a signal to the gateway
	harness.Eventually(t, "the gateway itself refuses tokens of the old set", func() bool { return k.refusesLocally(k.rs256(oldKey)) })
	if status := k.status(k.rs256(newKey)); status != http.StatusOK {
		t.Errorf("the new set's token: status %d", status)
	}
	// From here on a signal makes the gateway look at once.
	reload := func() { harness.Must(t, syscall.Kill(k.PID(), syscall.SIGHUP)) }
	harness.ReplaceFile(t, set, []byte("{"), 0o644)
	reload()
	harness.Eventually(t, "the gateway logs that the key set is unusable", func() bool {
		return strings.Contains(k.Logged(), "cannot use the key set of RS256 tokens")
	})
	if status := k.status(k.rs256(newKey)); status != http.StatusOK {
		t.Errorf("after an unusable set, a token of the set before: status %d", status)
	}
	harness.Must(t, os.Remove(set))
	reload()
	k.awaitReadiness(k.rs256(newKey), "the file of jwks can't be used any more")
	write(oldKey)
	reload()
	k.awaitReadiness(k.rs256(oldKey), "")
}

func newRSAKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	harness.Must(t, err)
	return key
}

// TestGatewayKeysThatMustNotBeUsed checks that the gateway does not start with
// an unsafe key. If the key is unsafe because of its file's mode, the gateway
// must not start in inetd mode either. The error must name the file, the cause
// and the command that fixes the problem.
func TestGatewayKeysThatMustNotBeUsed(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	key, set := filepath.Join(l.Dir, "etc", "gateway.key"), filepath.Join(l.Dir, "etc", "gateway.jwks")
	for _, tt := range []struct {
		name, path, text string
		mode             os.FileMode
		want, hint       string
		inetd            bool // the error appears in inetd mode, too
	}{
		{"others read the key", key, strings.Repeat("k", 32), 0o644, "mode 0644 lets other users access it", "chmod 0600 " + key, true},
		{"a short key", key, "password", 0o600, "8 bytes; HS256 needs at least 32", "hint: ls -l " + key + "  # put the key of the daemons there; KEYS.md, Change a key, says how to give all of them a new one", false},
		{"others write the key set", set, "{}", 0o666, "mode 0666 lets other users write it", "hint: chmod o-w " + set, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			harness.Must(t, os.WriteFile(tt.path, []byte(tt.text), 0o600))
			harness.Must(t, os.Chmod(tt.path, tt.mode))
			defer os.Remove(tt.path)
			conf := filepath.Join(l.Dir, "etc", "refused.conf")
			text, err := os.ReadFile(l.Conf())
			harness.Must(t, err)
			harness.Must(t, os.WriteFile(conf, regexp.MustCompile("(?m)^AuthAltParameters=.*$").ReplaceAll(text, []byte(`AuthAltParameters="jwt_key=`+key+`,jwks=`+set+`"`)), 0o600))
			args := slices.Clone(l.Restd.Args[:len(l.Restd.Args)-1]) // the last argument is the address to listen on
			args[1] = conf
			for _, listen := range []string{"127.0.0.1:0", ""} {
				if listen == "" && !tt.inetd {
					continue
				}
				cmd := exec.Command(l.Restd.Path, append(args, strings.Fields(listen)...)...)
				cmd.Env = append(os.Environ(), l.Restd.Env...)
				cmd.Stdin = strings.NewReader("GET " + harness.PingPath + " HTTP/1.1\r\n\r\n")
				out, err := cmd.CombinedOutput()
				if err == nil || !strings.Contains(string(out), tt.path+": ") || !strings.Contains(string(out), tt.want) || !strings.Contains(string(out), tt.hint+"\n") {
					t.Errorf("listening on %q: %v\n%s", listen, err, out)
				}
			}
		})
	}
}

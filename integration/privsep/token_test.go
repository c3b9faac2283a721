package privsep

import (
	"cmp"
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"schedrestd/auth"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// verdict returns the worker's verdict on the token in r, based on the worker's
// keys or its cache. If the worker would have to ask a daemon, the verdict is
// "unknown".
func verdict(r *http.Request, a *auth.Authenticator) string {
	c := auth.Credential{Token: r.FormValue("token")}
	c.Claims.User, c.Claims.Expires = "x", time.Now().Add(time.Hour)
	asked := errors.New("the daemon was asked")
	switch err := a.Authenticate(r.Context(), c, "daemon", func(context.Context, string) error { return asked }); err {
	case nil:
		return "good"
	case asked:
		return "unknown"
	}
	return "bad"
}

// vault holds the token keys, the paths of their files, and the owner of these
// files.
type vault struct {
	ipc.Tokens
	t   *testing.T
	as  user
	uid uint32 // uid of SchedUser
	key []byte
	rsa *rsa.PrivateKey
}

// newVault creates a key and a key set that belong to the given user. This user
// is also SchedUser.
func newVault(t *testing.T, as user) *vault {
	t.Helper()
	v := &vault{t: t, as: as, uid: uint32(os.Geteuid()), rsa: rsaKey()}
	if as != nil {
		v.uid = as.Uid
	}
	dir := socketDir(t, t.TempDir(), as)
	v.Tokens = ipc.Tokens{Key: filepath.Join(dir, "jwt.key"), JWKS: filepath.Join(dir, "jwks.json")}
	v.renew()
	v.put(v.JWKS, setOf(v.rsa), 0o644)
	return v
}

var rsaKey = sync.OnceValue(newRSA)

func newRSA() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

// renew replaces the key with a new one.
func (v *vault) renew() {
	v.t.Helper()
	v.key = make([]byte, 64)
	_, _ = rand.Read(v.key)
	v.put(v.Key, string(v.key), 0o600)
}

func (v *vault) put(path, text string, mode os.FileMode) {
	v.t.Helper()
	(&site{t: v.t, as: v.as}).put(path, text, mode)
}

// setOf returns a key set with one key.
func setOf(key *rsa.PrivateKey) string {
	b64 := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`{"keys":[{"kty":"RSA","n":%q,"e":%q}]}`, b64(key.N.Bytes()), b64(big.NewInt(int64(key.E)).Bytes()))
}

// config returns a copy of c with which the gateway accepts tokens signed with
// v's keys.
func (v *vault) config(c testConfig) testConfig {
	c.Tokens = v.Tokens
	c.Service.SchedUser, c.Service.SchedUID = strconv.Itoa(int(v.uid)), v.uid
	c.Setup.JWT = true
	c.Watch, c.Still = 20*time.Millisecond, cmp.Or(c.Still, time.Nanosecond)
	return c
}

func segment(x any) string {
	raw, _ := json.Marshal(x)
	return base64.RawURLEncoding.EncodeToString(raw)
}

// hs256 returns a token signed with key.
func hs256(key []byte) string {
	signed := segment(map[string]string{"alg": "HS256"}) + "." + segment(map[string]string{})
	h := hmac.New(sha256.New, key)
	h.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// rs256 returns a token signed with key.
func rs256(t *testing.T, key *rsa.PrivateKey) string {
	t.Helper()
	signed := segment(map[string]string{"alg": "RS256"}) + "." + segment(map[string]string{})
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	must(t, err)
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

var strangersKey = []byte("a key of which the cluster knows nothing")

// verdict asks the gateway about a token and returns the verdict of the worker
// that answers.
func (g *gateway) verdict(token string) string {
	g.t.Helper()
	return g.mustGet("/verdict?token=" + url.QueryEscape(token))
}

func (g *gateway) checkVerdict(name, token, verdict string) {
	g.t.Helper()
	if got := g.verdict(token); got != verdict {
		g.t.Errorf("%s: %s, want %s", name, got, verdict)
	}
}

// awaitVerdict waits until the gateway returns the given verdict on the token.
func (g *gateway) awaitVerdict(token, verdict string) {
	g.t.Helper()
	g.eventually("a token is "+verdict, func() bool { return g.verdict(token) == verdict })
}

// checkAllWorkers asks about a token often enough to reach every worker, and
// checks that each verdict is the given one.
func (g *gateway) checkAllWorkers(name, token, verdict string) {
	g.t.Helper()
	for range 6 {
		g.checkVerdict(name, token, verdict)
	}
}

// checkVerdicts checks the verdicts on good and forged tokens, both HS256 and
// RS256.
func (g *gateway) checkVerdicts(v *vault) {
	g.t.Helper()
	g.checkAllWorkers("HS256", hs256(v.key), "good")
	g.checkAllWorkers("HS256 forged", hs256(strangersKey), "bad")
	g.checkAllWorkers("RS256", rs256(g.t, v.rsa), "good")
	g.checkAllWorkers("RS256 forged", rs256(g.t, strangersRSA()), "bad")
}

var strangersRSA = sync.OnceValue(newRSA)

// TestTokenKeys checks that workers can verify HS256 and RS256 tokens from
// their first connection on, in every kind of pool, with and without https://
// listeners. The same must hold for workers that start after a SIGHUP.
func TestTokenKeys(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		for _, https := range []bool{false, true} {
			t.Run(fmt.Sprintf("worker_per_connection=%v,https=%v", strict, https), func(t *testing.T) {
				as := plainUser(t)
				v := newVault(t, as)
				c := v.config(testConfig{})
				c.Switches.WorkerPerConnection = strict
				if https {
					s := newSite(t, as)
					c.TLS, c.Listen = s.TLS, listens("127.0.0.1:0", "https://127.0.0.2:0")
				}
				write := reloadSecretsWriter(t)
				write(packed(work.Setup{Setup: ipc.Setup{JWT: true}, Cluster: "next"}), c.Secrets)
				g := serve(t, as, c)
				g.checkVerdicts(v)
				g.cmd.Process.Signal(syscall.SIGHUP)
				g.await("configuration reloaded", nil)
				g.checkVerdicts(v)
				if n := g.count("keeper ready"); n != 2 {
					t.Errorf("%d keepers", n)
				}
			})
		}
	}
}

// TestTokenKeysRefused checks that the gateway does not start if a key file
// contains no key, or if another user can read or replace the file. The command
// in the hint must fix the file. A gateway that accepts no tokens must refuse
// the same files, except those with a fault that only a keeper detects.
func TestTokenKeysRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		spoil      func(*vault)
		want, hint string
		root       bool // only root can make a file bad in this way
	}{
		{"others read it", func(v *vault) { os.Chmod(v.Key, 0o604) }, "mode 0604 lets other users access it", "chmod 0600", false},
		{"its group writes it", func(v *vault) { os.Chmod(v.Key, 0o620) }, "mode 0620 lets other users access it", "chmod 0600", false},
		{"a link", func(v *vault) { os.Rename(v.Key, v.Key+"1"); os.Symlink(v.Key+"1", v.Key) }, "link", "readlink -f", false},
		{"a directory", func(v *vault) { os.Remove(v.Key); os.Mkdir(v.Key, 0o755) }, "not a regular file", "ls -ld", false},
		{"too short", func(v *vault) { v.put(v.Key, "secret", 0o600) }, "jwt.key: 6 bytes; HS256 needs at least 32", "# put the key of the daemons there", false},
		{"empty", func(v *vault) { v.put(v.Key, "", 0o600) }, "jwt.key: 0 bytes", "# put the key of the daemons there", false},
		{"zeros", func(v *vault) { v.put(v.Key, strings.Repeat("\x00", 32), 0o600) }, "jwt.key: the same byte 32 times, which is not secret", "# put the key of the daemons there", false},
		{"a certificate", func(v *vault) { v.put(v.Key, "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ", 0o600) }, "jwt.key: a public key or certificate", "# put the key of the daemons there", false},
		{"in a directory that all may write", func(v *vault) { os.Chmod(filepath.Dir(v.Key), 0o777) }, "is writable by every user", "o-w", false},
		{"others write the key set", func(v *vault) { os.Chmod(v.JWKS, 0o646) }, "lets other users write it", "chmod o-w", false},
		{"the key set is too long", func(v *vault) { v.put(v.JWKS, strings.Repeat(" ", 1<<20+1), 0o644) }, "longer than", "", false},
		{"in another's directory", func(v *vault) { os.Chown(filepath.Dir(v.Key), 31237, 31237); os.Chmod(filepath.Dir(v.Key), 0o700) },
			"belongs to uid 31237, must belong to uid 0 or 31234", "chown 31234", true},
		{"in a group's directory", func(v *vault) { os.Chown(filepath.Dir(v.Key), 0, 31237); os.Chmod(filepath.Dir(v.Key), 0o770) },
			"is writable by group 31237", "chmod g-w", true},
		{"below another's directory", func(v *vault) { os.Chown(filepath.Dir(filepath.Dir(v.Key)), 31237, 31237) }, "belongs to uid 31237", "chown root", true},
		{"the key set in another's directory", func(v *vault) { v.Key = ""; os.Chown(filepath.Dir(v.JWKS), 31237, 31237) }, "belongs to uid 31237", "chown root", true},
		{"the key set in a group's directory", func(v *vault) {
			v.Key = ""
			os.Chown(filepath.Dir(v.JWKS), 0, 31237)
			os.Chmod(filepath.Dir(v.JWKS), 0o770)
		},
			"is writable by group 31237", "chmod g-w", true},
		{"another's", func(v *vault) { os.Chown(v.Key, 31237, 31237) }, "owned by uid 31237", "chown 31234", true},
		{"the key set is another's", func(v *vault) { os.Chown(v.JWKS, 31237, 31237) }, "owned by uid 31237", "chown 31234", true},
		{"the serving user's", func(v *vault) { os.Chown(v.Key, 65534, 0) }, "owned by uid 65534", "chown 31234", true},
		{"the serving group reads it", func(v *vault) { os.Chown(v.Key, 0, 65534); os.Chmod(v.Key, 0o640) }, "can read it", "chmod 0600", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			as, c := plainUser(t), testConfig{}
			if tt.root {
				needRoot(t)
				c.Service = identityOf("65534", "65534", "")
			}
			v := newVault(t, plainUser(t))
			tt.spoil(v)
			if tt.root {
				as = nil
			}
			c = v.config(c)
			text, hint := launch(t, as, c).failure()
			if !strings.Contains(tt.want, "jwt.key: ") {
				c := c
				c.Setup.JWT = false
				if unserved, _ := launch(t, as, c).failure(); unserved != text {
					t.Errorf("without rest_auth/jwt: error %q", unserved)
				}
			}
			if !strings.Contains(text, tt.want) || !strings.Contains(hint, tt.hint) {
				t.Errorf("error %q, hint %q", text, hint)
			}
			if out, err := exec.Command("/bin/sh", "-c", hint).CombinedOutput(); err != nil {
				t.Errorf("pasted: %s: %v\n%s", hint, err, out)
			}
			if fixes := strings.HasPrefix(hint, "ch") || strings.Contains(hint, " && mv "); fixes {
				serve(t, as, c)
			}
		})
	}
}

// TestNoTokenKeys checks a gateway whose key file is unreadable and whose key
// set is missing. The gateway must log both problems and start no keeper. As
// soon as it can read the files, it must use them.
func TestNoTokenKeys(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	v := newVault(t, as)
	must(t, os.Chmod(v.Key, 0))
	must(t, os.Remove(v.JWKS))
	if as == nil && os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	g := serve(t, as, v.config(testConfig{}))
	for name, path := range map[string]string{"key": v.Key, "key set": v.JWKS} {
		g.await("no "+name+" of "+map[string]string{"key": "HS256", "key set": "RS256"}[name]+" tokens; the daemons verify such tokens",
			func(r map[string]any) bool { return r["level"] == "INFO" && r["file"] == path })
	}
	g.checkAllWorkers("no key", hs256(v.key), "unknown")
	g.checkAllWorkers("no key, forged", hs256(strangersKey), "unknown")
	g.checkAllWorkers("no key set", rs256(t, v.rsa), "unknown")
	if g.count("keeper ready") != 0 {
		t.Error("a keeper was started")
	}
	must(t, os.Chmod(v.Key, 0o600))
	v.put(v.JWKS, setOf(v.rsa), 0o644)
	g.awaitVerdict(hs256(v.key), "good")
	g.awaitVerdict(rs256(t, v.rsa), "good")
	g.eventually("forged tokens are bad", func() bool {
		return g.verdict(hs256(strangersKey)) == "bad" && g.verdict(rs256(t, strangersRSA())) == "bad"
	})
}

// TestTokensNotServed checks that no process gets a key if the gateway accepts
// no tokens.
func TestTokensNotServed(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	v := newVault(t, as)
	c := v.config(testConfig{})
	c.Setup.JWT = false
	g := serve(t, as, c)
	g.checkAllWorkers("HS256", hs256(v.key), "unknown")
	g.checkAllWorkers("RS256", rs256(t, v.rsa), "unknown")
	if g.count("keeper ready") != 0 {
		t.Error("a keeper was started")
	}
}

// countRejections counts the log records about new files that can't be used.
// The name argument describes the file, and text is a part of the error.
func (g *gateway) countRejections(name, text string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.records {
		if r["msg"] == "new "+name+" rejected; keeping the old one, if any" && strings.Contains(fmt.Sprint(r["error"]), text) {
			n++
		}
	}
	return n
}

// TestTokenKeyChanges checks that the gateway uses a new key, and that workers
// then forget their verdicts on tokens signed with the old key. If the new key
// can't be used, the gateway must log this once and keep the old key, and
// workers must ask the daemons about tokens that the old key does not verify.
func TestTokenKeyChanges(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	v := newVault(t, as)
	g := serve(t, as, v.config(testConfig{}))
	g.checkVerdicts(v)
	old := hs256(v.key)
	v.renew()
	g.awaitVerdict(hs256(v.key), "good")
	for range 6 { // requests go to the workers in turn
		g.awaitVerdict(old, "bad")
	}

	good := v.key
	for _, broken := range []struct {
		spoil func()
		want  string
	}{
		{func() { v.put(v.Key, "short", 0o600) }, "5 bytes; HS256 needs at least 32"},
		{func() { v.put(v.Key, strings.Repeat("k", 64), 0o604) }, "lets other users access it"},
		{func() { os.Remove(v.Key) }, "no such file"},
	} {
		broken.spoil()
		g.eventually("a complaint: "+broken.want, func() bool { return g.countRejections("key of HS256 tokens", broken.want) > 0 })
		g.awaitVerdict(hs256(strangersKey), "unknown")
		g.checkAllWorkers(broken.want+", the key before it", hs256(good), "good")
		time.Sleep(200 * time.Millisecond) // time for ten checks of the files
		if n := g.countRejections("key of HS256 tokens", broken.want); n != 1 {
			t.Errorf("%s: %d complaints", broken.want, n)
		}
		v.renew()
		good = v.key
		g.awaitVerdict(hs256(good), "good")
		g.awaitVerdict(hs256(strangersKey), "bad")
	}
	// Overwrite the file in place, as an editor may do.
	copy(v.key, strangersKey)
	must(t, os.WriteFile(v.Key, v.key, 0o600))
	g.awaitVerdict(hs256(v.key), "good")
}

// TestTokenKeyInPieces checks that the gateway does not use a key file that may
// be incomplete, even if its first half could be a key. After a SIGHUP the
// gateway must use a new file immediately.
func TestTokenKeyInPieces(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	v := newVault(t, as)
	write := reloadSecretsWriter(t)
	c := v.config(testConfig{Still: time.Hour})
	write(ipc.Setup{JWT: true}, c.Secrets)
	g := serve(t, as, c)
	g.checkVerdicts(v)
	half := []byte(strings.Repeat("half", 10))
	must(t, os.WriteFile(v.Key, half, 0o600))
	time.Sleep(200 * time.Millisecond) // time for ten checks of the files
	g.checkAllWorkers("half of the next key", hs256(half), "bad")
	g.checkAllWorkers("the key of before", hs256(v.key), "good")
	whole := append(half, strings.Repeat("whole", 5)...)
	must(t, os.WriteFile(v.Key, whole, 0o600))
	old := time.Now().Add(-2 * time.Hour)
	must(t, os.Chtimes(v.Key, old, old))
	g.awaitVerdict(hs256(whole), "good")
	for range 6 {
		g.awaitVerdict(hs256(half), "bad")
	}
	v.renew()
	g.cmd.Process.Signal(syscall.SIGHUP)
	g.await("configuration reloaded", nil)
	g.checkVerdicts(v)
}

// TestBrokenKeySet checks that a gateway does not start with a key set that no
// worker can use.
func TestBrokenKeySet(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	for name, text := range map[string]string{"cut": setOf(rsaKey())[:100], "a page": "<html>", "none": `{"keys":[]}`, "private": `{"keys":[{"kty":"RSA","d":"AQAB"}]}`} {
		t.Run(name, func(t *testing.T) {
			v := newVault(t, as)
			v.put(v.JWKS, text, 0o644)
			g := launch(t, as, v.config(testConfig{}))
			failure, hint := g.failure()
			if !strings.Contains(failure, "cannot use the key set of RS256 tokens") || !strings.Contains(hint, "their log has the command") {
				t.Errorf("%s, hint %q", failure, hint)
			}
			if g.count("serving") != 0 {
				t.Error("it serves")
			}
		})
	}
}

// TestBrokenKeySetLater checks new workers that can't use the key set. They
// must not serve, and the previous workers must stay. Workers that start later
// must use the previous key set until the file changes.
func TestBrokenKeySetLater(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	v := newVault(t, as)
	g := serve(t, as, v.config(testConfig{}))
	g.checkVerdicts(v)
	pid := g.mustGet("/pid")
	for i, text := range []string{`{"keys": [`, "<html>"} {
		v.put(v.JWKS, text, 0o644)
		g.awaitMany("new workers cannot serve; keeping the old ones", i+1)
		g.checkAllWorkers("RS256", rs256(t, v.rsa), "good")
		if !g.stillServes(pid) {
			t.Fatal("the workers were replaced")
		}
	}
	if r := g.await("new workers cannot serve; keeping the old ones", nil); !strings.Contains(fmt.Sprint(r["error"]), "key set "+v.JWKS+": a worker cannot use the key set") {
		t.Errorf("logged %v", r)
	}
	must(t, syscall.Kill(g.keeperPID(1), syscall.SIGKILL)) // makes the dispatcher request new workers while the key set can't be used
	g.eventually("other workers serve", func() bool { return !g.stillServes(pid) })
	g.awaitVerdict(rs256(t, v.rsa), "good")
	g.awaitVerdict(rs256(t, strangersRSA()), "unknown") // the token may be signed with a newer key
	v.put(v.JWKS, setOf(v.rsa)+"\n", 0o644)
	g.awaitVerdict(rs256(t, strangersRSA()), "bad")
	g.awaitVerdict(rs256(t, v.rsa), "good")
	if n := g.count("new workers cannot serve; keeping the old ones"); n != 2 {
		t.Errorf("%d generations failed", n)
	}
}

// stillServes reports whether a worker still answers /pid with the text pid. It
// sends a few requests for /pid.
func (g *gateway) stillServes(pid string) bool {
	for range 8 {
		if got, _ := g.get("/pid"); got == pid {
			return true
		}
	}
	return false
}

// TestKeySetChanges performs the checks of TestTokenKeyChanges on the key set
// instead of the key.
func TestKeySetChanges(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	v := newVault(t, as)
	g := serve(t, as, v.config(testConfig{}))
	g.checkVerdicts(v)
	next := newRSA()
	v.put(v.JWKS, setOf(next), 0o644)
	g.awaitVerdict(rs256(t, next), "good")
	for range 6 {
		g.awaitVerdict(rs256(t, v.rsa), "bad")
	}
	v.put(v.JWKS, setOf(strangersRSA()), 0o666)
	g.eventually("a complaint of the key set", func() bool { return g.countRejections("key set of RS256 tokens", "lets other users write it") == 1 })
	g.awaitVerdict(rs256(t, strangersRSA()), "unknown")
	g.checkAllWorkers("the key set of before", rs256(t, next), "good")
	v.put(v.JWKS, setOf(v.rsa), 0o644)
	g.awaitVerdict(rs256(t, v.rsa), "good")
	g.awaitVerdict(rs256(t, strangersRSA()), "bad")
	must(t, os.Remove(v.JWKS))
	r := g.await("new key set of RS256 tokens rejected; keeping the old one, if any", func(r map[string]any) bool {
		return strings.Contains(fmt.Sprint(r["error"]), "no such file")
	})
	if hint := fmt.Sprint(r["hint"]); !strings.Contains(hint, v.JWKS) || !strings.Contains(hint, "take jwks= out of the configuration, and reload") {
		t.Errorf("hint %q", hint)
	}
	g.awaitVerdict(rs256(t, next), "unknown")
	g.checkAllWorkers("the key set of before", rs256(t, v.rsa), "good")
}

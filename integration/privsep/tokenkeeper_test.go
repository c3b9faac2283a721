package privsep

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/become/nss"
	"schedrestd/ipc"
)

// TestKeeperOfTokensDies checks that the loss of a keeper affects verdicts only
// for a short time. The next keeper must get the same key, even if the file is
// gone.
func TestKeeperOfTokensDies(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	v := newVault(t, as)
	g := serve(t, as, v.config(testConfig{}))
	for n := 1; n <= 3; n++ {
		must(t, syscall.Kill(g.keeperPID(n), syscall.SIGKILL))
		g.keeperPID(n + 1)
		g.awaitVerdict(hs256(strangersKey), "bad")
		g.awaitVerdict(hs256(v.key), "good")
		g.mustGet("/pid")
	}
	must(t, os.Remove(v.Key))
	g.eventually("a complaint of the key", func() bool { return g.countRejections("key of HS256 tokens", "no such file") == 1 })
	must(t, syscall.Kill(g.keeperPID(5), syscall.SIGKILL)) // this keeper started after the gateway noticed that the file is gone
	g.keeperPID(6)
	g.awaitVerdict(hs256(v.key), "good")
	g.awaitVerdict(hs256(strangersKey), "unknown") // the workers know that the key file is gone
}

// TestTokenKeyWrittenOver checks a keeper that starts after the key file was
// overwritten with a key that is too short. This keeper must have no token key,
// but must still sign handshakes.
func TestTokenKeyWrittenOver(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	v, s := newVault(t, as), newSite(t, as)
	c := v.config(testConfig{Listen: listens("127.0.0.1:0", "https://127.0.0.2:0")})
	c.TLS = s.TLS
	g := serve(t, as, c)
	secure := g.await("serving", nil)["listen"].([]any)[1].(string) // the addresses are sorted
	must(t, os.WriteFile(v.Key, []byte("short"), 0o600))
	must(t, syscall.Kill(g.keeperPID(1), syscall.SIGKILL))
	g.await("keeper has no key of HS256 tokens; the daemons verify them", nil)
	g.eventually("handshakes are served", func() bool { _, _, err := secured(s.client(secure), "/pid"); return err == nil })
	g.awaitVerdict(hs256(v.key), "unknown")
	v.renew()
	g.awaitVerdict(hs256(v.key), "good")
}

// TestTokenKeyByReload checks that one SIGHUP can add a key and another can
// remove it. Adding the key must start a keeper, and removing the key must end
// this keeper.
func TestTokenKeyByReload(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	v := newVault(t, as)
	write := reloadSecretsWriter(t)
	c := v.config(testConfig{})
	c.Tokens = ipc.Tokens{}
	g := serve(t, as, c)
	hup := func(n int, secrets ipc.Secrets, want string) {
		t.Helper()
		write(ipc.Setup{JWT: true}, secrets)
		g.cmd.Process.Signal(syscall.SIGHUP)
		g.awaitMany(want, n)
	}
	g.checkVerdict("none", hs256(v.key), "unknown")
	hup(1, ipc.Secrets{Tokens: v.Tokens}, "configuration reloaded")
	g.checkVerdicts(v)

	// A key that can't be used changes nothing.
	otherKeys := ipc.Tokens{Key: v.Key + ".other", JWKS: v.JWKS}
	v.put(otherKeys.Key, "short", 0o600)
	hup(1, ipc.Secrets{Tokens: otherKeys}, "new configuration rejected; keeping the old one")
	v.put(otherKeys.Key, strings.Repeat("k", 32), 0o644)
	hup(2, ipc.Secrets{Tokens: otherKeys}, "new configuration rejected; keeping the old one")
	g.checkAllWorkers("the key of before", hs256(v.key), "good")
	// A missing key file is equivalent to no key.
	must(t, os.Remove(otherKeys.Key))
	keeper := g.keeperPID(1)
	hup(2, ipc.Secrets{Tokens: otherKeys}, "configuration reloaded")
	g.eventually("the keeper is gone", func() bool { return syscall.Kill(keeper, 0) == syscall.ESRCH })
	g.checkAllWorkers("no key", hs256(v.key), "unknown")
	g.checkAllWorkers("the key set", rs256(t, v.rsa), "good")
	hup(3, ipc.Secrets{}, "configuration reloaded")
	g.checkAllWorkers("no key set", rs256(t, v.rsa), "unknown")
	g.checkAllWorkers("no key set, forged", rs256(t, strangersRSA()), "unknown")

	hup(4, ipc.Secrets{Tokens: v.Tokens}, "configuration reloaded")
	g.checkVerdicts(v)
}

// TestTokenKeyOpenToWorkers checks that a gateway started without root warns
// that its workers can open the key file. The workers of a gateway started as
// root can't open it, so this gateway must not warn.
func TestTokenKeyOpenToWorkers(t *testing.T) {
	t.Parallel()
	says := "a compromised worker can read the key of HS256 tokens: without root, workers run as the user who started the gateway"
	as := plainUser(t)
	v := newVault(t, as)
	g := serve(t, as, v.config(testConfig{}))
	r := g.await(says, nil)
	if r["level"] != "WARN" || r["file"] != v.Key || !strings.Contains(r["hint"].(string), "start as root with -u") {
		t.Errorf("%v", r)
	}
	v.renew()
	g.awaitVerdict(hs256(v.key), "good")
	if n := g.count(says); n != 1 {
		t.Errorf("said %d times", n)
	}
	needRoot(t)
	g = serve(t, nil, newVault(t, nil).config(testConfig{Service: identityOf("65534", "65534", "")}))
	g.checkVerdict("as root", hs256(strangersKey), "bad")
	if g.count(says) != 0 {
		t.Error("said of a gateway that was started as root")
	}
}

// TestSecretsTogether checks a new configuration in which one key file can't be
// used. The gateway must use none of the new configuration's key files, and
// must keep using its current keys.
func TestSecretsTogether(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	v, s := newVault(t, as), newSite(t, as)
	c := v.config(testConfig{Listen: listens("127.0.0.1:0", "https://127.0.0.2:0")})
	c.TLS = s.TLS
	write := reloadSecretsWriter(t)
	g := serve(t, as, c)
	secure := g.await("serving", nil)["listen"].([]any)[1].(string) // the addresses are sorted
	// As long as the gateway uses the current configuration, the keys of the
	// next configuration must not verify tokens.
	w, next := newVault(t, as), newSite(t, as)
	good := func() {
		w.put(w.Key, string(strangersKey), 0o600)
		w.put(w.JWKS, setOf(strangersRSA()), 0o644)
		next.renew()
	}
	write(ipc.Setup{JWT: true}, ipc.Secrets{TLS: next.TLS, Tokens: w.Tokens})
	refusals := 0
	for name, spoil := range map[string]func(){
		"a short key":                 func() { w.put(w.Key, "short", 0o600) },
		"a key that others read":      func() { w.put(w.Key, string(strangersKey), 0o644) },
		"a key set that others write": func() { w.put(w.JWKS, setOf(strangersRSA()), 0o666) },
		"another's certificate":       func() { w := newSite(t, as); next.put(next.Certificate, mustRead(t, w.Certificate), 0o644) },
	} {
		for range 4 { // more than the number of key pairs that the keeper holds
			good()
			spoil()
			g.cmd.Process.Signal(syscall.SIGHUP)
			refusals++
			g.awaitMany("new configuration rejected; keeping the old one", refusals)
		}
		g.checkVerdicts(v)
		if _, _, err := secured(s.client(secure), "/pid"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	good()
	g.cmd.Process.Signal(syscall.SIGHUP)
	g.await("configuration reloaded", nil)
	g.checkAllWorkers("the next key", hs256(strangersKey), "good")
	g.checkAllWorkers("the next key set", rs256(t, strangersRSA()), "good")
	if _, _, err := secured(next.client(secure), "/pid"); err != nil {
		t.Error(err)
	}
}

// TestRenewalWithABadKey checks certificate files that are renewed in place
// while another part of the configuration can't be used. The gateway must
// notice the new certificates without a signal, and use them.
func TestRenewalWithABadKey(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	v, s := newVault(t, as), newSite(t, as)
	c := v.config(testConfig{Listen: listens("127.0.0.1:0", "https://127.0.0.2:0")})
	c.TLS, c.Watch = s.TLS, time.Second
	write := reloadSecretsWriter(t)
	g := serve(t, as, c)
	secure := g.await("serving", nil)["listen"].([]any)[1].(string)
	v.put(v.Key+".other", "short", 0o600)
	write(ipc.Setup{JWT: true}, ipc.Secrets{TLS: s.TLS, Tokens: ipc.Tokens{Key: v.Key + ".other", JWKS: v.JWKS}})
	s.renew()
	g.cmd.Process.Signal(syscall.SIGHUP)
	g.await("new configuration rejected; keeping the old one", nil)
	g.eventually("handshakes are served", func() bool { _, _, err := secured(s.client(secure), "/pid"); return err == nil })
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// TestRenewalWithBadCertificates checks token keys and certificates that are
// renewed together. If the certificates can't be used, a SIGHUP must fail, but
// the gateway must use the new token keys.
func TestRenewalWithBadCertificates(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	for name, spoil := range map[string]func(*site){
		"a broken certificate":  func(s *site) { s.put(s.Certificate, "broken", 0o644) },
		"a key without a mode":  func(s *site) { s.put(s.Key, keyText(t, s.key), 0) },
		"a certificate missing": func(s *site) { must(t, os.Remove(s.Certificate)) },
	} {
		t.Run(name, func(t *testing.T) {
			v, s := newVault(t, as), newSite(t, as)
			c := v.config(testConfig{Listen: listens("127.0.0.1:0", "https://127.0.0.2:0")})
			c.TLS, c.Watch = s.TLS, time.Second
			write := reloadSecretsWriter(t)
			g := serve(t, as, c)
			secure := g.await("serving", nil)["listen"].([]any)[1].(string)
			write(ipc.Setup{JWT: true}, ipc.Secrets{TLS: s.TLS, Tokens: v.Tokens})
			spoil(s)
			v.renew()
			v.put(v.JWKS, setOf(strangersRSA()), 0o644)
			g.cmd.Process.Signal(syscall.SIGHUP)
			r := g.await("new configuration rejected; keeping the old one", nil)
			if text := fmt.Sprint(r["error"]); strings.Contains(text, v.JWKS) {
				t.Errorf("the key set is blamed: %s", text)
			}
			g.awaitVerdict(hs256(v.key), "good")
			g.awaitVerdict(rs256(t, strangersRSA()), "good")
			if _, _, err := secured(s.client(secure), "/pid"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTokenKeyWithoutKeeper checks that the gateway refuses a key if the
// keeper's program is missing, both at the start and on a SIGHUP.
func TestTokenKeyWithoutKeeper(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	v := newVault(t, as)
	c := v.config(testConfig{Binary: replace(t, ipc.Keeper, remove)})
	text, hint := launch(t, as, c).failure()
	if !strings.Contains(text, "schedrestd-keeper: no such file") || !strings.Contains(hint, "must be in the directory of schedrestd") {
		t.Errorf("error %q, hint %q", text, hint)
	}
	write := reloadSecretsWriter(t)
	write(ipc.Setup{JWT: true}, c.Secrets)
	c.Tokens = ipc.Tokens{}
	g := serve(t, as, c)
	g.cmd.Process.Signal(syscall.SIGHUP)
	r := g.await("new configuration rejected; keeping the old one", nil)
	if !strings.Contains(r["error"].(string), "schedrestd-keeper: no such file") {
		t.Errorf("%v", r)
	}
	g.checkVerdict("no key", hs256(v.key), "unknown")
}

// TestTokenKeyForgotten checks the removal of the token key while the gateway
// still needs a keeper to sign handshakes. A new keeper must replace the keeper
// that had the key.
func TestTokenKeyForgotten(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	v, s := newVault(t, as), newSite(t, as)
	write := reloadSecretsWriter(t)
	c := v.config(testConfig{Listen: listens("127.0.0.1:0", "https://127.0.0.2:0")})
	c.TLS = s.TLS
	g := serve(t, as, c)
	g.checkVerdicts(v)
	write(ipc.Setup{JWT: true}, ipc.Secrets{TLS: s.TLS})
	g.cmd.Process.Signal(syscall.SIGHUP)
	g.await("configuration reloaded", nil)
	g.keeperPID(2)
	g.checkAllWorkers("no key", hs256(v.key), "unknown")
	secure := g.await("serving", nil)["listen"].([]any)[1].(string) // the addresses are sorted
	if _, _, err := secured(s.client(secure), "/pid"); err != nil {
		t.Error(err)
	}
}

// TestUnfollowedTokenKey checks a key file that the parent can't read after it
// has dropped its privileges. The gateway must not use this key, because the
// parent could not read a new key later. Instead, the daemons must verify the
// tokens. A log record must say so, and its hint must be a command. Once that
// command has run, the gateway must use the file, and SchedUser must still be
// able to read it.
func TestUnfollowedTokenKey(t *testing.T) {
	t.Parallel()
	needRoot(t)
	sched, err := nss.LookupUID(1) // a system account that has a group
	if err != nil {
		t.Skip(err)
	}
	v := newVault(t, &syscall.Credential{Uid: sched.UID, Gid: sched.GID})
	must(t, os.Chmod(v.Key, 0o400))
	must(t, os.Chmod(v.JWKS, 0o640))
	must(t, os.Chmod(filepath.Dir(v.Key), 0o700))
	c := v.config(testConfig{Service: identityOf("65534", "65534", "")})
	c.Service.SchedGroups, err = nss.Groups(sched)
	must(t, err)
	g := serve(t, nil, c)
	hints := map[string]string{}
	for name, path := range map[string]string{"key": v.Key, "key set": v.JWKS} {
		r := g.await("no "+name+" of "+map[string]string{"key": "HS256", "key set": "RS256"}[name]+" tokens; the daemons verify such tokens", nil)
		if r["level"] != "INFO" || r["file"] != path || !strings.Contains(fmt.Sprint(r["because"]), "permission denied") {
			t.Errorf("%v", r)
		}
		hints[name] = fmt.Sprint(r["hint"])
	}
	for name, token := range map[string]string{"HS256": hs256(v.key), "HS256 forged": hs256(strangersKey), "RS256": rs256(t, v.rsa), "RS256 forged": rs256(t, strangersRSA())} {
		g.checkAllWorkers(name, token, "unknown")
	}
	if g.count("keeper ready") != 0 {
		t.Error("a keeper was started")
	}
	v.renew() // which has no effect
	g.checkAllWorkers("the next key's", hs256(v.key), "unknown")

	for name, hint := range hints {
		if want := map[string]string{"key": fmt.Sprintf("chown :root %[1]s && chmod 0710 %[1]s && ", filepath.Dir(v.Key)),
			"key set": "chmod a+x " + filepath.Dir(v.Key) + " && "}[name]; !strings.HasPrefix(hint, want) {
			t.Errorf("%s: %s, want %s", name, hint, want)
		}
		if out, err := exec.Command("/bin/sh", "-c", hint).CombinedOutput(); err != nil {
			t.Errorf("%s: %s: %v\n%s", name, hint, err, out)
		}
	}
	for _, path := range []string{v.Key, v.JWKS} {
		c := exec.Command("/bin/cat", path)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: v.as}
		if _, err := c.Output(); err != nil {
			t.Errorf("SchedUser can't read %s: %v", path, err)
		}
	}
	g.awaitVerdict(hs256(v.key), "good")
	g.awaitVerdict(hs256(strangersKey), "bad")
	g.awaitVerdict(rs256(t, v.rsa), "good")
	g.awaitVerdict(rs256(t, strangersRSA()), "bad")
	old := hs256(v.key)
	v.renew()
	must(t, os.Chown(v.Key, 0, 0))
	g.awaitVerdict(old, "bad")
	g.awaitVerdict(hs256(v.key), "good")
}

// TestTokenKeyStaysInTheKeeper searches the memory of every process of a
// gateway that has verified a token with the key. The key must be in the keeper
// and in no other process.
func TestTokenKeyStaysInTheKeeper(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, owner := range []string{"root", "both"} {
		t.Run(owner, func(t *testing.T) {
			v := newVault(t, plainUser(t))
			must(t, os.Chown(v.Key, 0, 0))
			if owner == "both" {
				must(t, os.Chown(v.Key, 0, int(v.as.Gid)))
				must(t, os.Chmod(v.Key, 0o440))
			}
			c := v.config(testConfig{Service: identityOf("65534", "65534", "")})
			c.Setup.LogLevel = int8(slog.LevelDebug)
			g := serve(t, nil, c)
			workers := map[int]bool{}
			for range 10 {
				g.checkVerdict("HS256", hs256(v.key), "good")
				workers[g.workerPID()] = true
			}
			patterns := [][]byte{v.key[:32], v.key[32:]}
			g.checkOnlyKeeperHas(patterns, workers, v.Key)
			g.checkNotLogged(patterns)
			keeper := g.keeperPID(1)
			for _, d := range descriptors(t, keeper) {
				if strings.Contains(d, filepath.Base(v.Key)) {
					t.Errorf("the keeper has the file open still: %s", d)
				}
			}
			if uid := strings.Fields(status(t, keeper, "Uid"))[0]; uid == "0" || uid == "65534" || uid == strconv.Itoa(int(v.uid)) {
				t.Errorf("the keeper's uid is %s", uid)
			}
		})
	}
}

// TestHostileKeepersOfTokens checks that the start fails if the keeper of the
// token key refuses to serve or breaks the protocol, and that the error gives
// the reason.
func TestHostileKeepersOfTokens(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		"refuses":                 `the keeper cannot serve: no\x1bkeeper`,
		"unrequested keys result": "", // the error depends on whether the keeper's message arrives before the keys are sent
		"silent":                  "did not read the keys within",
	} {
		t.Run(part, func(t *testing.T) {
			as := plainUser(t)
			c := newVault(t, as).config(testConfig{Argv: argv{ipc.Keeper: {part}}})
			if part == "silent" {
				c.StartLimit = hangLimit
			}
			if text, _ := launch(t, as, c).failure(); !strings.Contains(text, want) {
				t.Errorf("error %q, want %q", text, want)
			}
		})
	}
}

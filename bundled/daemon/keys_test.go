package daemon

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/auth"
	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/internal/errs"
)

var b64 = base64.RawURLEncoding.EncodeToString

// providers returns two keys of an identity provider, an old one and a new one.
var providers = sync.OnceValue(func() (keys [2]*rsa.PrivateKey) {
	for i := range keys {
		var err error
		if keys[i], err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			panic(err)
		}
	}
	return keys
})

// jwk returns the public part of key as a member of a key set.
func jwk(kid string, key *rsa.PrivateKey) string {
	return fmt.Sprintf(`{"kty":"RSA","kid":%q,"use":"sig","alg":"RS256","n":%q,"e":"AQAB"}`, kid, b64(key.N.Bytes()))
}

func keySet(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

// rs256 returns an RS256 token for the given user. The token is valid for an
// hour.
func rs256(kid string, key *rsa.PrivateKey, user string) string {
	signed := head("RS256", kid) + "." + payload(user)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		panic(err)
	}
	return signed + "." + b64(signature)
}

func hs256(secret []byte, user string) string {
	signed := head("HS256", "") + "." + payload(user)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(signed))
	return signed + "." + b64(mac.Sum(nil))
}

func head(alg, kid string) string {
	if kid != "" {
		kid = fmt.Sprintf(`,"kid":%q`, kid)
	}
	return b64(fmt.Appendf(nil, `{"alg":%q,"typ":"JWT"%s}`, alg, kid))
}

func payload(user string) string {
	now := time.Now().Unix()
	return b64(fmt.Appendf(nil, `{"iat":%d,"exp":%d,"preferred_username":%q}`, now, now+3600, user))
}

// A keyring is a directory that contains a key and a key set. Both files belong
// to the user self.
type keyring struct {
	dir    string
	secret []byte
	self   nss.User
}

func newKeyring(t *testing.T) *keyring {
	t.Helper()
	self, err := nss.LookupUID(uint32(os.Geteuid()))
	if err != nil {
		t.Skip("the user of this process has no name")
	}
	if self.UID != 0 && self.GID == 0 {
		t.Skip("a user in group 0 is not accepted")
	}
	k := &keyring{dir: t.TempDir(), secret: []byte("this key has thirty-three bytes !"), self: self}
	if err := os.Chmod(k.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	k.write(t, "key", string(k.secret), 0o600)
	k.write(t, "jwks", keySet(jwk("a", providers()[0])), 0o644)
	return k
}

func (k *keyring) path(name string) string { return filepath.Join(k.dir, name) }

// write replaces a file atomically.
func (k *keyring) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	next := k.path("next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(next, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, k.path(name)); err != nil {
		t.Fatal(err)
	}
}

func (k *keyring) auth(key, jwks string) *conf.Auth {
	a := &conf.Auth{AuthType: "auth/cred", JWT: true, UserClaimField: "preferred_username"}
	if key != "" {
		a.JWTKey = k.path(key)
	}
	if jwks != "" {
		a.JWKS = k.path(jwks)
	}
	return a
}

// logBuffer is a log that can be read and written concurrently.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (d *logBuffer) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *logBuffer) count(part string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Count(d.text.String(), part)
}

func (d *logBuffer) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// TestKeysVerify checks which tokens are accepted with each combination of
// keys. A public key must never be used as a secret for HS256.
func TestKeysVerify(t *testing.T) {
	k := newKeyring(t)
	key, otherKey := providers()[0], providers()[1]
	userName := k.self.Name
	tokens := map[string]string{
		"hs":                    hs256(k.secret, userName),
		"hs by modulus":         hs256(key.N.Bytes(), userName),
		"hs by the file":        hs256([]byte(keySet(jwk("a", key))), userName),
		"rs":                    rs256("a", key, userName),
		"rs without kid":        rs256("", key, userName),
		"rs, wrong kid":         rs256("b", key, userName),
		"rs by another":         rs256("a", otherKey, userName),
		"rs of an unknown user": rs256("a", key, "no-such-user-here"),
	}
	rs := []string{"rs", "rs without kid"}
	for _, tt := range []struct {
		name, key, jwks string
		good            []string
	}{
		{"a key", "key", "", []string{"hs"}},
		{"a key set", "", "jwks", rs},
		{"both", "key", "jwks", append([]string{"hs"}, rs...)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			keys, err := ReadKeys(t.Context(), "c", k.auth(tt.key, tt.jwks), k.self, quiet)
			if err != nil {
				t.Fatal(err)
			}
			if (keys.Key != nil) != (tt.key != "") {
				t.Errorf("a key to sign with: %t", keys.Key != nil)
			}
			good := map[string]bool{}
			for _, name := range tt.good {
				good[name] = true
			}
			for name, token := range tokens {
				id, err := keys.WithTickets()(token, "")
				if (err == nil) != good[name] || err == nil && (id.Name != userName || id.UID != k.self.UID || id.Expires.IsZero()) {
					t.Errorf("%s: %+v, %v", name, id, err)
				}
			}
		})
	}
}

// TestKeysAreRefused checks that a daemon does not start if it can't use a key.
// The error must name the file, the problem and the command that fixes the
// problem.
func TestKeysAreRefused(t *testing.T) {
	k := newKeyring(t)
	good := keySet(jwk("a", providers()[0]))
	k.write(t, "short", "31 bytes are not enough, really", 0o600)
	k.write(t, "empty", "", 0o600)
	k.write(t, "open", string(k.secret), 0o644)
	k.write(t, "garbage", "-----BEGIN PUBLIC KEY-----", 0o644)
	k.write(t, "no keys", `{"keys":[]}`, 0o644)
	k.write(t, "private", strings.Replace(good, `"kty"`, `"d":"AQAB","kty"`, 1), 0o644)
	k.write(t, "small", strings.Replace(good, b64(providers()[0].N.Bytes()), b64(providers()[0].N.Bytes()[:128]), 1), 0o644)
	k.write(t, "writable", good, 0o666)
	if err := os.Symlink("key", k.path("link")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		key, jwks string
		text      string // expected in the error, in addition to the name of the file
		hint      string
	}{
		{"absent", "", "no such file", "head -c 32 /dev/urandom"},
		{"short", "", "31 bytes", "head -c 32 /dev/urandom"},
		{"empty", "", "0 bytes", "head -c 32 /dev/urandom"},
		{"open", "", "lets other users access it", "chmod 0600 "},
		{"link", "", "symbolic link", "readlink -f "},
		{"", "absent", "no such file", "curl "},
		{"", "garbage", "not a JSON object", "curl "},
		{"", "no keys", "no RSA key", "curl "},
		{"", "private", "private", "curl "},
		{"", "small", "bits", "curl "},
		{"", "writable", "lets other users write it", "chmod o-w "},
		{"key", "garbage", "not a JSON object", "curl "}, // the daemon does not start with one good and one bad key
		{"open", "jwks", "lets other users access it", "chmod 0600 "},
	}
	for _, tt := range tests {
		t.Run(tt.key+" "+tt.jwks, func(t *testing.T) {
			_, err := ReadKeys(t.Context(), "c", k.auth(tt.key, tt.jwks), k.self, quiet)
			file := k.path(tt.key)
			if tt.jwks != "" && tt.jwks != "jwks" {
				file = k.path(tt.jwks)
			}
			if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), tt.text) {
				t.Fatalf("got %v, want %s in it", err, tt.text)
			}
			if hint := errs.HintOf(err); !strings.Contains(hint, tt.hint) || !strings.Contains(hint, filepath.Base(file)) {
				t.Errorf("hint %s, want %s", hint, tt.hint)
			}
			if strings.Contains(err.Error()+errs.HintOf(err), string(k.secret)) {
				t.Error("shows the key")
			}
		})
	}
}

// TestOwnersOfKeys checks that keys are accepted if SchedUser or root owns
// them, and refused if another user owns them.
func TestOwnersOfKeys(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	k := newKeyring(t)
	sched := nss.User{Name: "sched", UID: 30001, GID: 30001}
	for uid, good := range map[int]bool{0: true, 30001: true, 30002: false} {
		for file, a := range map[string]*conf.Auth{"key": k.auth("key", ""), "jwks": k.auth("", "jwks")} {
			if err := os.Chown(k.path(file), uid, uid); err != nil {
				t.Fatal(err)
			}
			_, err := ReadKeys(t.Context(), "c", a, sched, quiet)
			if (err == nil) != good || !good && !strings.Contains(errs.HintOf(err), "chown 30001 ") {
				t.Errorf("%s of uid %d: %v, %s", file, uid, err, errs.HintOf(err))
			}
		}
	}
}

// TestDirectoriesOfKeys checks that a key is refused in two cases: its
// directory belongs to a user other than root and SchedUser, or the directory
// is writable by a group to which other users may belong.
func TestDirectoriesOfKeys(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	k := newKeyring(t)
	sched := nss.User{Name: "sched", UID: 30001, GID: 30001}
	for _, tt := range []struct {
		uid, gid int
		mode     os.FileMode
		want     string
	}{
		{30001, 30001, 0o700, ""},
		{0, 30001, 0o710, ""},
		{0, 0, 0o775, ""},
		{30002, 30002, 0o700, "belongs to uid 30002, must belong to uid 0 or 30001"},
		{0, 30002, 0o770, "is writable by group 30002"},
	} {
		if err := errors.Join(os.Chown(k.dir, tt.uid, tt.gid), os.Chmod(k.dir, tt.mode)); err != nil {
			t.Fatal(err)
		}
		for file, a := range map[string]*conf.Auth{"key": k.auth("key", ""), "jwks": k.auth("", "jwks")} {
			_, err := ReadKeys(t.Context(), "c", a, sched, quiet)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, %+v: %v", file, tt, err)
			}
		}
	}
}

// TestKeysInAHome checks that keys are accepted in a directory that was created
// with umask 002, if the group of the directory is its owner's private group.
func TestKeysInAHome(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	sched, err := nss.LookupUID(1) // a system account
	if err != nil || !nss.PrivateGroup(sched.UID, sched.GID) {
		t.Skip("uid 1 has no group of its own")
	}
	k := newKeyring(t)
	if err := errors.Join(os.Chown(k.dir, int(sched.UID), int(sched.GID)), os.Chmod(k.dir, 0o775)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKeys(t.Context(), "c", k.auth("key", "jwks"), sched, quiet); err != nil {
		t.Error(err)
	}
}

// TestAuthMethods checks how ReadKeys reports that no authentication method is
// configured, and how it reports other mistakes in the authentication section.
func TestAuthMethods(t *testing.T) {
	for _, tt := range []struct {
		name string
		auth conf.Auth
		text string // of the error; "": none
		hint string
		logs string
	}{
		{name: "a socket alone", auth: conf.Auth{AuthType: "auth/cred", AuthSocket: "/s"}},
		{name: "tokens without a key", auth: conf.Auth{AuthType: "auth/cred", AuthSocket: "/s", JWT: true}, text: "without a key", hint: "jwks=PATH"},
		{name: "munge", auth: conf.Auth{AuthType: "auth/munge", JWT: true, JWTKey: "/k"}, text: "AuthType=auth/munge", hint: "AuthType=auth/cred"},
		{name: "an unused key", auth: conf.Auth{AuthType: "auth/cred", AuthSocket: "/s", JWKS: "/j"}, logs: "AuthAltTypes=auth/jwt is not set"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log logBuffer
			keys, err := ReadKeys(t.Context(), "/etc/c", &tt.auth, nss.User{}, slog.New(slog.NewTextHandler(&log, nil)))
			if (err == nil) != (tt.text == "") || keys.Key != nil || keys.Verify != nil {
				t.Fatalf("%+v, %v", keys, err)
			}
			if err != nil && (!strings.HasPrefix(err.Error(), "/etc/c: ") ||
				!strings.Contains(err.Error(), tt.text) || !strings.Contains(errs.HintOf(err), tt.hint)) {
				t.Errorf("%v, hint %s", err, errs.HintOf(err))
			}
			if (log.count("level=WARN") > 0) != (tt.logs != "") || tt.logs != "" && log.count(tt.logs) == 0 {
				t.Errorf("logged %s", log.String())
			}
		})
	}
}

// TestKeySetIsFollowed checks that a provider's new keys are accepted without a
// restart, and that removed keys are no longer accepted. A broken file must
// change nothing, and must be logged once.
func TestKeySetIsFollowed(t *testing.T) {
	k := newKeyring(t)
	var log logBuffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	keys, err := ReadKeys(ctx, "c", k.auth("", "jwks"), k.self, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if log.count(`level=INFO msg="key set read" file=`+k.path("jwks")+` keys="kid \"a\""`+"\n") != 1 {
		t.Errorf("logged %s", log.String())
	}
	first, second := rs256("a", providers()[0], k.self.Name), rs256("b", providers()[1], k.self.Name)
	good := func(token string) bool {
		_, err := keys.Verify(token, "")
		return err == nil
	}
	await := func(what string, happened func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !happened(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("did not happen: %s\n%s", what, log.String())
			}
		}
	}
	if !good(first) || good(second) {
		t.Fatal("the first key set")
	}

	k.write(t, "jwks", keySet(jwk("a", providers()[0]), jwk("b", providers()[1])), 0o644)
	await("the second key is taken beside the first", func() bool { return good(second) && good(first) })
	await("it is logged", func() bool { return log.count(`"b\""`+"\n") == 1 })

	k.write(t, "jwks", keySet(jwk("b", providers()[1])), 0o644)
	await("the first key is taken no more", func() bool { return !good(first) })
	if !good(second) {
		t.Error("the second key was removed together with the first")
	}

	// The broken file must be logged even though no token is verified now.
	k.write(t, "jwks", `{"keys":`, 0o644)
	const rejected = "new key set rejected; keeping the current one"
	await("the broken file is logged", func() bool { return log.count(rejected) > 0 })
	if log.count("level=ERROR") != 1 || log.count("hint=") != 1 || log.count(k.path("jwks")) < 3 {
		t.Errorf("logged %s", log.String())
	}
	if err := os.Remove(k.path("jwks")); err != nil {
		t.Fatal(err)
	}
	await("the missing file is logged", func() bool { return log.count(rejected) > 1 })
	if good(first) || !good(second) {
		t.Error("the keys changed although the new file can't be used")
	}
	k.write(t, "jwks", keySet(jwk("a", providers()[0])), 0o644)
	await("the corrected file counts", func() bool { return good(first) && !good(second) })
	if n := log.count("level=ERROR"); n != 2 {
		t.Errorf("%d errors are logged:\n%s", n, log.String())
	}
}

// TestNoTicketsByAKeySet checks that a daemon that has only a key set does not
// accept tickets. A daemon that also has the cluster's HS256 key must accept
// them.
func TestNoTicketsByAKeySet(t *testing.T) {
	k := newKeyring(t)
	keys, err := ReadKeys(t.Context(), "c", k.auth("", "jwks"), k.self, quiet)
	if err != nil {
		t.Fatal(err)
	}
	key, err := auth.NewKey(k.secret)
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := Ticket(key, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := keys.WithTickets()(ticket, ""); err == nil {
		t.Errorf("a ticket is %+v", id)
	}
	bothKeys, err := ReadKeys(t.Context(), "c", k.auth("key", "jwks"), k.self, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bothKeys.WithTickets()(ticket, ""); err != nil {
		t.Errorf("a ticket beside a key set: %v", err)
	}
}

// TestLongestTokens checks that the longest lifespan that can be configured is
// also the longest that package auth accepts when it creates a token.
func TestLongestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(path, []byte("StorageLoc=/s\nAuthAltParameters=max_token_lifespan=4000000000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := conf.ReadDbd(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.LifespanLimit(); got != auth.MaxLifespan {
		t.Errorf("%v, want %v", got, auth.MaxLifespan)
	}
}

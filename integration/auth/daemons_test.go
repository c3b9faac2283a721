package auth

import (
	"bytes"
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"schedrestd/bundled/demo/thread"
	"schedrestd/integration/harness"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// A daemons value is a site that has both daemons but no gateway.
type daemons struct {
	*harness.Lab
	schedctl string // copy of schedctl that every user may run
	conf     string // copy of schedctl's configuration that every user may read
}

// newDaemons creates a site and sets its AuthAltParameters. In parameters, KEY
// and JWKS stand for the paths of the site's keys. The change function may
// adjust the configuration of both daemons. The daemons are not started yet.
func newDaemons(t *testing.T, parameters string, change ...func(conf string) string) *daemons {
	t.Helper()
	d := &daemons{Lab: harness.PrepareLab(t)}
	harness.Must(t, os.Chmod(filepath.Join(d.Dir, "run"), 0o711))
	public := filepath.Join(d.Dir, "public")
	harness.Must(t, os.Mkdir(public, 0o700))
	harness.Must(t, os.Chmod(public, 0o711))
	d.Ctld.Check = func(ctx context.Context) error { return d.controller("unix").Verify(ctx, model.Credential{}) }
	harness.Must(t, d.Configure())
	d.setParameters(parameters)
	for _, f := range change {
		d.rewrite(f)
	}
	d.schedctl, d.conf = filepath.Join(public, "schedctl"), filepath.Join(public, "sched.conf")
	copyTo(t, filepath.Join(harness.Bin, "schedctl"), d.schedctl, 0o755)
	copyTo(t, d.Conf(), d.conf, 0o644)
	return d
}

func copyTo(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	in, err := os.Open(from)
	harness.Must(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	harness.Must(t, err)
	_, err = io.Copy(out, in)
	harness.Must(t, err)
	harness.Must(t, out.Close())
	harness.Must(t, os.Chmod(to, mode))
}

// jwksPath returns the path of the site's key set.
func (d *daemons) jwksPath() string { return filepath.Join(d.Dir, "etc", "jwks.json") }

var altParameters = regexp.MustCompile(`AuthAltParameters=.*`)

// setParameters sets AuthAltParameters in both configurations. Running daemons
// must be restarted to use them.
func (d *daemons) setParameters(text string) {
	d.T.Helper()
	text = strings.NewReplacer("KEY", d.Key(), "JWKS", d.jwksPath()).Replace(text)
	d.rewrite(func(conf string) string {
		return altParameters.ReplaceAllLiteralString(conf, `AuthAltParameters="`+text+`"`)
	})
}

// rewrite rewrites both configurations with change.
func (d *daemons) rewrite(change func(conf string) string) {
	d.T.Helper()
	for _, path := range []string{d.Conf(), d.DbdConf()} {
		text, err := os.ReadFile(path)
		harness.Must(d.T, err)
		harness.Must(d.T, os.WriteFile(path, []byte(change(string(text))), 0o600))
	}
}

// start starts both daemons, or starts them again.
func (d *daemons) start() {
	d.T.Helper()
	for _, name := range []string{"schedctld", "scheddbd"} {
		if running := d.Daemons[name]; running != nil {
			running.Stop()
		}
	}
	d.Up(d.DBD)
	d.Up(d.Ctld)
}

// daemonLog returns the log of the named daemon.
func (d *daemons) daemonLog(name string) string {
	d.T.Helper()
	text, err := os.ReadFile(d.Log(name))
	harness.Must(d.T, err)
	return string(text)
}

// controller returns a client that connects to schedctld over "tcp" or "unix".
// If a user is given, the client connects to the socket as that user.
func (d *daemons) controller(network string, users ...harness.Account) *client.Client {
	at := fmt.Sprintf("127.0.0.1:%d", d.Controller)
	if network == "unix" {
		at = d.Socket()
	}
	return client.New(client.Config{Controllers: []client.Address{{Name: d.Node, Network: network, Address: at}}, Dial: dialer(users)})
}

// accounting does the same as controller, for scheddbd.
func (d *daemons) accounting(network string, users ...harness.Account) *client.Accounting {
	at := fmt.Sprintf("127.0.0.1:%d", d.Accounting)
	if network == "unix" {
		at = d.DbdSocket()
	}
	return client.NewAccounting(client.Config{Cluster: "demo", Accounting: []client.Address{{Name: d.Node, Network: network, Address: at}}, Dial: dialer(users)})
}

func dialer(users []harness.Account) func(context.Context, client.Address) (net.Conn, error) {
	if len(users) == 0 {
		return nil
	}
	return func(_ context.Context, a client.Address) (net.Conn, error) {
		return thread.DialAs(users[0].UID, users[0].GID, a.Address)
	}
}

// run runs schedctl as the user u, with the environment variables env. It
// returns standard output, standard error and the exit status.
func (d *daemons) run(u harness.Account, env []string, args ...string) (out, errOut string, status int) {
	d.T.Helper()
	cmd := exec.Command(d.schedctl, append([]string{"-f", d.conf}, args...)...)
	cmd.Env, cmd.Dir = append([]string{"PATH=/usr/bin:/bin"}, env...), "/"
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: []uint32{}}}
	}
	if err := cmd.Run(); cmd.ProcessState == nil {
		d.T.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// self returns the user of this process.
func (d *daemons) self() harness.Account {
	return harness.Account{Name: d.Owner, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
}

// issuer makes tokens as any other tool would: with Go's standard library, and
// without this project's code.
type issuer struct {
	secret []byte          // key of HS256
	key    *rsa.PrivateKey // key of RS256
	kid    string
}

var issuerKeys = sync.OnceValue(func() (keys [2]*rsa.PrivateKey) {
	for i := range keys {
		var err error
		if keys[i], err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			panic(err)
		}
	}
	return keys
})

func base64url(b []byte) string                   { return base64.RawURLEncoding.EncodeToString(b) }
func decodeBase64url(text string) ([]byte, error) { return base64.RawURLEncoding.DecodeString(text) }

// hs256 returns the issuer that has the site's key.
func (d *daemons) hs256() issuer {
	d.T.Helper()
	secret, err := os.ReadFile(d.Key())
	harness.Must(d.T, err)
	return issuer{secret: secret}
}

// token returns a token with the user's name in the claim sun. The token became
// valid an hour ago, and expires after lifespan.
func (i issuer) token(user string, lifespan time.Duration) string {
	return i.tokenWithClaim("sun", user, lifespan)
}

func (i issuer) tokenWithClaim(claim, user string, lifespan time.Duration) string {
	alg, kid := "HS256", ""
	if i.key != nil {
		alg = "RS256"
	}
	if i.kid != "" {
		kid = fmt.Sprintf(`,"kid":%q`, i.kid)
	}
	now := time.Now()
	signed := base64url(fmt.Appendf(nil, `{"alg":%q,"typ":"JWT"%s}`, alg, kid)) + "." +
		base64url(fmt.Appendf(nil, `{"iat":%d,"exp":%d,%q:%q}`, now.Add(-time.Hour).Unix(), now.Add(lifespan).Unix(), claim, user))
	return signed + "." + base64url(i.sign([]byte(signed)))
}

func (i issuer) sign(text []byte) []byte {
	if i.key == nil {
		mac := hmac.New(sha256.New, i.secret)
		mac.Write(text)
		return mac.Sum(nil)
	}
	digest := sha256.Sum256(text)
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, digest[:])
	if err != nil {
		panic(err)
	}
	return signature
}

// publish writes a key set with the public keys of issuers. It replaces the
// file, so that no reader sees an incomplete key set.
func (d *daemons) publish(issuers ...issuer) {
	d.T.Helper()
	var keys []string
	for _, i := range issuers {
		kid := ""
		if i.kid != "" {
			kid = fmt.Sprintf(`"kid":%q,`, i.kid)
		}
		keys = append(keys, fmt.Sprintf(`{"kty":"RSA",%s"n":%q,"e":"AQAB","x5t":"passed over"}`, kid, base64url(i.key.N.Bytes())))
	}
	d.replaceKeySet(`{"keys":[` + strings.Join(keys, ",") + `]}`)
}

func (d *daemons) replaceKeySet(text string) {
	d.T.Helper()
	harness.Must(d.T, os.WriteFile(d.jwksPath()+".new", []byte(text), 0o600))
	harness.Must(d.T, os.Rename(d.jwksPath()+".new", d.jwksPath()))
}

func tokenCredential(token string) model.Credential { return model.Credential{Token: token} }

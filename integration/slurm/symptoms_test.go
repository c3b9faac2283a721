package slurm

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	demo "schedrestd/bundled/demo/site"
)

// symptom is a row of the table in docs/TROUBLESHOOTING.md. The test changes
// slurm.conf, the gateway's arguments or environment, or the request. It checks
// the result that the row describes.
type symptom struct {
	name   string
	conf   func(string) string // changes slurm.conf
	mode   os.FileMode         // mode of the file; 0: 0644
	args   []string            // replaces restArgs, the arguments of a service that uses tokens
	env    []string            // replaces SLURM_JWT=daemon
	token  func(m *machine, t *testing.T) string
	header string
	path   string
	uid    uint32 // send the request over the socket as this user
	retry  bool   // repeat the request until it gets the status
	status int    // 0: the gateway does not start
	logged string // expected in the log, and in backquotes on the page
	only   string // the releases with this result, or "s2n" for daemons with TLS; "" for all
}

func appendLine(line string) func(string) string {
	return func(c string) string { return c + line + "\n" }
}

func replaceText(old, replacement string) func(string) string {
	return func(c string) string { return regexp.MustCompile(old).ReplaceAllLiteralString(c, replacement) }
}

// signedToken returns a function that makes a token for alice. The token is
// valid from issued to expires, both in seconds from now.
func signedToken(issued, expires int64, forged bool) func(*machine, *testing.T) string {
	return func(m *machine, t *testing.T) string {
		key, err := os.ReadFile(filepath.Join(m.root, "etc/slurm/jwt_hs256.key"))
		must(t, err)
		if forged {
			key = []byte(strings.Repeat("another key than theirs ", 2))
		}
		now := time.Now().Unix()
		text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
			base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"iat":%d,"exp":%d,"sun":"alice"}`, now+issued, now+expires))
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
}

// guessedToken returns alice's token with a new random signature.
func guessedToken(m *machine, t *testing.T) string {
	token := m.token[:strings.LastIndexByte(m.token, '.')+1]
	var random [32]byte
	rand.Read(random[:])
	return token + base64.RawURLEncoding.EncodeToString(random[:])
}

func aliceToken(m *machine, _ *testing.T) string { return m.token }

const (
	jobsPath     = "/slurm/v0.0.42/jobs"
	accountsPath = "/slurmdb/v0.0.42/accounts"
)

var (
	restArgs  = []string{"-u", "rest", "-g", "rest"}
	localArgs = []string{"-a", "rest_auth/local"}
	becomeEnv = []string{"SCHEDRESTD_SECURITY=become_user"}
)

var symptoms = []symptom{
	{name: "unreadable", mode: 0o600, args: []string{}, logged: "permission denied"},
	{name: "writable", mode: 0o666, logged: "lets other users write it"},
	{name: "unknown host", conf: replaceText(`(?m)^SlurmctldHost=.*`, "SlurmctldHost=nowhere"), token: aliceToken, path: "/readyz", status: 503, logged: "host nowhere does not exist"},
	{name: "no CA", conf: appendLine("TLSType=tls/s2n\nTLSParameters=ca_cert_file=/etc/slurm/nowhere.pem"), logged: "TLSParameters: ca_cert_file: configuration"},
	{name: "no AuthAltTypes", conf: replaceText(`(?m)^AuthAlt.*\n`, ""),
		logged: "rest_auth/jwt is not loaded: the configuration has no AuthAltTypes=auth/jwt"},
	{name: "no SLURM_JWT", env: []string{"NONE=1"},
		logged: "rest_auth/jwt is not loaded: SCHED_JWT=daemon is not set"},
	{name: "no AuthAltTypes, with a socket", conf: replaceText(`(?m)^AuthAlt.*\n`, ""), token: aliceToken, path: jobsPath, status: 401,
		logged: "rest_auth/jwt is not loaded: the configuration has no AuthAltTypes=auth/jwt"},
	{name: "as root", args: []string{}, logged: "refusing to start: would serve as root"},

	{name: "no token", path: jobsPath, status: 401, logged: "no valid credential was sent"},
	{name: "expired", token: signedToken(-200, -100, false), path: jobsPath, status: 401, logged: "token: expired"},
	{name: "of the future", token: signedToken(100, 400, false), path: jobsPath, status: 401, logged: "token: issued"},
	{name: "forged", token: signedToken(0, 300, true), path: jobsPath, status: 401, logged: "does not accept the credential"},
	{name: "guesses", token: guessedToken, path: jobsPath, retry: true, status: 429, logged: "source blocked"},
	{name: "acting for another", token: aliceToken, header: "X-SLURM-USER-NAME: bob", path: jobsPath, status: 401,
		logged: "does not accept the credential"},
	{name: "version", token: aliceToken, path: "/slurm/v0.0.39/jobs", status: 404, logged: "unsupported API version"},
	{name: "wrong port", conf: appendLine("SlurmctldPort=6999"), token: aliceToken, path: "/slurm/v0.0.42/ping", status: 503,
		logged: "the controller can't be reached"},
	{name: "wrong port of slurmdbd", conf: appendLine("AccountingStoragePort=6998"), token: aliceToken, path: accountsPath, status: 503,
		logged: "the accounting daemon can't be reached"},
	{name: "wrong port of slurmdbd, jobs", conf: appendLine("AccountingStoragePort=6998"), token: aliceToken, path: jobsPath, status: 200},

	{name: "TLS only in the gateway", conf: appendLine(strayTLS), token: aliceToken, path: jobsPath, status: 504, only: "22.05 24.11",
		logged: "does not answer the TLS handshake in time"},
	{name: "TLS only in the gateway, with a newer Slurm", conf: appendLine(strayTLS), token: aliceToken, path: jobsPath, status: 503, only: "26.05",
		logged: "does not speak TLS"},
	{name: "TLS only in the daemons", conf: replaceText("TLSType=.*", ""), token: aliceToken, path: jobsPath, status: 503, only: "s2n",
		logged: "requires TLS"},
	{name: "TLS only in the daemons, slurmdbd", conf: replaceText("TLSType=.*", "MessageTimeout=3"), token: aliceToken, path: accountsPath, status: 504, only: "s2n",
		logged: "set TLSType=tls/s2n"},
	{name: "another CA", conf: appendLine("TLSParameters=ca_cert_file=" + unusedCA), token: aliceToken, path: jobsPath, status: 503, only: "s2n",
		logged: "is not from the cluster's CA"},

	{name: "no munged", conf: replaceText(`munge\.socket\.2`, "nothing"), args: localArgs, env: becomeEnv, uid: 20001, path: jobsPath, status: 503,
		logged: "munged can't be reached"},
	{name: "munged of another key", conf: replaceText(`/run/munge/munge\.socket\.2`, "/run/munge-other/socket"), args: localArgs, env: becomeEnv,
		uid: 20001, path: jobsPath, status: 401, logged: "does not accept the credential"},
	{name: "root asks", args: localArgs, env: becomeEnv, path: jobsPath, status: 403, logged: "it is root's, who gets no worker"},
}

// TestPageSymptoms provokes the problems that docs/TROUBLESHOOTING.md marks
// with ✓. It checks the answer to the client, and the log.
func TestPageSymptoms(t *testing.T) {
	m := useCluster(t)
	text := symptomsPage(t)
	m.startOtherMunged(t)
	m.writeUnusedCA(t)
	kind := m.release
	if withS2N {
		kind = "s2n"
	}
	for _, s := range symptoms {
		if s.only != "" && !strings.Contains(s.only, kind) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			if s.logged != "" && !strings.Contains(text, s.logged+"`") && !strings.Contains(text, "`"+s.logged) {
				t.Errorf("the page does not have %q", s.logged)
			}
			log := m.provoke(t, s)
			if !strings.Contains(log, s.logged) {
				t.Errorf("not logged: %q\n%s", s.logged, log)
			}
		})
	}
}

// unusedCA is the path of a CA that no daemon uses.
const unusedCA = "/etc/unused/ca_cert.pem"

// strayTLS makes the gateway speak TLS with a controller that does not.
const strayTLS = "SlurmctldPort=6817\nMessageTimeout=3\nTLSType=tls/s2n\nTLSParameters=ca_cert_file=" + unusedCA

func (m *machine) writeUnusedCA(t *testing.T) {
	t.Helper()
	dir := filepath.Dir(filepath.Join(m.root, unusedCA))
	must(t, os.RemoveAll(dir))
	must(t, os.Mkdir(dir, 0o755))
	must(t, demo.WriteCertificates(dir, "head"))
}

// provoke runs a gateway with the mistake that s describes. It returns the log,
// followed by the body of the answer.
func (m *machine) provoke(t *testing.T, s symptom) string {
	t.Helper()
	conf := m.writeConf(t, s)
	args, env := s.args, s.env
	if args == nil {
		args = restArgs
	}
	if env == nil {
		env = []string{"SLURM_JWT=daemon"}
	}
	gateway := append([]string{"/opt/gateway/schedrestd", "-v", "-f", conf}, args...)
	if s.status == 0 {
		return m.runFailing(t, s, append(append(env, gateway...), "127.0.0.1:6899"))
	}
	gateway = append(gateway, "unix:"+gatewaySocket)
	d := m.start(t, "gateway", gatewaySocket, env, gateway...)
	must(t, os.Chmod(filepath.Join(m.root, gatewaySocket), 0o666))
	c := m.client(gatewaySocket)
	if s.uid != 0 {
		c = m.clientAs(s.uid, s.uid, gatewaySocket)
	}
	send := func() answer {
		var headers []string
		if s.token != nil {
			headers = append(headers, "X-SLURM-USER-TOKEN: "+s.token(m, t))
		}
		if s.header != "" {
			headers = append(headers, s.header)
		}
		a, err := sendRequest(c, http.MethodGet, s.path, "", headers...)
		must(t, err)
		return a
	}
	a := send()
	for tries := 1; s.retry && a.status != s.status && tries < 100; tries++ {
		a = send()
	}
	if a.status != s.status {
		t.Errorf("status %d, want %d: %.500s", a.status, s.status, a.body)
	}
	var output string
	eventually(t, "the gateway logs "+s.logged, func() bool { // the dispatcher passes the worker's line on
		log, err := os.ReadFile(d.log)
		must(t, err)
		output = string(log) + string(a.body)
		return strings.Contains(output, s.logged)
	})
	return output
}

// writeConf writes the slurm.conf of the row.
func (m *machine) writeConf(t *testing.T, s symptom) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(m.root, "etc/slurm/slurm.conf"))
	must(t, err)
	if throughTLS {
		text = append(text, tlsLines...)
	}
	conf := string(text)
	if s.conf != nil {
		if conf = s.conf(conf); conf == string(text) {
			t.Fatal("slurm.conf has no text to replace")
		}
	}
	const name = "/etc/slurm/faulty.conf"
	file := filepath.Join(m.root, name)
	t.Cleanup(func() { os.Remove(file) })
	must(t, os.WriteFile(file, []byte(conf), 0o644))
	if s.mode != 0 {
		must(t, os.Chmod(file, s.mode))
	}
	return name
}

// runFailing returns the output of a gateway that does not start. For the
// symptom "unreadable", the gateway runs as an ordinary user, because root
// could read the file.
func (m *machine) runFailing(t *testing.T, s symptom, args []string) string {
	t.Helper()
	args = append([]string{"timeout", "60", "env"}, args...) // in case it starts
	if s.name == "unreadable" {
		args = append([]string{"setpriv", "--reuid=rest", "--regid=rest", "--clear-groups"}, args...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	out, err := m.command(ctx, "root", args...).CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Errorf("it started: %v\n%s", err, out)
	}
	return string(out)
}

// startOtherMunged starts a second munged, with a key that the cluster does not
// have.
func (m *machine) startOtherMunged(t *testing.T) {
	t.Helper()
	m.run(t, "root", "sh", "-ec", `install -d -o munge -g munge -m 755 /run/munge-other
		install -o munge -g munge -m 400 /dev/null /run/munge-other/key
		head -c 1024 /dev/urandom >/run/munge-other/key`)
	m.start(t, "munged-other", "/run/munge-other/socket", nil, "setpriv", "--reuid=munge", "--regid=munge", "--clear-groups",
		"munged", "--foreground", "--force", "--socket=/run/munge-other/socket", "--key-file=/run/munge-other/key",
		"--pid-file=/run/munge-other/pid", "--seed-file=/run/munge-other/seed", "--log-file=/run/munge-other/log")
}

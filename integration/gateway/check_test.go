package gateway

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// TestCheck checks --check. It must fail for everything for which a start fails,
// must print the settings, and must not disturb a gateway that runs with the
// same settings: it listens nowhere and creates no file.
func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	harness.Must(t, os.Chmod(dir, 0o755))
	harness.Must(t, os.Chmod(filepath.Dir(dir), 0o755))
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		harness.Must(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	const common = "ClusterName=c\nSchedctldHost=127.0.0.1\nAuthInfo=socket=/nowhere\nAuthAltTypes=auth/jwt\n"
	conf := write("sched.conf", common, 0o644)
	certificate, key := write("tls.pem", "no certificate\n", 0o644), write("tls.key", "no key\n", 0o400)
	badTLS := write("tls.conf", common+"TLSParameters=restd_cert_file="+certificate+",restd_cert_key_file="+key+"\n", 0o644)
	keySet := write("jwks", "{}\n", 0o644)
	badKeySet := write("jwks.conf", common+"AuthAltParameters=jwks="+keySet+"\n", 0o644)
	noKey := write("nokey.conf", common+"AuthAltParameters=jwt_key=/nowhere/key\n", 0o644)
	tokenKey := write("token.key", strings.Repeat("k1", 16), 0o400)
	goodKey := write("key.conf", common+"AuthAltParameters=jwt_key="+tokenKey+"\n", 0o644)
	audit := filepath.Join(dir, "audit.log")
	busy, err := net.Listen("tcp", "127.0.0.1:0") // as if the gateway were running
	harness.Must(t, err)
	defer busy.Close()
	for _, tt := range []struct {
		name, conf string
		env        []string
		args       []string
		want       string // in the output
		fails      bool
	}{
		{name: "good", conf: conf, args: []string{busy.Addr().String()}, want: "The gateway can start with these settings.\n"},
		{name: "scopes", conf: conf, args: []string{"compute.read=127.0.0.1:6822"}, want: "scopes         compute.read=127.0.0.1:6822\n"},
		{name: "scopes of passed sockets", conf: conf, env: []string{"SCHEDRESTD_SCOPES=compute.read=127.0.0.1:6822"}, want: "can start"},
		{name: "scopes that an argument replaces", conf: conf, env: []string{"SCHEDRESTD_LISTEN=compute.read=127.0.0.1:6822"}, args: []string{"127.0.0.1:6822"}, want: "environment setting without effect"},
		{name: "without an address", conf: conf, want: "addresses      those that the service manager opens\n"},
		{name: "audit log", conf: conf, env: []string{"SCHEDRESTD_AUDIT_LOG=" + audit}, want: "audit log      " + audit + "\n"},
		{name: "audit log without its directory", conf: conf, env: []string{"SCHEDRESTD_AUDIT_LOG=/nowhere/audit.log"}, want: "error: audit log /nowhere/audit.log: /nowhere: no such file or directory\nhint: mkdir ", fails: true},
		{name: "audit log in /proc", conf: conf, env: []string{"SCHEDRESTD_AUDIT_LOG=/proc/audit.log"}, want: "error: audit log /proc/audit.log: no such file or directory\nhint: ls -ld /proc ", fails: true},
		{name: "audit log that is a directory", conf: conf, env: []string{"SCHEDRESTD_AUDIT_LOG=" + dir}, want: "not a regular file", fails: true},
		{name: "file of keys without its directory", conf: conf, env: []string{"SCHEDRESTD_IDEMPOTENCY_FILE=/nowhere/keys"}, want: "error: idempotency file /nowhere/keys: /nowhere: no such", fails: true},
		{name: "UNIX socket without its directory", conf: conf, args: []string{"unix:/nosuch/dir/s"}, want: "hint: install -d ", fails: true},
		{name: "metrics at a UNIX socket without its directory", conf: conf, env: []string{"SCHEDRESTD_METRICS=unix:/nosuch/dir/m"}, args: []string{"127.0.0.1:0"}, want: "/nosuch/dir/m", fails: true},
		{name: "an address of another machine", conf: conf, args: []string{"192.0.2.1:6820"}, want: "error: listen on 192.0.2.1:6820: cannot assign requested address\nhint: there is no such address", fails: true},
		{name: "syslog without its socket", conf: conf, env: []string{"SCHEDRESTD_LOG=syslog:/nosuch/log"}, want: "log            syslog, but there is no /nosuch/log: lines would be written to standard error\n"},
		{name: "no configuration", conf: filepath.Join(dir, "missing"), want: "error: ", fails: true},
		{name: "misspelt variable", conf: conf, env: []string{"SCHEDRESTD_RAT=5"}, want: "did you mean SCHEDRESTD_RATE?"},
		{name: "TLS", conf: badTLS, want: "error: ", fails: true},
		{name: "TLS that no listener needs", conf: badTLS, args: []string{"127.0.0.1:0"}, want: "can start"},
		{name: "no key", conf: noKey, want: `msg="no key of HS256 tokens; the daemons verify such tokens" file=/nowhere/key because="key file /nowhere/key: `},
		{name: "a key", conf: goodKey, want: `msg="key of HS256 tokens in use" file=` + tokenKey + "\n"},
		{name: "key set", conf: badKeySet, want: "error: ", fails: true},
		{name: "network namespace", conf: conf, env: []string{"SCHEDRESTD_NETNS=no-such-namespace"}, want: "error: ", fails: true},
		{name: "wrong option", conf: conf, args: []string{"-s", "nothing"}, want: "error: ", fails: true},
	} {
		if tt.conf == goodKey && os.Geteuid() != 0 { // the key must belong to root
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			args := []string{"--check", "-f", tt.conf}
			if os.Geteuid() == 0 {
				args = append(args, "-u", "nobody", "-g", "nogroup")
			}
			cmd := exec.Command(filepath.Join(harness.Bin, "schedrestd"), append(args, tt.args...)...)
			cmd.Env = append(os.Environ(), append(tt.env, "SCHED_JWT=daemon")...)
			out, err := cmd.CombinedOutput()
			if (err != nil) != tt.fails || !strings.Contains(string(out), tt.want) || tt.fails == strings.Contains(string(out), "can start") {
				t.Errorf("%v, want %q:\n%s", err, tt.want, out)
			}
		})
	}
	if _, err := os.Lstat(audit); err == nil {
		t.Error("it created the audit log")
	}
}

package plan

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/conf"
	"schedrestd/gateway/plan/option"
	"schedrestd/internal/feature"
	"schedrestd/internal/setting"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

var discard = slog.New(slog.DiscardHandler)

const sample = `ClusterName=tiny
SchedctldHost=one(127.0.0.1)
SchedctldHost=two(127.0.0.2)
SchedctldPort=7001
SchedUser=root
AuthType=auth/cred
AuthInfo=socket=/run/sched/ctld.sock
AuthAltTypes=auth/jwt
AccountingStorageType=accounting_storage/scheddbd
AccountingStorageHost=127.0.0.3
`

// writeConfig writes a configuration file. It also clears the environment
// variables that would affect the test.
func writeConfig(t *testing.T, text string) string {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "SCHED") || strings.HasPrefix(name, "SLURM") {
			t.Setenv(name, "")
		}
	}
	path := filepath.Join(t.TempDir(), "sched.conf")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

var daemonEnv = map[string]string{"SCHED_JWT": "daemon"}

// removeKey removes the line of a key.
func removeKey(text, key string) string {
	if key == "" {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, key+"=") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestRefusals checks settings with which the gateway must not start. Each
// start must print an error line and a hint.
func TestRefusals(t *testing.T) {
	tests := []struct {
		name        string
		args        []string
		env         map[string]string
		drop, more  string // a key to remove from the configuration, and lines to add
		error, hint string
	}{
		{name: "unknown switch", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_SECURITY": "become_everyone"},
			error: `unknown security switch "become_everyone"`, hint: "disable_user_check"},
		{name: "switch in the other spelling", args: []string{"127.0.0.1:0"}, env: map[string]string{"SLURMRESTD_SECURITY": "nonsense"},
			error: `unknown security switch "nonsense"`, hint: "allowed values: "},
		{name: "two spellings that differ", args: []string{"127.0.0.1:0"},
			env:   map[string]string{"SCHEDRESTD_LISTEN": ":1", "SLURMRESTD_LISTEN": ":2"},
			error: "both set and differ", hint: "unset"},
		{name: "a token for the daemon", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHED_JWT": "ey.secret.x"},
			error: `SCHED_JWT is not "daemon"`, hint: "SCHED_JWT=daemon"},
		{name: "not a number", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_MAX_CONNECTIONS": "many"},
			error: "SCHEDRESTD_MAX_CONNECTIONS=many is not a number"},
		{name: "age", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_MAX_AGE": "2"},
			error: "SCHEDRESTD_MAX_AGE=2 is not a time of 0s to 1m0s, such as 2s"},
		{name: "answers", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_ANSWER_MEMORY": "0"},
			error: "SCHEDRESTD_ANSWER_MEMORY=0 is not a size"},
		{name: "audit", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_AUDIT_FAIL": "yes"},
			error: "SCHEDRESTD_AUDIT_FAIL=yes", hint: "open, closed"},
		{name: "penalties", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_PENALTIES": "auth:1s,guess:1s"}, error: "SCHEDRESTD_PENALTIES=auth:1s,guess:1s", hint: "off, or a list of auth"},
		{name: "penalties without a unit", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_PENALTIES": "auth:1"}, error: "SCHEDRESTD_PENALTIES=auth:1", hint: "such as auth:1s"},
		{name: "a threshold of 0", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_PENALTIES": "threshold:0s"}, error: "SCHEDRESTD_PENALTIES=threshold:0s", hint: "off"},
		{name: "exempt", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_EXEMPT": "10.0.0.1/8"}, error: "10.0.0.1/8 is not an address or network", hint: "10.0.0.0/8"},
		{name: "proxies", args: []string{"127.0.0.1:0"}, env: map[string]string{"SLURMRESTD_TRUSTED_PROXIES": "unix:0,proxy.example"}, error: "proxy.example is not an address or network", hint: "or unix:USER"},
		{name: "rate", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_RATE": "0"}, error: "SCHEDRESTD_RATE=0", hint: "50:200"},
		{name: "spelling", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_NAMES": "x"},
			error: "SCHEDRESTD_NAMES=x", hint: "sched, slurm, both"},
		{name: "mode", args: []string{"--socket-mode=rw", "127.0.0.1:0"}, error: "--socket-mode=rw", hint: "octal"},
		{name: "connections", args: []string{"--max-connections=-1", "127.0.0.1:0"}, error: `invalid argument "-1" for "--max-connections"`, hint: "--help"},
		{name: "no connections", args: []string{"--max-connections=0", "127.0.0.1:0"}, error: "not a number from 1 to 100000"},
		{name: "many connections", args: []string{"--max-connections=99999999999", "127.0.0.1:0"}, error: `"--max-connections" flag: not a number from 1 to 100000`},
		{name: "more threads than any machine has CPUs", args: []string{"-t", "3000000", "127.0.0.1:0"}, error: `"-t, --threads" flag: not a number from 1 to 4096`},
		{name: "no threads", args: []string{"-t", "0", "127.0.0.1:0"}, error: "not a number from 1 to 4096"},
		{name: "body", args: []string{"--max-body", "2G", "127.0.0.1:0"}, error: "not a size from 1 to 1G"},
		{name: "an empty value", args: []string{"-u", "", "127.0.0.1:0"}, error: "-u: empty value"},
		{name: "a user that does not exist", args: []string{"-u", "nobody-has-this-name", "127.0.0.1:0"}, env: daemonEnv, error: "-u nobody-has-this-name: ", hint: "useradd"},
		{name: "a group that does not exist", args: []string{"-u", "nobody", "-g", "nobody-has-this-name", "127.0.0.1:0"}, env: daemonEnv, error: "-g nobody-has-this-name: ", hint: "groupadd"},
		{name: "a user without a group", args: []string{"-u", "2999999999", "127.0.0.1:0"}, env: daemonEnv, error: "-u 2999999999 has no entry", hint: "-g"},
		{name: "a group of sockets that does not exist", args: []string{"--socket-group", "nobody-has-this-name", "unix:/nowhere/s"}, env: daemonEnv, error: "--socket-group nobody-has-this-name: ", hint: "groupadd --system nobody-has-this-name"},
		{name: "no such host", args: []string{"nosuch.invalid:0"}, env: daemonEnv, error: "nosuch.invalid does not exist", hint: "getent ahosts nosuch.invalid"},
		{name: "no address", args: []string{"localhost"}, error: `listen on "localhost"`, hint: "[host]:port"},
		{name: "no address in the environment", args: nil, env: map[string]string{"SCHEDRESTD_LISTEN": ","}, error: "SCHEDRESTD_LISTEN=, names no address"},
		{name: "a bare port", args: []string{"80"}, error: `listen on "80": a port needs a colon`, hint: "write :80"},
		{name: "a port for clients and metrics", args: []string{"--metrics=127.0.0.1:6820", ":6820"}, env: daemonEnv,
			error: "metrics: --metrics 127.0.0.1:6820 and the address for clients, :6820, name the same port", hint: "use another port"},
		{name: "a port for clients and metrics, in the environment", env: map[string]string{"SCHED_JWT": "daemon", "SCHEDRESTD_LISTEN": "127.0.0.1:6820", "SCHEDRESTD_METRICS": ":6820"},
			error: "--metrics :6820 and the address for clients, 127.0.0.1:6820, name", hint: "use another port"},
		{name: "a port twice", args: []string{"127.0.0.1:6820", "localhost:6820"}, env: daemonEnv, error: "listen on localhost:6820: 127.0.0.1:6820 names the same port", hint: "leave out"},
		{name: "data parser", args: []string{"-d", "v0.0.39", "127.0.0.1:0"}, error: `-d: unknown data parser "v0.0.39"`, hint: "latest"},
		{name: "data parser's flag", args: []string{"-d", "v0.0.43+inline_enums", "127.0.0.1:0"}, error: `v0.0.43 has no flag "+inline_enums"`, hint: "+minimize_refs"},
		{name: "data parser of the environment", args: []string{"127.0.0.1:0"}, env: map[string]string{"SLURMRESTD_DATA_PARSER_PLUGINS": "v1"},
			error: `SLURMRESTD_DATA_PARSER_PLUGINS: unknown data parser "v1"`},
		{name: "list among others", args: []string{"-a", "list,jwt", "127.0.0.1:0"}, error: "-a: list can't be combined with other names"},
		{name: "jwt without SCHED_JWT=daemon", args: []string{"-a", "rest_auth/jwt", "127.0.0.1:0"}, error: "rest_auth/jwt can't be loaded: SCHED_JWT=daemon is not set", hint: "export"},
		{name: "an empty SLURM_JWT", args: []string{"-a", "rest_auth/jwt", "127.0.0.1:0"}, env: map[string]string{"SLURM_JWT": ""}, error: `rest_auth/jwt can't be loaded: SLURM_JWT is set to ""`, hint: "set SLURM_JWT=daemon"},
		{name: "jwt without the key", args: []string{"-a", "jwt", "127.0.0.1:0"}, env: daemonEnv, drop: "AuthAltTypes", error: "no AuthAltTypes=auth/jwt", hint: "set AuthAltTypes=auth/jwt in"},
		{name: "local without a configuration", args: []string{"-a", "local", "-f", "/dev/null", "unix:/nowhere/s"}, error: "rest_auth/local can't be loaded", hint: "AuthType=auth/cred"},
		{name: "sack", args: []string{"127.0.0.1:0"}, env: map[string]string{"SLURM_SACK_SOCKET": "sack.socket"}, error: "SLURM_SACK_SOCKET=sack.socket is not an absolute path"},
		{name: "daemons within TLS", args: []string{"127.0.0.1:0"}, env: daemonEnv, more: "TLSType=tls/s2n\n", error: "sched.conf: TLSParameters: ca_cert_file: configuration ", hint: "needs the certificate of the cluster's CA"},
		{name: "a type of TLS that does not exist", args: []string{"127.0.0.1:0"}, env: daemonEnv, more: "TLSType=tls/openssl\n", error: "TLSType: want tls/none or tls/s2n"},
		{name: "a CA that is no certificate", args: []string{"127.0.0.1:0"}, env: daemonEnv, more: "TLSType=tls/s2n\nTLSParameters=ca_cert_file=/etc/passwd\n", error: "ca_cert_file /etc/passwd: the file contains no certificate in PEM"},
		{name: "unknown users", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_UNKNOWN_USERS": "pass"}, error: "SCHEDRESTD_UNKNOWN_USERS=pass", hint: "refuse, controller"},
		{name: "names of TLS", args: []string{"127.0.0.1:0"}, env: map[string]string{"SLURMRESTD_TLS_NAMES": "yes"}, error: "SLURMRESTD_TLS_NAMES=yes", hint: "check, ignore"},
		{name: "local over TCP alone", args: []string{"-a", "local", "127.0.0.1:0"}, env: daemonEnv, error: "rest_auth/jwt is not loaded: it is not in the list of -a", hint: "add it to this list, or listen on unix:"},
		{name: "an audit log in a unit", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_AUDIT_LOG": "audit.log", "LOGS_DIRECTORY": "/var/log/schedrestd-users"},
			error: "is neither an absolute path nor stderr", hint: "SCHEDRESTD_AUDIT_LOG=/var/log/schedrestd-users/audit.log"},
		{name: "scheddb without accounting", args: []string{"-s", "scheddb", "127.0.0.1:0"}, env: daemonEnv, drop: "AccountingStorageType", error: "openapi/scheddb can't be loaded", hint: "AccountingStorageType="},
		{name: "become_user with jwt", args: []string{"unix:/nowhere/s"}, env: map[string]string{"SCHEDRESTD_SECURITY": "become_user"}, error: "become_user"},
		{name: "how much to log", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_DEBUG": "10"}, error: "SCHEDRESTD_DEBUG=10", hint: "0 to 9, quiet"},
		{name: "layout", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHED_JSON": "tidy"}, error: "SCHED_JSON=tidy", hint: "compact, pretty"},
		{name: "two layouts", args: []string{"127.0.0.1:0"}, env: map[string]string{"SCHEDRESTD_YAML": "compact,pretty"}, error: "SCHEDRESTD_YAML=compact,pretty"},
		{name: "status", args: []string{"127.0.0.1:0"}, env: map[string]string{"SLURMRESTD_RESPONSE_STATUS_CODES": "200,99"}, error: `unknown response "99"`, hint: "default"},
		{name: "no client could authenticate", args: []string{"127.0.0.1:0"}, error: "rest_auth/jwt is not loaded: SCHED_JWT=daemon is not set", hint: "export SCHED_JWT=daemon, or"},
		{name: "no client could authenticate, without the key", args: []string{"127.0.0.1:0"}, env: daemonEnv, drop: "AuthAltTypes", error: "the configuration has no AuthAltTypes=auth/jwt", hint: "set AuthAltTypes=auth/jwt in"},
		{name: "no file", args: []string{"-f", "/nowhere/at/all", "127.0.0.1:0"}, error: "/nowhere/at/all"},
		{name: "unknown flag", args: []string{"--frobnicate"}, error: "unknown flag"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := writeConfig(t, removeKey(sample, tt.drop)+tt.more)
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			var out, errOut bytes.Buffer
			if status := runHere(append([]string{"-f", path}, tt.args...), &out, &errOut); status != 1 {
				t.Errorf("exit status %d", status)
			}
			var errors, hints []string
			for line := range strings.Lines(errOut.String()) {
				if s, ok := strings.CutPrefix(line, "error: "); ok {
					errors = append(errors, s)
				}
				if s, ok := strings.CutPrefix(line, "hint: "); ok {
					hints = append(hints, s)
				}
			}
			if !strings.Contains(strings.Join(errors, ""), tt.error) || !strings.Contains(strings.Join(hints, ""), tt.hint) {
				t.Errorf("want error %q, hint %q; printed:\n%s", tt.error, tt.hint, errOut.String())
			}
			if strings.Contains(errOut.String(), "secret") {
				t.Errorf("a token was printed:\n%s", errOut.String())
			}
		})
	}
}

// TestFlagsBeforeEnvironment checks that a flag takes precedence over the
// environment.
func TestFlagsBeforeEnvironment(t *testing.T) {
	path := writeConfig(t, sample)
	t.Setenv("SLURM_JWT", "daemon")
	t.Setenv("SCHEDRESTD_LISTEN", ":1,unix:/run/s")
	t.Setenv("SCHEDRESTD_MAX_CONNECTIONS", "9")
	t.Setenv("SLURMRESTD_SECURITY", "require_user_name")
	for _, tt := range []struct {
		name        string
		opts        option.Options
		listen      []string
		connections int
	}{
		{"environment", option.Options{}, []string{":1", "unix:/run/s"}, 9},
		{"flags", option.Options{Listen: []string{":2"}, Run: ipc.Run{Numbers: ipc.Numbers{Connections: 5}}}, []string{":2"}, 5},
	} {
		o := options{Options: tt.opts, host: new(fakeHost), start: startHere()}
		if err := o.ReadEnvironment(); err != nil {
			t.Fatal(err)
		}
		cluster, _, err := conf.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := o.plan(cluster, 0, listening, discard)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(any(tt.listen), listenOf(c)); diff != "" || int(c.Connections) != tt.connections {
			t.Errorf("%s: %d connections, listen (-want +got):\n%s", tt.name, c.Connections, diff)
		}
		if c.Switches != (ipc.Switches{}) || !c.Setup.RequireUserName {
			t.Errorf("%s: switches %+v, require_user_name %t", tt.name, c.Switches, c.Setup.RequireUserName)
		}
	}
}

// TestOmissionLevel checks when the absence of rest_auth/jwt is a warning: if
// clients can only send tokens, or if SCHED_JWT is set without effect.
func TestOmissionLevel(t *testing.T) {
	unix, both := []string{"unix:/s"}, []string{"unix:/s", "127.0.0.1:6820"}
	for _, tt := range []struct {
		name   string
		method feature.Auth
		jwt    string
		inConf bool
		mode   mode
		listen []string
		want   slog.Level
	}{
		{"local clients only", feature.JWT, "", true, listening, unix, slog.LevelInfo},
		{"TCP, too", feature.JWT, "", true, listening, both, slog.LevelWarn},
		{"TCP, no JWT in the configuration", feature.JWT, "", false, listening, both, slog.LevelWarn},
		{"inetd", feature.JWT, "", true, inetd, nil, slog.LevelInfo},
		{"SCHED_JWT=daemon without effect", feature.JWT, jwtDaemon, false, listening, unix, slog.LevelWarn},
		{"no local clients", feature.Local, "", true, listening, both, slog.LevelInfo},
	} {
		o := optionsHere()
		o.JWT, o.Listen = tt.jwt, tt.listen
		if got := o.omissionLevel(tt.method, &conf.Cluster{Auth: conf.Auth{JWT: tt.inConf}}, tt.mode); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestTokensLeftOut checks that a list of methods without rest_auth/jwt causes a
// warning if the gateway also listens on TCP, where no client can authenticate.
func TestTokensLeftOut(t *testing.T) {
	for _, tt := range []struct {
		listen []string
		warned bool
	}{
		{[]string{"unix:/s"}, false},
		{[]string{"unix:/s", "https://127.0.0.1:6820"}, true},
	} {
		cluster, _, err := conf.Read(writeConfig(t, sample))
		if err != nil {
			t.Fatal(err)
		}
		o := optionsHere()
		o.Listen, o.Auth.Value, o.Auth.Origin = tt.listen, "rest_auth/local", "-a"
		var out bytes.Buffer
		if err = o.configureAuth(cluster, &work.Setup{}, listening, slog.New(slog.NewTextHandler(&out, nil))); err != nil {
			t.Fatal(err)
		}
		want := "msg=\"rest_auth/jwt is not loaded: it is not in the list\" by=-a"
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "level=WARN") != tt.warned {
			t.Errorf("%v: warning wanted: %t, logged %s", tt.listen, tt.warned, &out)
		}
	}
}

// TestSetup checks the Setup that a worker gets from a configuration.
func TestSetup(t *testing.T) {
	path := writeConfig(t, sample)
	t.Setenv("SCHED_JWT", "daemon")
	o := optionsHere()
	if err := o.ReadEnvironment(); err != nil {
		t.Fatal(err)
	}
	cluster, _, err := conf.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TZ", "UTC")
	got, err := o.setup(cluster, listening, discard)
	if err != nil {
		t.Fatal(err)
	}
	want := work.Setup{Setup: ipc.Setup{JWT: true, Local: true},
		Tokens:  setting.Tokens{MinUID: 1000},
		Cluster: "tiny",
		Controllers: []work.Address{
			{Name: "one", Host: "127.0.0.1", Network: "tcp", Address: "127.0.0.1:7001"},
			{Name: "two", Host: "127.0.0.2", Network: "tcp", Address: "127.0.0.2:7001"},
		},
		Accounting: []work.Address{
			{Name: "127.0.0.3", Network: "tcp", Address: "127.0.0.3:6819"},
			{Name: "127.0.0.3", Network: "unix", Address: "/run/scheddbd/socket"},
		},
		AuthSocket: "/run/sched/ctld.sock", Names: work.NamesSched,
		REST:    setting.REST{MaxWait: time.Minute, WatchInterval: time.Second},
		Pages:   setting.Pages{Docs: true, Status: true, Statuses: []string{"200", "default"}},
		Content: work.ContentController | work.ContentAccounting | work.ContentUtil, YAML: work.Pretty | work.NoTag,
		Limits:    o.limits(cluster),
		Admission: work.Admission{Auth: time.Second, Malformed: time.Second, Crash: 15 * time.Second, Threshold: 30 * time.Second},
		Hosts:     o.fixedHosts(), // they differ between machines
	}
	for _, p := range feature.Parsers {
		want.Parsers = append(want.Parsers, work.Parser{Version: p.Version})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := got.Limits.Check(); err != nil || got.Limits.Call != cluster.MessageTimeout {
		t.Errorf("%+v: %v", got.Limits, err)
	}
}

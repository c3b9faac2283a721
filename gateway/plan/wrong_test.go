package plan

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/gateway/plan/option"
)

// TestWrongValues checks variables that configure a protection. A misspelled or
// contradictory value must prevent the start. The error must name the variable,
// the wrong word and the valid values.
func TestWrongValues(t *testing.T) {
	long := strings.Repeat("10.0.0.0/8,", 33)
	tests := map[string][]struct{ value, extra, error, hint string }{
		"SCHEDRESTD_SECURITY": {
			{value: "require_confinment", error: `unknown security switch "require_confinment"`, hint: "require_confinement"},
			{value: "require_confinement;become_user", error: `"require_confinement;become_user"`, hint: "allowed values: "},
			{value: "require_confinement,audit_confinement", error: "require_confinement and audit_confinement contradict each other", hint: "remove one"},
			{value: "disable_unshare_files,require_confinement", error: "require_confinement and disable_unshare_files contradict", hint: "remove one"},
			{value: "disable_user_check,require_confinement", error: "require_confinement and disable_user_check contradict", hint: "remove one"},
			{value: "disable_unshare_sysv,require_confinement", error: "require_confinement and disable_unshare_sysv contradict", hint: "remove one"},
		},
		"SCHEDRESTD_NETNS": {
			{value: "netns/mgmt", error: "neither the name of a network namespace nor an absolute path", hint: "ip netns list"},
			{value: "..", error: "neither the name", hint: "ip netns list"},
		},
		"SCHEDRESTD_CONTROLLER_NETNS": {
			{value: "./mgmt", error: "neither the name of a network namespace nor an absolute path", hint: "ip netns list"},
		},
		"SCHEDRESTD_PENALTIES": {
			{value: "of", error: `unknown penalty "of"`, hint: "use off, or a list"},
			{value: "off,auth:1s", error: `unknown penalty "off"`, hint: "use off, or a list"},
			{value: "auth:1s,guess:1s", error: `unknown penalty "guess"`, hint: "auth, malformed, crash and threshold"},
			{value: "auth:1s,auth:2s", error: "auth is given twice", hint: "at most once"},
			{value: "auth=1s", error: `unknown penalty "auth=1s"`, hint: "such as auth:1s"},
			{value: "auth:1", error: `"auth:1" has no valid time`, hint: "such as auth:1s"},
			{value: "crash:-1s", error: `"crash:-1s" has no valid time`, hint: "such as auth:1s"},
			{value: "crash:2h", error: `"crash:2h" has no valid time`, hint: "up to 1h"},
			{value: "threshold:0s", error: "a threshold of 0", hint: "off"},
			{value: ",", error: "no penalty is named", hint: "off, or"},
		},
		"SCHEDRESTD_EXEMPT": {
			{value: "10.0.0.1/8", error: "10.0.0.1/8 is not an address or network", hint: "10.0.0.0/8"},
			{value: "login.example", error: "login.example is not an address or network", hint: "list addresses, and networks"},
			{value: "unix", error: "unix is not an address or network", hint: "list addresses, and networks"},
			{value: long, error: "33 networks; must be 1 to 32", hint: "list addresses, and networks"},
			{value: ",", error: "0 networks", hint: "list addresses, and networks"},
		},
		"SCHEDRESTD_TRUSTED_PROXIES": {
			{value: "unix:0,proxy.example", error: "proxy.example is not an address or network", hint: "or unix:USER"},
			{value: "192.0.2.7,unix", error: "unix: it names no user", hint: "such as unix:haproxy"},
			{value: "unix:", error: "unix:: it names no user", hint: "such as unix:haproxy"},
			{value: "unix:65534", error: "unix:65534: uid 65534 is the overflow uid, which stands for every unmapped user", hint: "such as unix:haproxy"},
			{value: "unix:4294967295", error: "4294967295 is not a user id", hint: "such as unix:haproxy"},
			{value: "unix:nosuchuser", error: "nosuchuser", hint: "such as unix:haproxy"},
			{value: "unixes", error: "unixes is not an address or network", hint: "or unix:USER"},
			{value: "192.0.2.7/33", error: "192.0.2.7/33 is not an address or network", hint: "or unix"},
			{value: "fe80::1%eth0", error: "fe80::1%eth0 is not an address or network", hint: "or unix"},
		},
		"SCHEDRESTD_RATE": {
			{value: "0", error: "", hint: "50:200"},
			{value: "50/s", error: "", hint: "50:200"},
			{value: "50:0", error: "", hint: "50:200"},
			{value: "2000000", error: "", hint: "from 1 to 1000000"},
		},
		"SCHEDRESTD_LOG": {
			{value: "JSON", error: "", hint: "allowed values: text, json, journald, syslog, journald:SOCKET"},
			{value: "json:/dev/log", error: "", hint: "allowed values: text, json,"},
			{value: "syslog:", error: "does not name a socket", hint: "an absolute path of at most 107 bytes"},
			{value: "journald:journal.sock", error: "does not name a socket", hint: "an absolute path"},
			{value: "syslog:/" + strings.Repeat("d", 107), error: "does not name a socket", hint: "at most 107 bytes"},
		},
		"SCHEDRESTD_AUDIT_LOG": {
			{value: "audit.log", error: "neither an absolute path nor stderr", hint: "/var/log/schedrestd/audit.log"},
			{value: "syslog", error: "neither an absolute path nor stderr", hint: "or stderr"},
		},
		"SCHEDRESTD_IDEMPOTENCY_FILE": {
			{value: "stderr", error: "not an absolute path", hint: "SCHEDRESTD_IDEMPOTENCY_FILE=/"},
			{value: "/a", extra: "SCHEDRESTD_AUDIT_LOG=/a", error: ": this is the path of the audit log", hint: "SCHEDRESTD_IDEMPOTENCY_FILE=/"},
			{value: "/b/../a", extra: "SCHEDRESTD_AUDIT_LOG=//a", error: ": this is the path of the audit log", hint: "SCHEDRESTD_IDEMPOTENCY_FILE=/"},
		},
		"SCHEDRESTD_AUDIT_FAIL": {
			{value: "close", extra: "SCHEDRESTD_AUDIT_LOG=/a", error: "", hint: "allowed values: open, closed"},
			{value: "closed", error: "without SCHEDRESTD_AUDIT_LOG: nothing would be recorded", hint: "SCHEDRESTD_AUDIT_LOG=/"},
		},
		"SCHEDRESTD_AUDIT_SYNC": {
			{value: "true", extra: "SCHEDRESTD_AUDIT_LOG=/a", error: "", hint: "allowed values: yes, no"},
			{value: "yes", error: "without SCHEDRESTD_AUDIT_LOG: nothing would be recorded", hint: "SCHEDRESTD_AUDIT_LOG=/"},
			{value: "yes", extra: "SCHEDRESTD_AUDIT_LOG=stderr", error: "with SCHEDRESTD_AUDIT_LOG=stderr", hint: "or the path of a file"},
		},
	}
	for name, list := range tests {
		if !slices.Contains(option.Variables(), name) {
			t.Errorf("%s is no variable", name)
		}
		for _, tt := range list {
			t.Run(name+"="+tt.value[:min(len(tt.value), 40)], func(t *testing.T) {
				path := writeConfig(t, sample)
				t.Setenv("SCHED_JWT", "daemon")
				t.Setenv(name, tt.value)
				if extra, value, ok := strings.Cut(tt.extra, "="); ok {
					t.Setenv(extra, value)
				}
				for _, args := range [][]string{{"127.0.0.1:0"}, {"--check-confinement"}} { // both fail before anything is started
					var out, errOut bytes.Buffer
					status := runHere(append([]string{"-f", path}, args...), &out, &errOut)
					first, rest, _ := strings.Cut(errOut.String(), "\n")
					if status != 1 || !strings.HasPrefix(first, "error: environment: "+name+"="+tt.value) ||
						!strings.Contains(first, tt.error) || !strings.HasPrefix(rest, "hint: ") || !strings.Contains(rest, tt.hint) {
						t.Errorf("%v: exit status %d:\n%s", args, status, &errOut)
					}
				}
			})
		}
	}
}

// TestNamesAsSet checks that errors and hints name a variable as it was set.
func TestNamesAsSet(t *testing.T) {
	tests := []struct {
		set  []string
		want []string
		not  string
	}{
		{[]string{"SLURMRESTD_MAX_CONNECTIONS=x"}, []string{"error: environment: SLURMRESTD_MAX_CONNECTIONS=x is "}, "SCHEDRESTD_"},
		{[]string{"SCHEDRESTD_MAX_CONNECTIONS=x"}, []string{"error: environment: SCHEDRESTD_MAX_CONNECTIONS=x is "}, "SLURMRESTD_"},
		{[]string{"SLURMRESTD_AUDIT_LOG=log"}, []string{"error: environment: SLURMRESTD_AUDIT_LOG=log ", "hint: use SLURMRESTD_AUDIT_LOG=/"}, "SCHEDRESTD_"},
		{[]string{"SLURMRESTD_AUDIT_SYNC=yes"}, []string{"error: environment: SLURMRESTD_AUDIT_SYNC=yes without SCHEDRESTD_AUDIT_LOG: "}, "SLURMRESTD_AUDIT_LOG"},
		{[]string{"SLURM_JSON=x"}, []string{"error: environment: SLURM_JSON=x"}, "SCHED_"},
		{[]string{"SLURMRESTD_SECURITY=become_user", "SCHEDRESTD_MAX_WAIT=1"}, []string{"error: environment: SCHEDRESTD_MAX_WAIT=1 "}, "SLURMRESTD_"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.set, " "), func(t *testing.T) {
			path := writeConfig(t, sample)
			t.Setenv("SCHED_JWT", "daemon")
			for _, v := range tt.set {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			var out, errOut bytes.Buffer
			status := runHere([]string{"-f", path, "127.0.0.1:0"}, &out, &errOut)
			for _, want := range tt.want {
				if !strings.Contains(errOut.String(), want) {
					t.Errorf("exit status %d, want %q:\n%s", status, want, &errOut)
				}
			}
			if status != 1 || strings.Contains(errOut.String(), tt.not) {
				t.Errorf("exit status %d, with %q:\n%s", status, tt.not, &errOut)
			}
		})
	}
}

// TestUnread checks the log message about an unknown variable whose name
// resembles those of the gateway's variables. If the name is similar to a known
// variable, the message must suggest that variable.
func TestUnread(t *testing.T) {
	var log bytes.Buffer
	option.WarnUnknown([]string{
		"SCHEDRESTD_AUDIT_LOGG=stderr", "SCHEDRESTD_FOO=1", "SLURMRESTD_PENALTY=off", "SCHEDRESTD_SECRET_SAUCE=a value that must not be logged",
		"SLURMRESTD_OPTIONS=-v", "SCHEDRESTD_OPTONS=-v", "SCHEDREST_AUDIT_LOG=stderr", "schedrestd_security=become_user", "Shedrestd_Rate=5", "SCHED_CONFF=/x", "slurm_conf_srver=ctl",
		"SCHEDRESTD_OPTIONS=-v", "SCHEDRESTD_RATE=5", "SLURMRESTD_SECURITY=become_user", "SLURM_CONF=/x", // read by the gateway, or not meant for it
		"SCHEDRESTD_RAT=", "SLURM_JOB_ID=7", "PATH=/bin", "SCHEDRESTDX=1", "SLURM_CPUS=1", "SLURM_COMMENT=x", "SCHED_URL=http://x", "SCHEDULER_NAME=x",
		"SLURMD_OPTIONS=-v", "SLURMCTLD_OPTIONS=-v", "SLURMDBD_OPTIONS=-v", "SLURMSTEPD_OOM_ADJ=1", "SCHEDCTLD_OPTIONS=-v", "SCHEDDBD_OPTIONS=-v",
	}, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.MessageKey {
			return slog.Attr{}
		}
		return a
	}})))
	want := `level=WARN name=SCHEDRESTD_AUDIT_LOGG hint="did you mean SCHEDRESTD_AUDIT_LOG?"
level=WARN name=SCHEDRESTD_FOO hint="schedrestd(8) lists the known variables"
level=WARN name=SCHEDRESTD_OPTONS hint="did you mean SCHEDRESTD_OPTIONS?"
level=WARN name=SCHEDRESTD_SECRET_SAUCE hint="schedrestd(8) lists the known variables"
level=WARN name=SCHEDREST_AUDIT_LOG hint="did you mean SCHEDRESTD_AUDIT_LOG?"
level=WARN name=SCHED_CONFF hint="did you mean SCHED_CONF?"
level=WARN name=SLURMRESTD_OPTIONS hint="did you mean SCHEDRESTD_OPTIONS?"
level=WARN name=SLURMRESTD_PENALTY hint="did you mean SLURMRESTD_PENALTIES?"
level=WARN name=Shedrestd_Rate hint="did you mean SCHEDRESTD_RATE?"
level=WARN name=schedrestd_security hint="did you mean SCHEDRESTD_SECURITY?"
level=WARN name=slurm_conf_srver hint="did you mean SLURM_CONF_SERVER?"
`
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

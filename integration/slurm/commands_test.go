package slurm

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// bundledDaemons holds schedctld and scheddbd, which run in the machine in
// addition to Slurm's own daemons. Slurm's commands use the bundled daemons if
// SLURM_CONF is /opt/ours/slurm.conf.
type bundledDaemons struct {
	m      *machine
	ctld   *daemon
	dbd    *daemon
	tokens map[string]string // by user, and "forged", "expired" and "none"
}

// bundledConfigs are the configurations in /opt/ours.
var bundledConfigs = map[string]string{
	"sched.conf": `ClusterName=ours
SchedctldHost=head(127.0.0.1)
SchedctldPort=7817
SchedUser=slurm
AuthType=auth/cred
AuthInfo=socket=/run/ours/ctld
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/opt/ours/jwt.key
AccountingStorageType=accounting_storage/scheddbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=7819
AccountingStorageSocket=/run/ours/dbd/socket
StateSaveLocation=/var/lib/ours/ctld
NodeName=head CPUs=2 RealMemory=1000
PartitionName=all Nodes=head Default=YES
`,
	"scheddbd.conf": `DbdHost=127.0.0.1
DbdPort=7819
SchedUser=slurm
StorageLoc=/var/lib/ours/dbd/accounting.db
AuthType=auth/cred
AuthInfo=socket=/run/ours/dbd/socket
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/opt/ours/jwt.key
`,
	"slurm.conf": `ClusterName=ours
SlurmctldHost=head(127.0.0.1)
SlurmctldPort=7817
SlurmUser=slurm
AuthType=auth/munge
AuthInfo=socket=/run/munge/munge.socket.2
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/opt/ours/jwt.key
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=7819
StateSaveLocation=/var/lib/ours/unused
NodeName=head CPUs=2 RealMemory=1000
PartitionName=all Nodes=head Default=YES
`,
}

// bundledTLS are the lines for daemons that speak TLS, with the certificates of
// Slurm's daemons.
const bundledTLS = "TLSType=tls/s2n\nTLSParameters=ca_cert_file=/etc/slurm/ca_cert.pem" +
	",ctld_cert_file=/etc/slurm/ctld_cert.pem,ctld_cert_key_file=/etc/slurm/ctld_cert_key.pem" +
	",dbd_cert_file=/etc/slurm/dbd_cert.pem,dbd_cert_key_file=/etc/slurm/dbd_cert_key.pem\n"

// startBundled starts both daemons with an empty state, and makes tokens with
// schedctl.
func (m *machine) startBundled(t *testing.T) *bundledDaemons {
	t.Helper()
	must(t, m.install("schedctld", "scheddbd", "schedctl"))
	m.run(t, "root", "sh", "-ec", `rm -rf /opt/ours /var/lib/ours /run/ours
		mkdir -p /opt/ours /var/lib/ours/ctld /var/lib/ours/dbd /run/ours/dbd
		(umask 077; head -c 32 /dev/urandom >/opt/ours/jwt.key)
		chmod 700 /var/lib/ours/ctld /var/lib/ours/dbd
		chown slurm: /opt/ours/jwt.key /var/lib/ours/dbd /run/ours/dbd`)
	for name, text := range bundledConfigs {
		if withS2N {
			text += bundledTLS
		}
		must(t, os.WriteFile(filepath.Join(m.root, "opt/ours", name), []byte(text), 0o644))
	}
	o := &bundledDaemons{m: m, tokens: map[string]string{"none": ""}}
	o.dbd = m.start(t, "scheddbd", "/run/ours/dbd/socket", nil, "/opt/gateway/scheddbd", "-f", "/opt/ours/scheddbd.conf")
	o.ctld = m.start(t, "schedctld", "/run/ours/ctld", nil, "/opt/gateway/schedctld", "-f", "/opt/ours/sched.conf")
	token := func(user, lifespan string) string {
		out := m.run(t, "root", "/opt/gateway/schedctl", "-f", "/opt/ours/sched.conf", "token", "username="+user, "lifespan="+lifespan)
		return strings.TrimPrefix(out, "SCHED_JWT=")
	}
	o.tokens["expired"] = token("alice", "1")
	o.tokens["alice"], o.tokens["root"] = token("alice", "86400"), token("root", "86400")
	good := o.tokens["alice"]
	o.tokens["forged"] = good[:len(good)-8] + "AAAAAAAA"
	return o
}

// run runs a shell command, and returns its output and exit status. The command
// runs as root if tokenName is "root", and otherwise as alice. SLURM_JWT is set
// to the token o.tokens[tokenName], if there is one.
func (o *bundledDaemons) run(t *testing.T, tokenName, line string) (string, int) {
	t.Helper()
	user := tokenName
	if tokenName != "root" {
		user = "alice"
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	env := []string{"env", "SLURM_CONF=/opt/ours/slurm.conf"}
	if token := o.tokens[tokenName]; token != "" {
		env = append(env, "SLURM_JWT="+token)
	}
	cmd := o.m.command(ctx, user, append(env, "timeout", "-k", "5", "90", "sh", "-c", line)...)
	out, err := cmd.CombinedOutput()
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code, err = exit.ExitCode(), nil
	}
	must(t, err)
	if code == 124 || code == 137 {
		t.Errorf("%s as %s: did not exit", line, tokenName)
	}
	return string(out), code
}

// volatile lists the parts of outputs that differ between machines or runs,
// with their replacements.
var volatile = []struct {
	is *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]+`), "TOKEN"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}( \(\d+\))?`), "TIME"},
	{regexp.MustCompile(`to start at None`), "to start at TIME"}, // behind a job without a time limit
	{regexp.MustCompile(`\d\d:\d\d:\d\d\.\d+|\[\d{4}-\S+\] `), ""},
	{regexp.MustCompile(`(CPULoad|FreeMem|TmpDisk|Sockets|CoresPerSocket|ThreadsPerCore|Version|Arch)=\S+`), "$1=…"},
	{regexp.MustCompile(`OS=.*`), "OS=…"},
	{regexp.MustCompile(`(ave_time|total_time|count):\d+ *`), "$1:… "},
	{regexp.MustCompile(`(?m)^(head +1 +all\* +\w+) .*`), "$1 …"},
	{regexp.MustCompile(`RunTime=\S+`), "RunTime=…"},
	{regexp.MustCompile(`(AllocNode:Sid=\S*?):\d+`), "$1:…"},
	{regexp.MustCompile(` \d+:\d\d( |$)`), " M:SS$1"},
	{regexp.MustCompile(`(?m)[ \t]+$`), ""},
	{regexp.MustCompile(`\n{3,}`), "\n\n"},
}

func normalize(text string) string {
	for _, r := range volatile {
		text = r.is.ReplaceAllString(text, r.to)
	}
	return strings.Trim(text, "\n")
}

// updating reports whether to rewrite the golden files.
func updating() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

const commandsGolden = "testdata/commands/"

// TestCommands runs Slurm's own commands with our daemons, and compares their
// output with testdata/commands/RELEASE.txt. It starts with an empty cluster,
// and runs the commands in the order of commandLines. docs/generated/COMMANDS.md is
// generated from the recorded outputs.
func TestCommands(t *testing.T) {
	m := useCluster(t)
	o := m.startBundled(t)
	var b strings.Builder
	for _, c := range commandLines {
		if c.wait != "" {
			eventually(t, c.wait, func() bool {
				out, _ := o.run(t, c.user, c.wait)
				return strings.TrimSpace(out) != ""
			})
		}
		out, code := o.run(t, c.user, c.line)
		fmt.Fprintf(&b, "%s\nexit %d\n%s\n", c.title(), code, indent(normalize(out)))
		switch {
		case c.verdict == works && code != 0:
			t.Errorf("%s: exit %d, but its verdict is that it works:\n%s", c.title(), code, out)
		case c.verdict == refused && code == 0:
			t.Errorf("%s: exit 0, but it must be refused:\n%s", c.title(), out)
		case c.verdict == cannot && strings.Contains(out, "Unexpected message"):
			t.Errorf("%s: the output has no reason:\n%s", c.title(), out)
		}
	}
	o.checkAlive(t)
	file := commandsGolden + m.release + ".txt"
	if updating() {
		must(t, os.MkdirAll(commandsGolden, 0o755))
		must(t, os.WriteFile(file, []byte(b.String()), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	must(t, err)
	compareResults(t, parseRecorded(t, string(want)), parseRecorded(t, b.String()))
}

// checkAlive fails the test if a command has made one of the daemons exit, or
// has caused a panic in a handler.
func (o *bundledDaemons) checkAlive(t *testing.T) {
	t.Helper()
	for _, d := range []*daemon{o.ctld, o.dbd} {
		select {
		case <-d.ended:
			t.Errorf("%v has exited", d.cmd.Args)
		default:
		}
		if text, err := os.ReadFile(d.log); err != nil || strings.Contains(string(text), "panic") {
			t.Errorf("%s: %v\n%s", d.log, err, text)
		}
	}
	for _, line := range []string{"scontrol ping", "sacctmgr -n show tres"} {
		if out, code := o.run(t, "alice", line); code != 0 {
			t.Errorf("at the end %s: exit %d: %s", line, code, out)
		}
	}
}

func compareResults(t *testing.T, want, got map[string]commandResult) {
	t.Helper()
	for title, g := range got {
		switch w, known := want[title]; {
		case !known:
			t.Errorf("%s: not recorded yet: SLURM_RELEASE=… go test ./integration/slurm -run TestCommands -update", title)
		case w != g:
			t.Errorf("%s:\nrecorded: exit %d\n%s\nnow: exit %d\n%s", title, w.code, w.text, g.code, g.text)
		}
	}
	for title := range want {
		if _, found := got[title]; !found {
			t.Errorf("%s is recorded, but no longer in commandLines", title)
		}
	}
}

// TestGarbage checks that the daemons survive invalid arguments that no user
// would type, and that each command exits.
func TestGarbage(t *testing.T) {
	o := useCluster(t).startBundled(t)
	for _, user := range []string{"alice", "root", "forged", "none"} {
		for _, line := range []string{
			"sbatch --array=0-4000000 --wrap hostname", "sbatch --array=0-19999 --wrap hostname",
			"sbatch -n 4294967294 -c 65000 --mem=999999T -t 99999-0 --wrap hostname", "sbatch -N 1-4000000000 --wrap hostname",
			`sbatch -J "$(head -c 100000 /dev/zero | tr '\0' x)" --wrap hostname`,
			`sbatch --comment="$(printf '\033[2J\001\377')" -D "$(printf '/tmp/\377\n')" --wrap hostname`,
			`head -c 5000000 /dev/zero | tr '\0' '#' >/tmp/huge; (echo '#!/bin/sh'; cat /tmp/huge) | sbatch`,
			"head -c 1000 /dev/urandom | sbatch", "sbatch -w '[[[' --wrap hostname", "sbatch --gres=gpu:4000000000 --wrap hostname",
			"scancel 4294967295 0 1_[0-4000000] 1+1", "scancel -s 255 1", "scontrol show job 4294967294",
			`squeue -j "$(seq -s, 1 20000)"`, `squeue -u "$(seq -s, 1 5000)"`, `sinfo -n "n[0-60000]"`, `sacct -j "$(seq -s, 1 20000)"`,
			`sacct -S 1970-01-01 -E now -u "$(seq -s, 1 5000)"`, "sacct --state=ALL -r " + strings.Repeat("x", 5000), "scontrol token lifespan=4294967295 username=root",
			"scontrol update JobId=1_[0-4000000] Priority=4294967295", "sdiag --reset",
		} {
			out, _ := o.run(t, user, line)
			if user != "alice" && user != "root" && regexp.MustCompile(`Submitted|TOKEN|eyJ`).MatchString(out) {
				t.Errorf("%s, %s: %.300s", user, line, out)
			}
		}
	}
	if out, _ := o.run(t, "none", "SLURM_JWT= scontrol show nodes"); strings.Contains(out, "NodeName") {
		t.Errorf("without a token: %s", out)
	}
	o.checkAlive(t)
}

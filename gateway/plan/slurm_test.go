package plan

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/ipc/work"
)

// slurmSample is a site's slurm.conf, with addresses instead of names.
const slurmSample = `ClusterName=site
SlurmctldHost=one(127.0.0.1)
SlurmctldHost=two(127.0.0.2)
SlurmctldHost=three(::1)
SlurmctldPort=7001-7004
SlurmUser=root
AuthAltTypes=auth/jwt
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.3
AccountingStorageBackupHost=127.0.0.4
NodeName=n[1-9]
`

// slurmSetup returns the Setup for a slurm.conf, and the log.
func slurmSetup(t *testing.T, text string) (work.Setup, string, error) {
	t.Helper()
	path := writeConfig(t, text)
	t.Setenv("SLURM_JWT", "daemon")
	o := optionsHere()
	if err := o.ReadEnvironment(); err != nil {
		t.Fatal(err)
	}
	cluster, warnings, err := conf.Read(path)
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	var log bytes.Buffer
	s, err := o.setup(cluster, listening, slog.New(slog.NewTextHandler(&log, nil)))
	return s, log.String(), err
}

// TestSlurmConf checks that a site's slurm.conf is the only file that the
// gateway needs. The file determines the order of the daemons, the
// authentication methods, the served spellings and the time limits.
func TestSlurmConf(t *testing.T) {
	s, log, err := slurmSetup(t, slurmSample+"AuthInfo=socket=/run/m,ttl=60\nAccountingStoragePass=/run/global\nTCPTimeout=7\nMessageTimeout=70\n")
	if err != nil || log != "" {
		t.Fatal(err, log)
	}
	controllers := []work.Address{{Name: "one", Host: "127.0.0.1", Network: "tcp", Address: "127.0.0.1:7001"}, {Name: "two", Host: "127.0.0.2", Network: "tcp", Address: "127.0.0.2:7001"},
		{Name: "three", Host: "::1", Network: "tcp", Address: "[::1]:7001"}}
	accounting := []work.Address{{Name: "127.0.0.3", Network: "tcp", Address: "127.0.0.3:6819"}, {Name: "127.0.0.4", Network: "tcp", Address: "127.0.0.4:6819"}}
	if diff := cmp.Diff(controllers, s.Controllers) + cmp.Diff(accounting, s.Accounting); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Munge != (work.Munge{Socket: "/run/m", Accounting: "/run/global", TTL: time.Minute}) || s.AuthSocket != "" {
		t.Errorf("munged %+v, a controller's socket %q", s.Munge, s.AuthSocket)
	}
	if !s.JWT || !s.Local || s.Names != work.NamesSched|work.NamesSlurm || s.Limits.Connect != 7*time.Second || s.Limits.Call != 70*time.Second {
		t.Errorf("jwt %t, local %t, names %d, limits %+v", s.JWT, s.Local, s.Names, s.Limits)
	}
}

// TestTokenVerifiers checks, for each AuthType, which authentication methods
// are available. If a method is unavailable, the log must state the reason.
func TestTokenVerifiers(t *testing.T) {
	tests := []struct {
		name, text string
		local      bool
		munge      work.Munge
		sack       string
		log        string
	}{
		{name: "munge by default", local: true, munge: work.Munge{Socket: "/run/munge/munge.socket.2"}},
		{name: "munge", text: "AuthType=auth/munge\nAuthInfo=/run/m", local: true, munge: work.Munge{Socket: "/run/m"}},
		{name: "Slurm's keys", text: "AuthType=auth/slurm\nAuthInfo=use_client_ids", local: true,
			sack: "/run/slurm-site/sack.socket /run/slurm/sack.socket /run/slurmctld/sack.socket /run/slurmdbd/sack.socket"},
		{name: "the kernel", text: "AuthType=auth/cred\nAuthInfo=socket=/run/ctl", local: true},
		{name: "the kernel, default socket", text: "AuthType=auth/cred", local: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, log, err := slurmSetup(t, slurmSample+tt.text+"\n")
			if err != nil || !s.JWT || s.Local != tt.local || s.Munge != tt.munge || strings.Join(s.Sack, " ") != tt.sack {
				t.Errorf("jwt %t, local %t, %+v, %q, %v", s.JWT, s.Local, s.Munge, s.Sack, err)
			}
			if (s.AuthSocket != "") != strings.HasPrefix(tt.name, "the kernel") || !strings.Contains(log, tt.log) || tt.log == "" && log != "" {
				t.Errorf("socket %q, logged %q", s.AuthSocket, log)
			}
		})
	}
}

// TestSackSocket checks that the gateway uses no other socket if the
// environment names one.
func TestSackSocket(t *testing.T) {
	t.Setenv("SCHED_SACK_SOCKET", "")
	t.Setenv("SLURM_SACK_SOCKET", "/run//other/sack.socket")
	o := optionsHere()
	if err := o.ReadEnvironment(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/run/other/sack.socket"}, o.sackSockets(&conf.Cluster{ClusterName: "c"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLostController checks that the gateway starts if the name of a daemon can't be
// resolved, even if no other name can. The log must say so.
func TestLostController(t *testing.T) {
	const unknownHost = "nobody-has-this-name.invalid"
	text := strings.NewReplacer("one(127.0.0.1)", "one("+unknownHost+")", "127.0.0.4", unknownHost).Replace(slurmSample)
	s, log, err := slurmSetup(t, text)
	if err != nil || len(s.Controllers) != 3 || s.Controllers[0].Known() || !s.Controllers[1].Known() || len(s.Accounting) != 2 || s.Accounting[1].Known() {
		t.Errorf("%v, %v: %v", s.Controllers, s.Accounting, err)
	}
	for _, key := range []string{"SlurmctldHost=", "AccountingStorageHost="} {
		if !strings.Contains(log, `it is looked up again when a request needs it" error="`+key+unknownHost) {
			t.Errorf("%s%s is not in the log:\n%s", key, unknownHost, log)
		}
	}
	s, _, err = slurmSetup(t, "ClusterName=c\nSlurmctldHost="+unknownHost+"\nSlurmctldAddr=front."+unknownHost+"\nAuthAltTypes=auth/jwt\n")
	if err != nil || len(s.Controllers) != 1 || len(s.Front) != 1 || s.Controllers[0].Address != unknownHost+":6817" || len(s.Controllers[0].Resolved) != 0 {
		t.Errorf("no controller at all: %+v, %v", s.Controllers, err)
	}
	if got, want := describeAddresses(s.Controllers), unknownHost+":6817, which can't be resolved"; got != want {
		t.Errorf("described as %q, want %q", got, want)
	}
	s, _, err = slurmSetup(t, strings.Replace(slurmSample, "one(127.0.0.1)", "localhost", 1))
	if err != nil || len(s.Controllers[0].Resolved) == 0 || s.Controllers[0].Address != "localhost:7001" {
		t.Errorf("a name: %+v, %v", s.Controllers[0], err)
	}
}

// TestNoSuchUser checks configurations whose SchedUser or SlurmUser does not
// exist on this machine. An error must name the key in the spelling of the
// file. If a site's SlurmUser does not exist, only the features that need that
// user's uid may be unavailable.
func TestNoSuchUser(t *testing.T) {
	const schedConf = "ClusterName=c\nSchedctldHost=127.0.0.1\nSchedUser=nobody-has-this-name\n"
	_, err := readConfiguration(writeConfig(t, schedConf), discard)
	if errs.KindOf(err) != errs.NotFound || !strings.HasPrefix(err.Error(), "SchedUser=nobody-has-this-name: ") {
		t.Errorf("ours: %v", err)
	}
	text := strings.Replace(slurmSample, "SlurmUser=root", "SlurmUser=nobody-has-this-name", 1)
	var logged bytes.Buffer
	c, err := readConfiguration(writeConfig(t, text), slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil || !strings.Contains(logged.String(), "SlurmUser=nobody-has-this-name") {
		t.Errorf("a site's: %v, logged %s", err, &logged)
	}
	if c != nil && existingUser(c) != "" {
		t.Errorf("taken for %q", existingUser(c))
	}
	s, log, err := slurmSetup(t, text)
	if err != nil || s.Local || !s.JWT || !strings.Contains(log, "rest_auth/local is not loaded: workers must not run as the cluster user") {
		t.Errorf("jwt %t, local %t, %v, logged %s", s.JWT, s.Local, err, log)
	}
	o := optionsHere()
	o.JWT = jwtDaemon
	o.Setup.RequireUserName = true
	if _, err = o.setup(c, listening, discard); err == nil || !strings.Contains(err.Error(), "require_user_name") || !strings.Contains(errs.HintOf(err), "create the user nobody-has-this-name") {
		t.Errorf("with require_user_name: %v (%s)", err, errs.HintOf(err))
	}
}

// TestFront checks an address that the controllers share, and a range of ports
// on which each controller listens.
func TestFront(t *testing.T) {
	s, log, err := slurmSetup(t, slurmSample+"SlurmctldAddr=127.0.0.9\n")
	want := []work.Address{{Name: "127.0.0.9", Network: "tcp", Address: "127.0.0.9:7001"}}
	if diff := cmp.Diff(want, s.Front); err != nil || log != "" || diff != "" || len(s.Controllers) != 3 || s.MorePorts != 3 {
		t.Errorf("%v, logged %s, %d controllers, %d more ports (-want +got):\n%s", err, log, len(s.Controllers), s.MorePorts, diff)
	}
	s, log, err = slurmSetup(t, slurmSample+"SlurmctldAddr=nobody-has-this-name.invalid\n")
	if err != nil || len(s.Front) != 0 || !strings.Contains(log, "SlurmctldAddr=nobody-has-this-name.invalid") {
		t.Errorf("a name that means nothing: %v, %v, logged %s", s.Front, err, log)
	}
}

// TestGroupOfSlurm checks that a site's slurm.conf may be writable by
// SlurmUser's group, and by no other group.
func TestGroupOfSlurm(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	u, err := nss.LookupUser("nobody")
	if err != nil || u.GID == 0 {
		t.Skip("the user nobody is not here", err)
	}
	write := func(text string, gid int) error {
		path := writeConfig(t, text)
		if err := errors.Join(os.Chown(path, 0, gid), os.Chmod(path, 0o664), os.Chown(filepath.Dir(path), 0, gid), os.Chmod(filepath.Dir(path), 0o775)); err != nil {
			t.Fatal(err)
		}
		_, err := readConfiguration(path, discard)
		return err
	}
	slurmConf, schedConf := "ClusterName=c\nSlurmctldHost=h\nSlurmUser=nobody\n", "ClusterName=c\nSchedctldHost=h\nSchedUser=nobody\n"
	if err := write(slurmConf, int(u.GID)); err != nil {
		t.Errorf("SlurmUser's group: %v", err)
	}
	if err := write(slurmConf, 0); err != nil {
		t.Errorf("root's group: %v", err)
	}
	if err := write(slurmConf, 30003); err == nil || !strings.Contains(errs.HintOf(err), fmt.Sprintf("chgrp %d ", u.GID)) {
		t.Errorf("a group of others: %v (%s)", err, errs.HintOf(err))
	}
	if err := write(schedConf, int(u.GID)); err == nil {
		t.Error("a file written for us was obeyed")
	}
}

// TestLocalhost checks the name that users see for a controller named
// "localhost". With Slurm's keys it must be the machine's own name, as in
// Slurm. With Sched's keys it must stay "localhost".
func TestLocalhost(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	hostname, _, _ = strings.Cut(hostname, ".")
	for keys, want := range map[string]string{"ClusterName=c\nSlurmctldHost=LocalHost(127.0.0.1)\n": hostname, "ClusterName=c\nSchedctldHost=localhost(127.0.0.1)\nAuthType=auth/munge\n": "localhost"} {
		s, _, err := slurmSetup(t, keys+"AuthAltTypes=auth/jwt\n")
		if err != nil || len(s.Controllers) != 1 || cmp.Diff(work.Address{Name: want, Host: "127.0.0.1", Network: "tcp", Address: "127.0.0.1:6817"}, s.Controllers[0]) != "" {
			t.Errorf("%s: %v, %v", keys, s.Controllers, err)
		}
	}
}

// TestUnsupportedAuthType checks that the hint about a misspelled AuthType names
// the right one, and that the hint about another one recommends tokens.
func TestUnsupportedAuthType(t *testing.T) {
	for value, want := range map[string]string{
		"auth/mung":     "set AuthType=auth/munge in /c",
		"auth/slrm":     "set AuthType=auth/slurm in /c",
		"auth/none":     "let users send tokens: ",
		"auth/kerberos": "let users send tokens: ",
	} {
		err := checkLocalAuth(&conf.Cluster{Path: "/c", Auth: conf.Auth{AuthType: value}})
		if err == nil || !strings.Contains(err.Error(), value) || !strings.HasPrefix(errs.HintOf(err), want) {
			t.Errorf("%s: %v, hint %q", value, err, errs.HintOf(err))
		}
	}
}

package main

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/ipc"
)

// slurmSample is a site's slurm.conf, with addresses in the place of names.
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

// slurmSetup is what a worker is told of a slurm.conf, and what is logged.
func slurmSetup(t *testing.T, text string) (ipc.Setup, string, error) {
	t.Helper()
	path := site(t, text)
	t.Setenv("SLURM_JWT", "daemon")
	var o options
	if err := o.fromEnvironment(); err != nil {
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

// TestSlurmConf: a site's slurm.conf is all that the gateway needs: who is asked in which order, as whom,
// and in whose words clients may ask.
func TestSlurmConf(t *testing.T) {
	s, log, err := slurmSetup(t, slurmSample+"AuthInfo=socket=/run/m,ttl=60\nAccountingStoragePass=/run/global\nTCPTimeout=7\nMessageTimeout=70\n")
	if err != nil || log != "" {
		t.Fatal(err, log)
	}
	controllers := []ipc.Address{{Name: "one", Network: "tcp", Address: "127.0.0.1:7001"}, {Name: "two", Network: "tcp", Address: "127.0.0.2:7001"},
		{Name: "three", Network: "tcp", Address: "[::1]:7001"}}
	accounting := []ipc.Address{{Name: "127.0.0.3", Network: "tcp", Address: "127.0.0.3:6819"}, {Name: "127.0.0.4", Network: "tcp", Address: "127.0.0.4:6819"}}
	if diff := cmp.Diff(controllers, s.Controllers) + cmp.Diff(accounting, s.Accounting); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Munge != (ipc.Munge{Socket: "/run/m", Accounting: "/run/global", TTL: time.Minute}) || s.AuthSocket != "" {
		t.Errorf("munged %+v, a controller's socket %q", s.Munge, s.AuthSocket)
	}
	if !s.JWT || !s.Local || s.Names != ipc.NamesSched|ipc.NamesSlurm || s.Limits.Connect != 7*time.Second || s.Limits.Call != 70*time.Second {
		t.Errorf("jwt %t, local %t, names %d, limits %+v", s.JWT, s.Local, s.Names, s.Limits)
	}
}

// TestWhoVouches: which ways to authenticate there are under each AuthType, and why not.
func TestWhoVouches(t *testing.T) {
	tests := []struct {
		name, text string
		local      bool
		munge      ipc.Munge
		log        string
	}{
		{name: "munge by default", local: true, munge: ipc.Munge{Socket: "/run/munge/munge.socket.2"}},
		{name: "munge", text: "AuthType=auth/munge\nAuthInfo=/run/m", local: true, munge: ipc.Munge{Socket: "/run/m"}},
		{name: "Slurm's keys", text: "AuthType=auth/slurm\nAuthInfo=use_client_ids", log: "rest_auth/local is not loaded: under AuthType=auth/slurm"},
		{name: "the kernel", text: "AuthType=auth/cred\nAuthInfo=socket=/run/ctl", local: true},
		{name: "the kernel, nowhere", text: "AuthType=auth/cred", log: "rest_auth/local is not loaded: it needs AuthType=auth/cred and AuthInfo=socket=PATH"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, log, err := slurmSetup(t, slurmSample+tt.text+"\n")
			if err != nil || !s.JWT || s.Local != tt.local || s.Munge != tt.munge {
				t.Errorf("jwt %t, local %t, %+v, %v", s.JWT, s.Local, s.Munge, err)
			}
			if (s.AuthSocket != "") != (tt.name == "the kernel") || !strings.Contains(log, tt.log) || tt.log == "" && log != "" {
				t.Errorf("socket %q, logged %q", s.AuthSocket, log)
			}
		})
	}
}

// TestLostController: one of several daemons whose name nobody knows is left out; who has none is told at the start.
func TestLostController(t *testing.T) {
	const lost = "nobody-has-this-name.invalid"
	text := strings.NewReplacer("one(127.0.0.1)", "one("+lost+")", "127.0.0.4", lost).Replace(slurmSample)
	s, log, err := slurmSetup(t, text)
	if err != nil || len(s.Controllers) != 2 || s.Controllers[0].Name != "two" || len(s.Accounting) != 1 {
		t.Errorf("%v, %v: %v", s.Controllers, s.Accounting, err)
	}
	for _, key := range []string{"SlurmctldHost=", "AccountingStorageHost="} {
		if !strings.Contains(log, "left out, until the configuration is read again: "+key+lost) {
			t.Errorf("%s%s is not in the log:\n%s", key, lost, log)
		}
	}
	_, _, err = slurmSetup(t, "ClusterName=c\nSlurmctldHost="+lost+"\nAuthAltTypes=auth/jwt\n")
	if errs.KindOf(err) != errs.NotFound || !strings.Contains(err.Error(), lost) {
		t.Errorf("no controller at all: %v", err)
	}
}

// TestNoSuchUser: what is wrong is named as it stands in the file.
func TestNoSuchUser(t *testing.T) {
	for _, key := range []string{"SlurmUser", "SchedUser"} {
		path := site(t, "ClusterName=c\n"+strings.Replace(key, "User", "ctldHost", 1)+"=127.0.0.1\n"+key+"=nobody-has-this-name\n")
		_, err := configuration(path, discard)
		if errs.KindOf(err) != errs.NotFound || !strings.HasPrefix(err.Error(), key+"=nobody-has-this-name: ") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestLocalhost: Slurm shows a controller on "localhost" under the machine's own name.
func TestLocalhost(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	own, _, _ = strings.Cut(own, ".")
	for keys, want := range map[string]string{"ClusterName=c\nSlurmctldHost=LocalHost(127.0.0.1)\n": own, "ClusterName=c\nSchedctldHost=localhost(127.0.0.1)\nAuthType=auth/munge\n": "localhost"} {
		s, _, err := slurmSetup(t, keys+"AuthAltTypes=auth/jwt\n")
		if err != nil || len(s.Controllers) != 1 || s.Controllers[0] != (ipc.Address{Name: want, Network: "tcp", Address: "127.0.0.1:6817"}) {
			t.Errorf("%s: %v, %v", keys, s.Controllers, err)
		}
	}
}

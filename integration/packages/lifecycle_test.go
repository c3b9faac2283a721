package packages

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// slurmConf is the configuration of a cluster of one machine.
const slurmConf = `ClusterName=lab
SlurmctldHost=head(127.0.0.1)
SlurmUser=slurm
AuthType=auth/munge
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt_hs256.key
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmdParameters=config_overrides
MailProg=/bin/true
NodeName=head NodeAddr=127.0.0.1 CPUs=1 RealMemory=500
PartitionName=debug Nodes=ALL Default=YES MaxTime=60 State=UP
`

// curlAsAlice is the beginning of a command that sends a request with alice's
// token. The URL must follow.
const curlAsAlice = `eval "$(scontrol token username=alice lifespan=3600)"; curl -sS --fail-with-body -H "X-SLURM-USER-TOKEN: $SLURM_JWT" `
const pingCommand = curlAsAlice + `http://127.0.0.1:6820/slurm/v0.0.42/ping`

// TestLifecycle installs, configures, upgrades, downgrades, removes and purges
// the packages on a machine with a real Slurm, in the order in which an
// administrator would.
func TestLifecycle(t *testing.T) {
	m := boot(t)
	arch := m.Run(t, "dpkg --print-architecture")
	first := build(t, "PACKAGE_ARCHS="+arch, "PACKAGE_REVISION=1")
	second := build(t, "PACKAGE_ARCHS="+arch, "PACKAGE_REVISION=2", "COMMIT=000000000002")
	m.copyPackages(t, first, "first")
	m.copyPackages(t, second, "second")
	m.changeConffile(t, "/root/second/schedrestd.deb")
	m.startSlurm(t)

	t.Run("install", func(t *testing.T) {
		m.Run(t, "apt-get install -y --no-install-recommends /root/first/schedrestd.deb")
		m.expect(t, "systemctl is-enabled schedrestd.socket; systemctl is-active schedrestd.socket", "enabled\nactive")
		m.expect(t, "! systemctl is-active schedrestd.service schedrestd-users.socket schedrestd-https.socket", "inactive\ninactive\ninactive")
		m.expect(t, "getent passwd schedrestd sched | cut -d: -f1; stat -c '%a %U:%G' /etc/sched/keys", "schedrestd\nsched\n710 root:sched")
		if out := m.Run(t, pingCommand); !strings.Contains(out, `"pinged":"UP"`) {
			t.Errorf("not UP:\n%s", out)
		}
		m.submit(t)
		m.Run(t, `for page in schedrestd schedctl sched.conf; do man -w $page; done; bash -c '. /usr/share/bash-completion/completions/schedrestd'`)
		m.Run(t, "cd /usr/lib/systemd/system; systemd-analyze verify --man=no schedrestd*.socket schedrestd.service schedrestd-users.service schedrestd-inetd@1.service")
	})
	if t.Failed() {
		return
	}
	// Changes that an administrator makes.
	m.Run(t, "echo SCHEDRESTD_AUDIT_LOG=/var/log/schedrestd/audit.log >>/etc/sched/schedrestd.env; systemctl restart schedrestd")
	m.submit(t)
	for _, step := range []struct{ name, install, commit string }{
		{"upgrade", "dpkg --force-confold -i /root/second/schedrestd.deb", "000000000002"},
		{"again", "dpkg --force-confold -i /root/second/schedrestd.deb; dpkg-reconfigure schedrestd", "000000000002"},
		{"downgrade", "apt-get install -y --no-install-recommends --allow-downgrades -o Dpkg::Options::=--force-confold /root/first/schedrestd.deb", ""},
	} {
		t.Run(step.name, func(t *testing.T) {
			before := m.Run(t, "systemctl show -P MainPID schedrestd")
			answered, failed := m.underLoad(t, func() { m.Run(t, step.install) })
			t.Logf("%s: %d requests answered, %d failed", step.name, answered, failed)
			if failed != 0 || answered == 0 {
				t.Errorf("%d requests answered, %d failed", answered, failed)
			}
			if after := m.Run(t, "systemctl show -P MainPID schedrestd"); after == before || after == "0" {
				t.Errorf("process %s before, %s after", before, after)
			}
			m.expect(t, "/proc/$(systemctl show -P MainPID schedrestd)/exe -V | grep -c 000000000002 || true", map[bool]string{true: "1", false: "0"}[step.commit != ""])
			m.expect(t, "tail -n 1 /etc/sched/schedrestd.env", "SCHEDRESTD_AUDIT_LOG=/var/log/schedrestd/audit.log")
			m.expect(t, "grep -c 'in the second package' /etc/sched/schedrestd.env.dpkg-dist || true", map[bool]string{true: "1", false: "0"}[step.commit != ""])
			m.expect(t, "systemctl is-enabled schedrestd.socket; systemctl list-units --failed --no-legend 'sched*'", "enabled")
			m.submit(t)
		})
	}
	t.Run("logrotate", func(t *testing.T) {
		m.Run(t, "logrotate --force /etc/logrotate.d/schedrestd")
		m.submit(t)
		m.expect(t, "cd /var/log/schedrestd; grep -c '\"intent\"' audit.log; ls", "1\naudit.log\naudit.log.1")
	})
	t.Run("disabled", func(t *testing.T) {
		m.Run(t, "systemctl disable --now schedrestd.socket schedrestd.service; dpkg --force-confold -i /root/second/schedrestd.deb")
		m.expect(t, "systemctl is-enabled schedrestd.socket || true; systemctl is-active schedrestd.socket schedrestd.service || true", "disabled\ninactive\ninactive")
		m.Run(t, "systemctl enable --now schedrestd.socket; "+pingCommand)
	})
	t.Run("remove", func(t *testing.T) {
		m.Run(t, "systemctl enable schedrestd-users.socket; apt-get remove -y schedrestd")
		m.expect(t, "pgrep sched || true; ls -d /run/schedrestd*/socket /usr/sbin/sched* /usr/lib/systemd/system/sched* 2>/dev/null || true", "")
		m.expect(t, "tail -n 1 /etc/sched/schedrestd.env", "SCHEDRESTD_AUDIT_LOG=/var/log/schedrestd/audit.log")
		m.Run(t, "apt-get install -y --no-install-recommends /root/second/schedrestd.deb; "+pingCommand)
		m.expect(t, "tail -n 1 /etc/sched/schedrestd.env", "SCHEDRESTD_AUDIT_LOG=/var/log/schedrestd/audit.log")
	})
	t.Run("purge", func(t *testing.T) {
		m.Run(t, "touch /etc/sched/keys/mine; apt-get purge -y schedrestd; rm /etc/sched/keys/mine; dpkg --purge schedrestd")
		m.checkNothingLeft(t, "/etc/sched/keys /etc/sched")
	})
	t.Run("controller", func(t *testing.T) { m.checkController(t) })
}

// copyPackages copies the packages of this architecture into the machine. The
// names of the copies do not contain the version.
func (m *machine) copyPackages(t *testing.T, from, to string) {
	t.Helper()
	for pattern, name := range map[string]string{"schedrestd_*.deb": "schedrestd.deb", "schedrestd-controller_*.deb": "controller.deb"} {
		found, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s in %s: %v, %v", pattern, from, found, err)
		}
		text, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		m.Run(t, "mkdir -p /root/"+to)
		m.Write(t, "/root/"+to+"/"+name, string(text))
	}
	m.Run(t, "chmod 0755 /root") // apt reads the file as another user
}

// changeConffile changes the configuration file inside a package. This
// simulates a newer package that contains a changed configuration file.
func (m *machine) changeConffile(t *testing.T, path string) {
	t.Helper()
	dir := t.TempDir()
	script := `dpkg-deb -R "$0" "$1/p"; echo '# Changed in the second package.' >>"$1/p/etc/sched/schedrestd.env"; dpkg-deb -Znone -b "$1/p" "$0"`
	if out, err := exec.Command("bash", "-ec", script, m.Root+path, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// startSlurm configures and starts this release's Slurm.
func (m *machine) startSlurm(t *testing.T) {
	t.Helper()
	m.Run(t, "mkdir -p /etc/slurm /var/lib/slurm/slurmctld /var/lib/slurm/slurmd; chown slurm: /var/lib/slurm/slurmctld")
	m.Write(t, "/etc/slurm/slurm.conf", slurmConf)
	m.Run(t, `[ -s /etc/munge/munge.key ] || { head -c 1024 /dev/urandom >/etc/munge/munge.key; chown munge: /etc/munge/munge.key; chmod 0400 /etc/munge/munge.key; }
		head -c 32 /dev/urandom >/etc/slurm/jwt_hs256.key; chown slurm: /etc/slurm/jwt_hs256.key; chmod 0400 /etc/slurm/jwt_hs256.key
		case $(slurmctld -V) in *22.05*) echo CgroupPlugin=cgroup/v1 ;; *) echo CgroupPlugin=disabled ;; esac >/etc/slurm/cgroup.conf
		systemctl restart munge; systemctl restart slurmctld slurmd
		for n in {1..150}; do scontrol ping | grep -q UP && sinfo -h -o %t | grep -q idle && exit 0; sleep 0.2; done
		systemctl status --no-pager munge slurmctld slurmd; sinfo; exit 1`)
	t.Log(m.Run(t, "slurmctld -V; systemctl --version | head -n 1"))
}

// submit submits a job through the gateway and waits until it has run as alice.
func (m *machine) submit(t *testing.T) {
	t.Helper()
	m.Run(t, `rm -f /home/alice/out
		`+curlAsAlice+`-H 'Content-Type: application/json' http://127.0.0.1:6820/slurm/v0.0.42/job/submit --data-binary @- <<'END'
{"script": "#!/bin/sh\nid -un\n", "job": {"name": "first", "current_working_directory": "/home/alice", "standard_output": "/home/alice/out", "environment": ["PATH=/usr/bin:/bin"]}}
END
		for n in {1..150}; do grep -q alice /home/alice/out 2>/dev/null && exit 0; sleep 0.2; done
		squeue; sinfo; exit 1`)
}

// underLoad calls change while clients send requests. It returns the numbers of
// answered and failed requests. Half of the clients open a connection for each
// request. The others keep their connections.
func (m *machine) underLoad(t *testing.T, change func()) (answered, failed int64) {
	t.Helper()
	token := strings.TrimPrefix(m.Run(t, "scontrol token username=alice lifespan=3600"), "SLURM_JWT=")
	var answers, failures atomic.Int64
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var clients sync.WaitGroup
	for n := range 8 {
		client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: n%2 == 0,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", m.Root+"/run/schedrestd/socket")
			}}}
		clients.Go(func() {
			for ctx.Err() == nil {
				if err := pingOnce(client, token); err != nil {
					t.Errorf("after %d answers: %v", answers.Load(), err)
					failures.Add(1)
				} else {
					answers.Add(1)
				}
				time.Sleep(5 * time.Millisecond) // on a fast machine there would be more connections than the parent accepts from a user
			}
		})
	}
	time.Sleep(time.Second)
	before := answers.Load()
	change()
	if answers.Load() == before {
		t.Error("no request was answered during the change")
	}
	time.Sleep(2 * time.Second)
	stop()
	clients.Wait()
	return answers.Load(), failures.Load()
}

func pingOnce(client *http.Client, token string) error {
	r, err := http.NewRequest("GET", "http://gateway/slurm/v0.0.42/ping", nil)
	if err != nil {
		return err
	}
	r.Header.Set("X-SLURM-USER-TOKEN", token)
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != 200 || !strings.Contains(string(text), `"pinged":"UP"`)) {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return err
}

// checkNothingLeft checks that a purge has left no files, units or processes of
// the packages. A purge may leave the directories in emptyDirs if they are
// empty, so checkNothingLeft removes them first.
func (m *machine) checkNothingLeft(t *testing.T, emptyDirs string) {
	t.Helper()
	m.Run(t, "rmdir "+emptyDirs+" 2>/dev/null || true")
	m.expect(t, `find / -xdev \( -path /root -o -path /proc -o -path /sys -o -path /var/log/journal -o -path /run/log \) -prune -o \( -name '*schedrest*' -o -name 'sched*.socket' -o -path /etc/sched \) -print
		systemctl list-units --all --no-legend --plain 'sched*'; pgrep sched || true`, "")
}

// checkController installs the bundled daemons, upgrades them, and purges both
// packages.
func (m *machine) checkController(t *testing.T) {
	m.Run(t, `systemctl stop slurmd slurmctld; mv /etc/slurm/slurm.conf /root
		apt-get install -y --no-install-recommends /root/first/schedrestd.deb /root/first/controller.deb
		systemctl is-enabled schedctld.socket scheddbd.socket && exit 1
		cp /usr/share/doc/schedrestd-controller/examples/{sched,scheddbd}.conf /etc/sched/
		(umask 077; head -c 32 /dev/urandom >/etc/sched/keys/jwt.key)
		chown sched: /etc/sched/keys/jwt.key; chmod 0400 /etc/sched/keys/jwt.key
		systemctl enable --now scheddbd schedctld; systemctl start schedrestd`)
	const bundled = `eval "$(schedctl token)"; curl -sS --fail-with-body -H "X-SCHED-USER-TOKEN: $SCHED_JWT" http://127.0.0.1:6820/sched/v0.0.43/ping`
	m.Run(t, bundled)
	before := m.Run(t, "systemctl show -P MainPID schedctld scheddbd")
	m.Run(t, "dpkg --force-confold -i /root/second/*.deb; "+bundled)
	if after := m.Run(t, "systemctl show -P MainPID schedctld scheddbd"); after == before {
		t.Errorf("the daemons were not restarted: %q", after)
	}
	m.Run(t, "apt-get purge -y schedrestd schedrestd-controller; rm -r /etc/sched /var/lib/sched /var/lib/scheddbd")
	m.checkNothingLeft(t, "/etc/sched")
}

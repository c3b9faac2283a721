package systemd

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// squatterScript creates a program that alice runs. The program tries to listen
// on a port until it succeeds or is killed. It prints a line when it is ready,
// and another line when it has succeeded.
const squatterScript = `cat >/tmp/squatter.pl <<'END'
use Socket; $| = 1; my $port = shift; my $tries = 0;
while (1) {
	socket(my $s, PF_INET, SOCK_STREAM, 0) or die;
	setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind($s, sockaddr_in($port, inet_aton("127.0.0.1"))) && listen($s, 5)) { print "bound\n"; exit }
	print "ready\n" unless $tries++;
}
END
`

// TestDaemonsPortsAreNeverFree checks that no other user can ever listen on a
// daemon's port, however the daemon ends. Requests that arrive before the
// daemon has started again must wait for it.
func TestDaemonsPortsAreNeverFree(t *testing.T) {
	m := bootedMachine(t)
	m.reset(t)
	m.Run(t, squatterScript+startCommand+"\nsystemctl restart scheddbd schedctld")
	for unit, tt := range map[string]struct{ port, request string }{
		"schedctld": {"6817", pingCommand},
		"scheddbd":  {"6819", curlWithToken + `'http://127.0.0.1:6820/scheddb/v0.0.43/jobs?users=alice'`},
	} {
		t.Run(unit, func(t *testing.T) {
			m.Run(t, tt.request)
			cmd := exec.Command("./machine", m.Suite, "run", "setpriv", "--reuid=alice", "--regid=alice", "--clear-groups", "perl", "/tmp/squatter.pl", tt.port)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ready := make([]byte, 64)
			n, _ := out.Read(ready)
			if string(ready[:n]) != "ready\n" {
				t.Fatalf("the squatter printed %q at once", ready[:n])
			}
			for range 5 {
				m.Run(t, "systemctl kill --signal=KILL --kill-whom=main "+unit)
				m.Run(t, tt.request)
			}
			m.Run(t, "systemctl restart "+unit+"; "+tt.request)
			m.Run(t, "pkill -u alice -f squatter.pl || true")
			n, _ = out.Read(ready)
			if n > 0 {
				t.Errorf("another user got the port: %s", ready[:n])
			}
			cmd.Wait()
		})
	}
}

// TestForeignSocket checks that a daemon does not start if systemd passes a
// socket that differs from the one in the daemon's configuration. The error
// must name both sockets.
func TestForeignSocket(t *testing.T) {
	m := bootedMachine(t)
	m.reset(t)
	m.Run(t, "cp /etc/sched/sched.conf /tmp; echo SchedctldPort=7817 >>/etc/sched/sched.conf")
	defer m.Run(t, "cp /tmp/sched.conf /etc/sched/; systemctl restart schedctld")
	m.Run(t, "systemctl restart schedctld")
	const want = "socket mismatch: the service manager passed 127.0.0.1:6817, the configuration has 127.0.0.1:7817"
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		log := m.Run(t, "journalctl --sync; journalctl -o cat --no-pager -n 100 -u schedctld")
		if strings.Contains(log, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no line %q in\n%s", want, log)
		}
	}
}

// TestWatchdog checks that systemd kills a process that hangs and starts a new
// one, and that requests are answered afterwards.
func TestWatchdog(t *testing.T) {
	m := bootedMachine(t)
	m.reset(t)
	m.Run(t, startCommand)
	for _, unit := range []string{"schedctld", "scheddbd", "schedrestd"} {
		t.Run(unit, func(t *testing.T) {
			dir := "/etc/systemd/system/" + unit + ".service.d"
			defer m.Run(t, "rm -r "+dir+"; systemctl daemon-reload; systemctl restart "+unit)
			m.Run(t, "mkdir -p "+dir+`; printf '[Service]\nWatchdogSec=2\n' >`+dir+"/watchdog.conf; systemctl daemon-reload; systemctl restart "+unit)
			m.Run(t, pingCommand)
			before := m.Run(t, "systemctl show -P MainPID "+unit)
			m.Run(t, "kill -STOP "+before)
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
				now := m.Run(t, "systemctl show -P MainPID "+unit)
				if now != "0" && now != before {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("process %s is still there:\n%s", before, m.Run(t, "systemctl status --no-pager "+unit+" || true"))
				}
			}
			m.Run(t, pingCommand)
			if log := m.Run(t, "journalctl --sync; journalctl -o cat --no-pager -n 200 _PID=1 UNIT="+unit+".service"); !strings.Contains(log, "Watchdog timeout") {
				t.Errorf("the journal:\n%s", log)
			}
		})
	}
}

package systemd

import (
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// TestSocketUnitStartsAgain checks that a socket unit which fails while it
// listens soon listens again. A limit on connections, which our units do not
// have, makes the unit fail. If the unit fails because another program has the
// port, it must not take the port later.
func TestSocketUnitStartsAgain(t *testing.T) {
	m := bootedMachine(t)
	const unit = "schedrestd-inetd.socket"
	const dropIn = "/run/systemd/system/" + unit + ".d"
	state := func() string { return m.Run(t, "systemctl show -P ActiveState "+unit) }
	m.reset(t)
	defer m.Run(t, "rm -rf "+dropIn+"; systemctl daemon-reload")
	m.Run(t, "mkdir -p "+dropIn+`; printf '[Socket]\nTriggerLimitIntervalSec=1h\nTriggerLimitBurst=2\n' >`+dropIn+"/limit.conf; systemctl daemon-reload; systemctl start "+unit)
	for range 3 {
		m.Try(pingCommand)
	}
	harness.Eventually(t, "the unit fails", func() bool {
		return strings.Contains(m.Run(t, "journalctl --sync; journalctl -o cat --no-pager -u "+unit), "trigger-limit-hit")
	})
	harness.Eventually(t, "the unit listens again", func() bool { return state() == "active" })
	m.Run(t, "rm -r "+dropIn+"; systemctl daemon-reload; systemctl restart "+unit)
	m.Run(t, pingCommand)

	m.Run(t, "systemctl stop "+unit+"; systemctl start schedctld")
	m.Run(t, "mkdir -p "+dropIn+`; printf '[Socket]\nListenStream=127.0.0.1:6817\n' >`+dropIn+"/port.conf; systemctl daemon-reload")
	if out, err := m.Try("systemctl start " + unit); err == nil {
		t.Errorf("started on another program's port: %s", out)
	}
	harness.Eventually(t, "the recovery is refused", func() bool {
		return m.Run(t, "systemctl show -P Result schedrestd-relisten@"+unit+".service") == "exec-condition"
	})
	if got := state(); got != "failed" {
		t.Errorf("the unit is %q", got)
	}
}

// TestFloodedSocketUnit checks that connections that are opened and closed as
// fast as possible do not stop a socket unit, and that it then answers.
func TestFloodedSocketUnit(t *testing.T) {
	m := bootedMachine(t)
	for _, unit := range []string{"schedrestd-inetd.socket", "schedrestd.socket"} {
		t.Run(unit, func(t *testing.T) {
			m.reset(t)
			m.Run(t, squatterScript+`cat >/tmp/flood.pl <<'END'
use Socket; my $end = time + 6;
while (time < $end) {
	socket(my $s, PF_INET, SOCK_STREAM, 0) or next;
	setsockopt($s, SOL_SOCKET, SO_LINGER, pack("ii", 1, 0));
	connect($s, sockaddr_in(6820, inet_aton("127.0.0.1")));
}
END
systemctl start `+unit)
			out := m.Run(t, `alice='setpriv --reuid=alice --regid=alice --clear-groups'
				$alice timeout 20 perl /tmp/squatter.pl 6820 &
				for i in 1 2 3; do $alice perl /tmp/flood.pl & floods="$floods $!"; done
				wait $floods`)
			if strings.Contains(out, "bound") {
				t.Error("another user got the port")
			}
			if state := m.Run(t, "systemctl show -P ActiveState "+unit); state != "active" {
				t.Errorf("the unit is %s", state)
			}
			m.Run(t, pingCommand)
		})
	}
}

// TestFailedStart checks that clients get 503 while the gateway can't start, and
// that the gateway serves as soon as the mistake is corrected. The sockets must
// stay open all the time.
func TestFailedStart(t *testing.T) {
	m := bootedMachine(t)
	for _, tt := range []struct{ unit, client, ask string }{
		{"schedrestd", "curl -sS -o /dev/null -w '%{http_code}' -m 60 http://127.0.0.1:6820/sched/v0.0.43/ping", pingCommand},
		{"schedrestd-users", "curl -sS -o /dev/null -w '%{http_code}' -m 60 --unix-socket /run/schedrestd-users/socket http://x/sched/v0.0.43/ping", usersPing},
	} {
		t.Run(tt.unit, func(t *testing.T) {
			m.reset(t)
			sockets := func() string {
				return m.Run(t, "systemctl show -P ActiveEnterTimestampMonotonic "+tt.unit+".socket; systemctl show -P ActiveState "+tt.unit+".socket")
			}
			m.Run(t, "systemctl start "+tt.unit+".socket "+tt.unit+".service\n"+tt.ask)
			before := sockets()
			m.Write(t, "/etc/sched/"+tt.unit+".env", "SCHEDRESTD_MAX_CONNECTIONS=many\n")
			if out, err := m.Try("systemctl restart " + tt.unit); err == nil {
				t.Errorf("started: %s", out)
			}
			for range 3 {
				if status := m.Run(t, tt.client); status != "503" {
					t.Errorf("status %s", status)
				}
			}
			if after := sockets(); after != before {
				t.Errorf("the socket unit was stopped: %q, before %q", after, before)
			}
			m.Run(t, "rm /etc/sched/"+tt.unit+".env")
			harness.Eventually(t, "the gateway serves", func() bool { _, err := m.Try(tt.ask); return err == nil })
			m.Run(t, tt.ask)
			if failed := m.Run(t, "systemctl list-units --no-legend --plain --state=failed 'schedrestd*'"); failed != "" {
				t.Errorf("failed units: %s", failed)
			}
		})
	}
}

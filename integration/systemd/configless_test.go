package systemd

import (
	"strings"
	"testing"
)

// TestConfigless checks that each unit can fetch its configuration from the
// controller, may keep a copy, and starts from it while the controller is down.
func TestConfigless(t *testing.T) {
	m := bootedMachine(t)
	m.reset(t)
	m.Run(t, `cp -p /etc/sched/sched.conf /root/sched.conf; echo SchedctldParameters=enable_configless >>/etc/sched/sched.conf; systemctl restart schedctld`)
	t.Cleanup(func() { m.Run(t, `cp -p /root/sched.conf /etc/sched/sched.conf; systemctl restart schedctld`) })
	for name, owner := range map[string]string{"service": "schedrestd", "root": "schedrestd-config", "users": "schedrestd-config", "dynamic user": ""} {
		t.Run(name, func(t *testing.T) {
			m.reset(t)
			start := unitStarts[name]
			m.Write(t, "/etc/sched/"+start.env, "SCHEDRESTD_OPTIONS=--conf-server unix:/run/schedctld/socket\n")
			m.Run(t, start.before+"\n"+start.start)
			m.Run(t, start.ask)
			if got := m.Run(t, "stat -c '%U %a' /var/cache/schedrestd/*.json /var/cache/schedrestd-config/*.json 2>/dev/null || true"); got != owner+" 600" && (owner != "" || !strings.HasSuffix(got, " 600")) {
				t.Errorf("the copies are %q\n%s", got, m.journalSinceStart(t, start.unit))
			}
			m.Run(t, "systemctl stop schedctld.socket schedctld.service; systemctl restart "+start.unit)
			if log := m.journalSinceStart(t, start.unit); !strings.Contains(log, "using the copy of an earlier start") {
				t.Errorf("the journal:\n%s", log)
			}
			m.Run(t, "systemctl start schedctld.socket schedctld.service; systemctl reload "+start.unit)
			m.Run(t, start.ask)
		})
	}
}

package systemd

import (
	"strings"
	"testing"
)

// TestPage follows docs/INSTALL.md from the first command to the last, so that
// each command on the page is tested. After the last command, no part of the
// installation may be left. Then TestPage installs everything again, for the
// other tests.
func TestPage(t *testing.T) {
	m := bootedMachine(t)
	all, err := blocks("")
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]string{
		"4. TLS":                     makeCertificate,
		"6. Verify the installation": "systemctl start schedrestd-users.socket",
	}
	m.reset(t)
	heading := ""
	for _, b := range all {
		if b.Heading != heading {
			heading = b.Heading
			m.Run(t, before[heading])
		}
		out, err := m.runBlock(b)
		if err != nil {
			t.Fatalf("docs/INSTALL.md:%d: %v\n%s\n%s", b.Line, err, b.Text, out)
		}
		if strings.Contains(b.Text, "/ping") && !strings.Contains(out, `"pinged":"UP"`) {
			t.Errorf("docs/INSTALL.md:%d: printed\n%s", b.Line, out)
		}
	}
	leftovers := m.Run(t, `find /usr/local /etc/systemd/system -name '*sched*' ! -name '*.service.d'
		systemctl list-units --no-legend --plain --all 'sched*'
		pgrep sched || true`)
	if leftovers != "" {
		t.Errorf("left:\n%s", leftovers)
	}
	if err := m.install(); err != nil {
		t.Fatal(err)
	}
	m.reset(t)
}

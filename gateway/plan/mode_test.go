package plan

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"

	"schedrestd/gateway/plan/option"
	"schedrestd/internal/loglevel"
	"schedrestd/ipc"
)

// TestModes checks how the mode of a gateway depends on an address, a passed
// socket and a terminal.
func TestModes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		listen []string
		start  ipc.ConfigSetup
		want   mode
	}{
		{"an address", []string{":1"}, ipc.ConfigSetup{}, listening},
		{"a socket that was passed", nil, ipc.ConfigSetup{PassedSockets: true}, listening},
		{"both", []string{":1"}, ipc.ConfigSetup{PassedSockets: true, Terminal: true}, listening},
		{"neither, and no terminal", nil, ipc.ConfigSetup{}, inetd},
		{"neither, at a terminal", nil, ipc.ConfigSetup{Terminal: true}, interactive},
	} {
		o := options{Options: option.Options{Listen: tt.listen}, start: tt.start}
		if got := o.runMode(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestAnnounce checks that options without effect in inetd mode are logged, and
// that an interactive user gets instructions.
func TestAnnounce(t *testing.T) {
	var out bytes.Buffer
	var minLevel slog.LevelVar
	log := loglevel.New("", &out, &minLevel)
	inetd.announce(options{}, log)
	if out.Len() > 0 {
		t.Errorf("logged without a reason:\n%s", &out)
	}
	inetd.announce(options{Options: option.Options{Run: ipc.Run{Numbers: ipc.Numbers{Threads: 2}}}}, log)
	if !strings.Contains(out.String(), "option -t ignored") || !strings.Contains(out.String(), "level=WARN") {
		t.Errorf("-t is not logged as ignored:\n%s", &out)
	}
	out.Reset()
	var register options
	register.Setup.Register = "/etc/slurm/tokens"
	inetd.announce(register, log)
	if !strings.Contains(out.String(), "SCHEDRESTD_TOKEN_REGISTER ignored") {
		t.Errorf("the register is not logged as ignored:\n%s", &out)
	}
	out.Reset()
	interactive.announce(options{}, log)
	if !strings.Contains(out.String(), "interactive mode: type") {
		t.Errorf("no instructions for a person at a terminal:\n%s", &out)
	}
}

// TestNetworkNamespaceWithoutTCP checks that SCHEDRESTD_NETNS is refused if the
// gateway has no TCP address to open in the network namespace.
func TestNetworkNamespaceWithoutTCP(t *testing.T) {
	path := writeConfig(t, sample)
	t.Setenv("SCHED_JWT", "daemon")
	t.Setenv("SCHEDRESTD_NETNS", "mgmt")
	for address, want := range map[string]int{"unix:/s": 1, "127.0.0.1:1": 0} {
		var log bytes.Buffer
		status := runCommand(new(fakeHost), startHere(), []string{"-f", path, address}, io.Discard, &log)
		if logged := strings.Contains(log.String(), "SCHEDRESTD_NETNS=mgmt needs a TCP address"); status != want || logged != (want == 1) {
			t.Errorf("%s: exit status %d, log:\n%s", address, status, &log)
		}
	}
}

package plan

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestAgain checks a reload. The reload must make a Plan from the current files
// and the same command line. An error must be sent to the parent, and not
// printed.
func TestAgain(t *testing.T) {
	path := writeConfig(t, sample)
	t.Setenv("SCHED_JWT", "daemon")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	running := ipc.ConfigSetup{SocketMode: 0o666}
	reload := func() (*fakeHost, string) {
		t.Helper()
		m, start := new(fakeHost), startHere()
		start.Reload, start.SchedUID, start.SocketMode = true, running.SchedUID, running.SocketMode
		var out, log bytes.Buffer
		status := runCommand(m, start, []string{"-f", path, "-d", "v0.0.42", "unix:/s", ":1"}, &out, &log)
		if status != 0 || out.Len() > 0 || strings.Contains(log.String(), "error: ") {
			t.Errorf("exit status %d, printed %s%s", status, &out, &log)
		}
		return m, log.String()
	}

	write(strings.Replace(sample, "=tiny", "=other", 1) + "DebugFlags=Network\nTLSParameters=restd_ca_file=/ca\n")
	m, log := reload()
	if m.plan == nil || m.plan.Setup.Cluster != "other" || m.plan.Secrets.TLS.ClientCA != "/ca" || slog.Level(m.plan.LogLevel) != slog.LevelDebug || m.plan.Path != path {
		t.Fatalf("%+v, %v", m.plan, m.failure)
	}
	if p := m.plan.Setup.Parsers; len(p) != 1 || p[0] != (work.Parser{Version: 42}) {
		t.Errorf("the options of the command line are lost: %v", p)
	}
	if strings.Contains(log, "level=WARN") {
		t.Errorf("log:\n%s", log)
	}

	running.SchedUID++
	running.SocketMode = 0o600
	for _, key := range []string{"key=SchedUser ", `key="AuthAltTypes (for the mode of UNIX sockets)"`} {
		if _, log := reload(); strings.Count(log, "configuration change needs a restart") != 2 || !strings.Contains(log, key) {
			t.Errorf("log without %s:\n%s", key, log)
		}
	}

	write("ClusterName=\n")
	if m, _ := reload(); m.plan != nil || m.failure == nil || !strings.Contains(m.failure.Error(), path+":1: ") {
		t.Errorf("a bad file: %v", m.failure)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if m, _ := reload(); m.plan != nil || m.failure == nil || !strings.Contains(m.failure.Error(), path) {
		t.Errorf("no file: %v", m.failure)
	}
}

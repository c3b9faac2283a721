package privsep

import (
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/program"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// TestFailedStartLeavesNoProcess checks that a process exits if the parent can't send it
// its files. The dispatcher learns only that the start has failed, so it could not end
// the process.
func TestFailedStartLeavesNoProcess(t *testing.T) {
	t.Parallel()
	file, err := os.Open("/bin/sleep")
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	m := newMonitor(completeConfig(work.Setup{}), identity.Service{})
	m.confinedSpawner, err = spawn.New(spawn.Options{Plain: true, Worker: file})
	must(t, err)
	defer m.confinedSpawner.Stop()
	m.programs = program.Set{ipc.Exporter: {File: file, Argv: []string{"sleep", "1000"}, Identity: security.Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}}}
	listeners, err := listen.Open(listen.Options{Addresses: []ipc.Listen{{Network: ipc.TCP, Addresses: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}}}})
	must(t, err)
	defer listen.CloseAll(listeners)
	m.metricsListeners = slices.Repeat(listeners, 10_000) // the process does not read its channel, which so becomes full

	child, err := m.startProcess(&generation{config: *m.config()}, &ipc.StartProcess{Role: ipc.Exporter, Threads: 1})
	if err == nil || child == nil {
		t.Fatalf("%v, %v", child, err)
	}
	select {
	case <-child.Exited:
		if !child.Status.Signaled() {
			t.Errorf("exited with status %d", child.Status)
		}
	case <-time.After(time.Minute):
		t.Error("the process runs")
	}
}

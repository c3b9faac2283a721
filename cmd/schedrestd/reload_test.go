package main

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/ipc"
)

// TestFixed: what needs a restart is named.
func TestFixed(t *testing.T) {
	started := &ipc.WholePlan{Plan: ipc.Plan{}, Listen: []ipc.Listen{{Network: ipc.Unix, Path: "/s"}}, Setup: ipc.Setup{JWT: true}}
	next := &ipc.WholePlan{Plan: ipc.Plan{Service: ipc.Service{SchedUID: 65534}}, Listen: started.Listen}
	if diff := cmp.Diff([]string{"SchedUser", "AuthAltTypes (for the mode of UNIX sockets)"}, fixed(started, next)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if list := fixed(started, started); list != nil {
		t.Errorf("nothing has changed: %v", list)
	}
}

// TestAccepted: a Plan counts from when it is accepted, and one whose ranges of
// uids could not be read keeps those of before.
func TestAccepted(t *testing.T) {
	r := reloader{level: new(slog.LevelVar), owners: new(owners)}
	accept := func(plan ipc.WholePlan) { r.last = &plan; r.Accepted() }
	if r.owners.of(100_005) != 100_005 {
		t.Error("a range from nowhere")
	}
	accept(ipc.WholePlan{Plan: ipc.Plan{LogLevel: -4, Subuids: true}, Ranges: []ipc.Subuids{{First: 100_000, Last: 100_009, Owner: 7}}})
	accept(ipc.WholePlan{Plan: ipc.Plan{LogLevel: 4}})
	if r.level.Level() != slog.LevelWarn || r.owners.of(100_005) != 7 || r.owners.of(100_010) != 100_010 {
		t.Errorf("level %v, owners %v", r.level.Level(), r.owners.plan.Load())
	}
}

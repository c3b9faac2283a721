package main

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/ipc"
)

// TestFixed: what needs a restart is named.
func TestFixed(t *testing.T) {
	started := &ipc.WholePlan{Plan: ipc.Plan{SocketMode: 0o666}, Listen: []ipc.Listen{{Network: ipc.Unix, Path: "/s"}}}
	next := &ipc.WholePlan{Plan: ipc.Plan{SocketMode: 0o600, Service: ipc.Service{SchedUID: 65534}}, Listen: started.Listen}
	if diff := cmp.Diff([]string{"SchedUser", "AuthAltTypes (for the mode of UNIX sockets)"}, fixed(started, next)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if list := fixed(started, started); list != nil {
		t.Errorf("nothing has changed: %v", list)
	}
}

// TestAccepted: a Plan counts from when it is accepted, and one whose ranges of
// uids could not be read does not replace those of before.
func TestAccepted(t *testing.T) {
	r := reloader{level: new(slog.LevelVar), last: &ipc.WholePlan{Plan: ipc.Plan{LogLevel: 4}}}
	r.Accepted()
	if r.level.Level() != slog.LevelWarn {
		t.Errorf("level %v", r.level.Level())
	}
	if list := subuids(&ipc.WholePlan{Plan: ipc.Plan{Subuids: true}}); list == nil || len(list) != 0 {
		t.Errorf("no ranges are %v", list)
	}
	if list := subuids(&ipc.WholePlan{Ranges: []ipc.Subuids{{Last: 1}}}); list != nil {
		t.Errorf("ranges that could not be read are %v", list)
	}
}

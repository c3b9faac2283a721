package privsep

import (
	"io/fs"
	"log/slog"
	"testing"
	"time"

	"schedrestd/gateway/plan"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/listen"
	"schedrestd/security"
)

// completeConfig returns the Config that schedrestd-config would make for a
// gateway whose workers get the given setup.
func completeConfig(setup work.Setup) Config {
	const limit = time.Minute // any time but 0
	setup.Limits = work.Limits{ReadHeader: limit, ReadBody: limit, Idle: limit, Stall: limit, Call: limit, Accounting: limit, Connect: limit, Drain: limit, Header: 1, Body: 1, Answers: 1}
	packed, err := setup.Pack()
	if err != nil {
		panic(err)
	}
	p := ipc.PackedPlan{Setup: packed, Plan: ipc.Plan{Run: ipc.Run{Numbers: ipc.Numbers{Threads: 4}}}}
	if err := plan.Complete(&p.Plan, &p.Setup, &p.Listen); err != nil {
		panic(err)
	}
	return Config{PackedPlan: p, Level: new(slog.LevelVar), Limits: Defaults}
}

// TestNumbers checks that a parent refuses limits with which no gateway can
// run.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ipc.Numbers){
		"no connections":   func(n *ipc.Numbers) { n.Connections = 0 },
		"no workers":       func(n *ipc.Numbers) { n.Workers = 0 },
		"no threads":       func(n *ipc.Numbers) { n.Threads = 0 },
		"no identities":    func(n *ipc.Numbers) { n.Identities = 0 },
		"many connections": func(n *ipc.Numbers) { n.Connections = ipc.MaxConnections + 1 },
		"many waiting":     func(n *ipc.Numbers) { n.Waiting = 1 << 31 },
	} {
		c := completeConfig(work.Setup{})
		if err := c.checkNumbers(); err != nil {
			t.Fatal(err)
		}
		if change(&c.Numbers); c.checkNumbers() == nil {
			t.Errorf("%s: %+v is accepted", name, c.Numbers)
		}
	}
}

// TestConnectsWhereNeeded checks that a worker may connect to UNIX sockets only
// if two conditions hold: the kernel identifies the gateway's clients, and the
// configuration names the UNIX socket of a daemon or of munged.
func TestConnectsWhereNeeded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		setup work.Setup
		over  ipc.Network
		want  bool
	}{
		{"over TCP come tokens alone", work.Setup{Setup: ipc.Setup{Local: true, JWT: true}, AuthSocket: "/s"}, ipc.TCP, false},
		{"… and nothing for munged to verify", work.Setup{Setup: ipc.Setup{Local: true, JWT: true}, Munge: work.Munge{Socket: "/s"}}, ipc.TCP, false},
		{"the controller's socket", work.Setup{Setup: ipc.Setup{Local: true}, AuthSocket: "/s"}, ipc.Unix, true},
		{"munged", work.Setup{Setup: ipc.Setup{Local: true}, Munge: work.Munge{Socket: "/s"}}, ipc.Unix, true},
		{"an accounting daemon's socket", work.Setup{Setup: ipc.Setup{Local: true}, Accounting: []work.Address{{Network: "unix", Address: "/s"}}}, ipc.Unix, true},
		{"tokens alone over a UNIX socket", work.Setup{Setup: ipc.Setup{JWT: true}, AuthSocket: "/s"}, ipc.Unix, false},
		{"no socket to connect to", work.Setup{Setup: ipc.Setup{Local: true}}, ipc.Unix, false},
	} {
		m := newMonitor(completeConfig(tt.setup), identity.Service{})
		must(t, m.adoptListeners([]*listen.Listener{{Listening: ipc.Listening{Network: ipc.TCP}}, {Listening: ipc.Listening{Network: tt.over}}}))
		got, err := work.Unpack(m.config().Setup)
		must(t, err)
		if (got.Sandbox&ipc.SandboxUnix != 0) != tt.want || (got.AuthSocket+got.Munge.Socket != "" || len(got.Accounting) > 0) != tt.want {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// TestUnixSocketOptions checks that UNIX sockets belong to the service user. If
// each user is served under their own identity, the sockets must belong to
// root.
func TestUnixSocketOptions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		plan     ipc.Plan
		mode     fs.FileMode
		uid, gid uint32
	}{
		"a service":   {ipc.Plan{SocketMode: 0o600}, 0o600, 7, 8},
		"a group":     {ipc.Plan{SocketMode: 0o660, HasSocketGroup: true, SocketGID: 44}, 0o660, 7, 44},
		"become_user": {ipc.Plan{SocketMode: 0o666, Run: ipc.Run{Switches: ipc.Switches{BecomeUser: true}}}, 0o666, 0, 0},
	} {
		o := Config{PackedPlan: ipc.PackedPlan{Plan: tt.plan}}.listenOptions(identity.Service{Identity: security.Identity{UID: 7, GID: 8}}).Unix
		if o.Mode != tt.mode || o.Owner.UID != tt.uid || o.Owner.GID != tt.gid {
			t.Errorf("%s: mode %o of %+v", name, o.Mode, *o.Owner)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

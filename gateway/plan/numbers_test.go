package plan

import (
	"bytes"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// TestComplete checks the numbers that Complete sets. It must derive them from
// the numbers that the administrator has set.
func TestComplete(t *testing.T) {
	threads := uint32(max(2, runtime.NumCPU()))
	workers := uint32(1)
	if threads >= 4 {
		workers = 2
	}
	become := ipc.Switches{BecomeUser: true}
	for name, tt := range map[string]struct {
		numbers  ipc.Numbers
		switches ipc.Switches
		inetd    bool
		want     ipc.Numbers // without Waiting
	}{
		"the defaults":             {want: ipc.Numbers{Connections: 124, Identities: 64, Workers: workers, Threads: threads}},
		"three threads":            {numbers: ipc.Numbers{Threads: 3}, want: ipc.Numbers{Connections: 124, Identities: 64, Workers: 1, Threads: 3}},
		"four threads":             {numbers: ipc.Numbers{Threads: 4}, want: ipc.Numbers{Connections: 124, Identities: 64, Workers: 2, Threads: 4}},
		"one connection":           {numbers: ipc.Numbers{Connections: 1, Threads: 8}, want: ipc.Numbers{Connections: 1, Identities: 64, Workers: 1, Threads: 8}},
		"more threads":             {numbers: ipc.Numbers{Threads: 8}, want: ipc.Numbers{Connections: 124, Identities: 64, Workers: 2, Threads: 8}},
		"become_user":              {numbers: ipc.Numbers{Threads: 8}, switches: become, want: ipc.Numbers{Connections: 124, PerSource: 62, Identities: 64, Workers: 2, Threads: 8}},
		"become_user, one":         {numbers: ipc.Numbers{Connections: 1, Threads: 1}, switches: become, want: ipc.Numbers{Connections: 1, PerSource: 1, Identities: 64, Workers: 1, Threads: 1}},
		"become_user with a limit": {numbers: ipc.Numbers{PerSource: 3, Threads: 8}, switches: become, want: ipc.Numbers{Connections: 124, PerSource: 3, Identities: 64, Workers: 2, Threads: 8}},
		"inetd":                    {numbers: ipc.Numbers{Connections: 50, Threads: 8}, switches: become, inetd: true, want: ipc.Numbers{Connections: 1, Identities: 64, Workers: 1, Threads: 1}},
	} {
		p, s := ipc.Plan{Run: ipc.Run{Numbers: tt.numbers, Switches: tt.switches}}, ipc.Setup{}
		if tt.inetd {
			p.Mode = ipc.ModeInetd
		}
		if err := Complete(&p, &s, new([]ipc.Listen)); err != nil {
			t.Fatal(err)
		}
		if p.Waiting < p.Connections || s.Files < 3*p.Connections || p.PIDs < 4*p.Threads {
			t.Errorf("%s: %d wait, %d files, %d processes", name, p.Waiting, s.Files, p.PIDs)
		}
		p.Waiting = 0
		if diff := cmp.Diff(tt.want, p.Numbers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestTooFewFiles checks that a number of connections is refused if it needs
// more descriptors than the machine permits.
func TestTooFewFiles(t *testing.T) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || l.Max > math.MaxUint32/4 {
		t.Skip("this machine has descriptors for all connections")
	}
	p := ipc.Plan{Run: ipc.Run{Numbers: ipc.Numbers{Connections: uint32(l.Max/3) + 1}}}
	if err := Complete(&p, new(ipc.Setup), new([]ipc.Listen)); errs.KindOf(err) != errs.Invalid || errs.HintOf(err) == "" {
		t.Errorf("error %v", err)
	}
}

// TestFewFiles checks the warning about a number of connections that leaves few
// descriptors for requests that wait for changes.
func TestFewFiles(t *testing.T) {
	for watching, want := range map[uint32]string{123: "LimitNOFILE=936", 124: ""} {
		var log bytes.Buffer
		p := &query.WholePlan{Plan: ipc.Plan{Mode: ipc.ModeServe, Run: ipc.Run{Numbers: ipc.Numbers{Connections: 124}}}}
		p.Setup.Watching, p.Setup.Files = watching, fileLimit(124)+watching
		warnFewFiles(p, slog.New(slog.NewTextHandler(&log, nil)))
		if got := log.String(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%d: logged %q", watching, got)
		}
	}
}

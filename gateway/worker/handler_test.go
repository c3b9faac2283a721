package worker

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/feature"
	"schedrestd/ipc/work"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// TestSameConstants checks that the constants of package ipc/work have the same
// values as those of the API's packages. It converts them in both directions.
// Processes send these constants as numbers. They are defined twice so that the
// parent does not link the API's tables.
func TestSameConstants(t *testing.T) {
	for _, tt := range []struct {
		name string
		wire work.Layout
		here schema.Layout
	}{
		{"compact", work.Compact, schema.Compact},
		{"pretty", work.Pretty, schema.Pretty},
		{"no_tag", work.NoTag, schema.NoTag},
	} {
		if schema.Layout(tt.wire) != tt.here || work.Layout(tt.here) != tt.wire {
			t.Errorf("%s: %d and %d", tt.name, tt.wire, tt.here)
		}
	}

	contents := map[string]work.Content{"openapi/schedctld": work.ContentController, "openapi/scheddb": work.ContentAccounting, "openapi/util": work.ContentUtil}
	for _, e := range feature.Contents {
		if wire := contents[e.Name]; feature.Content(wire) != e.Content || work.Content(e.Content) != wire {
			t.Errorf("%s: %d and %d", e.Name, wire, e.Content)
		}
		delete(contents, e.Name)
	}
	for name := range contents {
		t.Errorf("%s is only in package ipc", name)
	}

	names := map[work.Names]api.Names{
		work.NamesSched:                   api.NamesSched,
		work.NamesSlurm:                   api.NamesSlurm,
		work.NamesSched | work.NamesSlurm: api.NamesBoth,
	}
	for wire, here := range names {
		if got := spellings(wire); got != here {
			t.Errorf("names %d: %v, want %v", wire, got, here)
		}
		for _, s := range []schema.Spelling{schema.Sched, schema.Slurm} {
			bit := map[schema.Spelling]work.Names{schema.Sched: work.NamesSched, schema.Slurm: work.NamesSlurm}[s]
			if here.Serves(s) != (wire&bit != 0) {
				t.Errorf("names %d serve %v: %t", wire, s, here.Serves(s))
			}
		}
	}
}

// TestSameFlags checks that the function parsers keeps every flag of an API
// version, alone and together with all others.
func TestSameFlags(t *testing.T) {
	var all feature.Flags
	for _, e := range feature.AllFlags {
		if all.Has(e.Flag) {
			t.Errorf("%s has no bit of its own", e.Name)
		}
		all |= e.Flag
		want := []feature.Parser{{Version: 42, Flags: e.Flag}, {Version: 43, Flags: all}}
		var wire []work.Parser
		for _, p := range want {
			wire = append(wire, work.Parser{Version: p.Version, Flags: uint8(p.Flags)}) // like the command
		}
		if diff := cmp.Diff(want, parsers(wire)); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", e.Name, diff)
		}
	}
}

// TestControllers checks that controllers are tried in the configuration's
// order, and that the configured munged is used.
func TestControllers(t *testing.T) {
	setup := work.Setup{Controllers: []work.Address{{Name: "b", Network: "tcp", Address: "192.0.2.2:1"}, {Name: "b", Network: "tcp", Address: "192.0.2.3:1"},
		{Name: "a", Network: "tcp", Address: "192.0.2.1:1"}}}
	all := []client.Address{{Name: "b", Network: "tcp", Address: "192.0.2.2:1"}, {Name: "b", Network: "tcp", Address: "192.0.2.3:1"},
		{Name: "a", Network: "tcp", Address: "192.0.2.1:1"}}
	if diff := cmp.Diff(all, controllers(setup)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	setup.AuthSocket = "/s"
	if diff := cmp.Diff(append([]client.Address{{Name: "b", Network: "unix", Address: "/s"}}, all...), controllers(setup)); diff != "" {
		t.Errorf("with a socket of the primary's: (-want +got):\n%s", diff)
	}
}

// TestFront checks that if controllers have a shared address, only that address
// is used, except for pings.
func TestFront(t *testing.T) {
	var dialled []string
	var mu sync.Mutex
	daemons := client.Config{
		Controllers: []client.Address{{Name: "a", Network: "tcp", Address: "192.0.2.1:1"}, {Name: "b", Network: "tcp", Address: "192.0.2.2:1"}},
		Dial: func(_ context.Context, a client.Address) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			dialled = append(dialled, a.Address)
			return nil, errors.New("no process listens")
		},
	}
	setup := work.Setup{Front: []work.Address{{Name: "f", Network: "tcp", Address: "192.0.2.9:1"}}}
	c := controller(setup, daemons, nil)
	cred := model.Credential{Token: "t"}
	if err := c.Verify(t.Context(), cred); err == nil || len(dialled) == 0 || slices.ContainsFunc(dialled, func(a string) bool { return a != "192.0.2.9:1" }) {
		t.Errorf("asked %q, %v", dialled, err)
	}
	dialled = nil
	c.Ping(t.Context(), cred)
	slices.Sort(dialled)
	if want := []string{"192.0.2.1:1", "192.0.2.2:1"}; !slices.Equal(slices.Compact(dialled), want) {
		t.Errorf("to ping %q, want %q", dialled, want)
	}
}

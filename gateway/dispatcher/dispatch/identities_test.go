package dispatch

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"

	"schedrestd/gateway/dispatcher/pool"
	"schedrestd/gateway/dispatcher/relay"
	"schedrestd/ipc"
)

// newTestIdentities returns an identities with at most eight workers, of which
// none becomes ready.
func newTestIdentities(t *testing.T) *identities {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	set := pool.NewSet(pool.Options{Connections: 100, WaitLimit: testTimeout, Log: log})
	set.Starter, _ = newStarter(t) // the parent does not answer, so no worker becomes ready
	names := NewNames(set.Loop)
	names.Send = func(ipc.Message, ...int) error { return errors.New("no resolver is running") }
	t.Cleanup(set.Loop.Stop)
	h := newIdentities(onDemand{Set: set, Options: Options{Switches: ipc.Switches{BecomeUser: true}, Identities: 8, WaitLimit: testTimeout, IdleLimit: testTimeout, Names: names, Log: log}})
	h.gen = pool.NewGeneration(pool.Generation{Config: pool.Config{Workers: 1, Threads: 1, Connections: 8, WaitLimit: testTimeout, StartLimit: testTimeout, Quota: relay.NewQuota(1000, 1000), Log: log}})
	return h
}

// connect lets a client with each of these ids connect.
func (h *identities) connect(list ...identity) {
	for _, id := range list {
		h.park(&pool.Connection{Connection: ipc.Connection{UID: id.uid, GID: id.gid}, FD: -1})
		h.startNext()
	}
}

// retireServed retires a pool as if its connections had been served.
func (h *identities) retireServed(id identity, r reason) {
	h.retire(id, h.pools[id], r)
	h.waiting[id].TakeAll()
	delete(h.waiting, id)
	h.places.Remove(id.uid, id)
}

// TestUsersTakeTurns checks which of the waiting users gets the next worker: the
// one that has the fewest, and not the one that has waited longest. A user never
// gets more than a quarter. Each identity is a uid and a gid.
func TestUsersTakeTurns(t *testing.T) {
	for _, tt := range []struct {
		name    string
		running []identity // eight
		waiting []identity
		want    []identity // those that have workers when three of the others have exited
	}{
		{"the fewest workers first", []identity{{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}, {8, 1}},
			[]identity{{1, 2}, {9, 1}, {10, 1}, {11, 1}}, []identity{{9, 1}, {10, 1}, {11, 1}}},
		{"in the order of their arrival", []identity{{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}, {8, 1}},
			[]identity{{1, 2}, {2, 2}, {3, 2}, {4, 2}}, []identity{{1, 2}, {2, 2}, {3, 2}}},
		{"at most a quarter", []identity{{1, 1}, {1, 2}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}, {8, 1}},
			[]identity{{1, 3}, {1, 4}, {1, 5}, {9, 1}}, []identity{{9, 1}}},
	} {
		h := newTestIdentities(t)
		must(t, h.Call(func() error {
			h.connect(slices.Concat(tt.running, tt.waiting)...)
			if len(h.pools) != len(tt.running) || len(h.waiting) != len(tt.waiting) {
				t.Errorf("%s: %d have workers, and %d wait", tt.name, len(h.pools), len(h.waiting))
			}
			for _, id := range tt.running[5:] {
				p := h.pools[id]
				h.retireServed(id, reasonIdle)
				h.forget(p)
			}
			h.startNext()
			if n := 5 + len(tt.want); len(h.pools) != n {
				t.Errorf("%s: there are %d workers, want %d", tt.name, len(h.pools), n)
			}
			for _, id := range tt.want {
				if h.pools[id] == nil {
					t.Errorf("%s: %v has no worker", tt.name, id)
				}
			}
			return nil
		}))
	}
}

// TestReplacedWorkersTakeNoPlace checks that as many workers of replaced
// configurations as there are places may finish their answers beside the others,
// and not more.
func TestReplacedWorkersTakeNoPlace(t *testing.T) {
	h := newTestIdentities(t)
	must(t, h.Call(func() error {
		var replaced []*pool.Pool
		for _, step := range []struct {
			name             string
			running, waiting int // after another eight users have connected
		}{
			{"no worker is replaced", 8, 0},
			{"as many as there are places", 8, 0},
			{"more", 0, 8},
		} {
			for id, p := range h.pools {
				h.retireServed(id, reasonReplaced)
				replaced = append(replaced, p)
			}
			for n := range uint32(8) {
				h.connect(identity{uint32(100*len(replaced)) + n, 1})
			}
			if len(h.pools) != step.running || len(h.waiting) != step.waiting {
				t.Errorf("%s: %d have workers, and %d wait", step.name, len(h.pools), len(h.waiting))
			}
		}
		for n, p := range replaced {
			h.forget(p)
			if h.startNext(); len(h.pools) != min(n+1, 8) {
				t.Errorf("after the end of %d replaced workers there are %d others", n+1, len(h.pools))
			}
		}
		return nil
	}))
}

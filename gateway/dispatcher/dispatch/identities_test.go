package dispatch

import (
	"errors"
	"io"
	"log/slog"
	"testing"

	"schedrestd/gateway/dispatcher/pool"
	"schedrestd/ipc"
)

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
		log := slog.New(slog.NewTextHandler(io.Discard, nil))
		set := pool.NewSet(pool.Options{Connections: 100, WaitLimit: testTimeout, Log: log})
		set.Starter, _ = newStarter(t) // the parent does not answer, so no worker becomes ready
		names := NewNames(set.Loop)
		names.Send = func(ipc.Message, ...int) error { return errors.New("no resolver is running") }
		h := newIdentities(onDemand{Set: set, Options: Options{Switches: ipc.Switches{BecomeUser: true}, Identities: 8, WaitLimit: testTimeout, IdleLimit: testTimeout, Names: names, Log: log}})
		h.gen = pool.NewGeneration(pool.Generation{Config: pool.Config{Workers: 1, Threads: 1, Connections: 8, WaitLimit: testTimeout, StartLimit: testTimeout, Log: log}})
		must(t, set.Call(func() error {
			for _, list := range [][]identity{tt.running, tt.waiting} {
				for _, id := range list {
					h.park(&pool.Connection{Connection: ipc.Connection{UID: id.uid, GID: id.gid}, FD: -1})
					h.startNext()
				}
			}
			if len(h.pools) != len(tt.running) || len(h.waiting) != len(tt.waiting) {
				t.Errorf("%s: %d have workers, and %d wait", tt.name, len(h.pools), len(h.waiting))
			}
			for _, id := range tt.running[5:] {
				p := h.pools[id]
				h.retire(id, p, reasonIdle)
				h.forget(p)
				h.waiting[id].TakeAll() // the connection that the pool has not served
				delete(h.waiting, id)
				h.places.Remove(id.uid, id)
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
		set.Loop.Stop()
	}
}

package rest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/handlers/feed"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
)

// A meter is a worker with a limit on memory, in bytes.
type meter struct {
	NoWorker
	*semaphore.Semaphore[string]
}

func newMeter(n int) meter { return meter{Semaphore: semaphore.New[string](semaphore.Row{Total: n})} }

// Memory implements Worker. All credentials share the limit.
func (m meter) Memory(model.Credential) feed.Reservation { return m.reserve() }

func (m meter) reserve() feed.Reservation { return m.Empty("ann") }

// expectNothingHeld checks that a while after the last use no rendering is left.
func expectNothingHeld(t *testing.T, all *renderings, memory meter) {
	t.Helper()
	time.Sleep(unusedRendering + time.Second)
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.byKey) != 0 || all.bytes.Keys() != 0 || all.bytes.Free() != all.limit || memory.Held("ann") != 0 {
		t.Errorf("%d renderings, %d bytes, %d reserved", len(all.byKey), all.limit-all.bytes.Free(), memory.Held("ann"))
	}
}

// TestRenderingsFreeMemory uses renderings at random, in many goroutines: long
// and short ones, with failures of the builder and of its client, and requests
// that end while they wait. It checks that every request ends, that those that
// share get what the builder has written, and that nothing is held in the end.
func TestRenderingsFreeMemory(t *testing.T) {
	const keys = 30
	var contents [keys][]byte
	for key := range contents {
		contents[key] = make([]byte, []int{0, 10, renderingPiece, 3*renderingPiece + 7, 9 * renderingPiece, 20 * renderingPiece}[key%6])
		source := rand.NewChaCha8([32]byte{byte(key)})
		_, _ = source.Read(contents[key])
	}
	synctest.Test(t, func(t *testing.T) {
		memory := newMeter(24 * renderingPiece)
		server := &Server{renderings: newRenderings(32 * renderingPiece)}
		all := server.renderings
		shared, long := 0, 0
		var count sync.Mutex
		build := func(r *rendering, content []byte) {
			client := func() error {
				time.Sleep(rand.N(50 * time.Millisecond))
				if rand.IntN(2) == 0 {
					return errors.New("the client has left")
				}
				return nil
			}
			s := &sink{c: &Call{request: request{server: server}}, shared: r, build: newBuilder(all, r, io.Discard, client)}
			defer s.releaseShared()
			if r.alone = len(content) == 0; r.alone {
				return
			}
			for len(content) > 0 {
				time.Sleep(rand.N(5 * time.Millisecond))
				n := min(len(content), 40<<10)
				if _, err := s.build.Write(content[:n]); err != nil || rand.IntN(40) == 0 {
					return // the client has left, or the controller's answer broke off
				}
				content = content[n:]
			}
			if s.build.finish() != nil || s.build.over {
				count.Lock()
				long++
				count.Unlock()
			}
		}
		request := func() {
			key := rand.IntN(keys)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if rand.IntN(5) == 0 {
				time.AfterFunc(rand.N(10*time.Millisecond), cancel)
			}
			for {
				r, first := all.get(renderingKey{byte(key)}, []string{"", "gzip", "zstd"}[key%3], []string{"ann", "bob"}[key%2], memory.reserve)
				if first {
					build(r, contents[key])
					return
				}
				err := r.wait(ctx)
				done := err != nil || r.alone || r.whole
				if err == nil && r.whole {
					time.Sleep(rand.N(20 * time.Millisecond)) // the client reads
					if r.plain != len(contents[key]) || r.coding == "" && !bytes.Equal(bytes.Join(r.pieces, nil), contents[key]) {
						t.Errorf("key %d: got other records", key)
					}
					count.Lock()
					shared++
					count.Unlock()
				}
				all.release(r)
				if done {
					return
				}
			}
		}
		var wait sync.WaitGroup
		for range 12 {
			wait.Go(func() {
				for range 100 {
					request()
				}
			})
		}
		wait.Wait()
		t.Logf("%d requests shared records, %d had too many", shared, long)
		if shared == 0 || long == 0 {
			t.Error("some cases were not tested")
		}
		expectNothingHeld(t, all, memory)
	})
}

// TestRenderingsAge checks that a rendering is replaced after a minute, even if
// requests use it all the time, and that those that still send it are not
// disturbed.
func TestRenderingsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMeter(8 * renderingPiece)
		all := newRenderings(8 * renderingPiece)
		key := renderingKey{1}
		builds := 0
		use := func() *rendering {
			r, build := all.get(key, "", "ann", memory.reserve)
			if build {
				builds++
				b := newBuilder(all, r, io.Discard, nil)
				if _, err := b.Write([]byte("records")); err != nil {
					t.Error(err)
				}
				if err := b.finish(); err != nil {
					t.Error(err)
				}
			}
			return r
		}
		slow := use()
		for range 125 {
			all.release(use())
			time.Sleep(time.Second)
		}
		if builds != 3 || string(slow.pieces[0]) != "records" {
			t.Errorf("%d renderings in two minutes; the slow client sends %q", builds, slow.pieces)
		}
		all.release(slow)
		expectNothingHeld(t, all, memory)
	})
}

// TestRenderingsOfOthersStay checks that a user who asks for many lists, or who may
// not have more memory, removes only their own renderings.
func TestRenderingsOfOthersStay(t *testing.T) {
	for _, tt := range []struct {
		name        string
		limit, bobs int // memory of all renderings, and of those of bob
	}{
		{"the renderings are full", 16, 100},
		{"the user's memory is full", 100, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			memory := map[string]meter{"ann": newMeter(100 * renderingPiece), "bob": newMeter(tt.bobs * renderingPiece)}
			all := newRenderings(tt.limit * renderingPiece)
			ask := func(owner string, key byte) (kept bool) {
				r, build := all.get(renderingKey{key}, "zstd", owner, memory[owner].reserve)
				defer all.release(r)
				if build {
					for range 2 {
						if !all.grow(r) {
							t.Errorf("%s: no memory for rendering %d of %s", tt.name, key, owner)
						}
					}
					r.whole = true
					all.publish(r)
				}
				return !build
			}
			for key := range byte(3) {
				ask("ann", key)
			}
			for key := range byte(50) {
				ask("bob", 100+key)
			}
			for key := range byte(3) {
				if !ask("ann", key) {
					t.Errorf("%s: rendering %d was removed", tt.name, key)
				}
			}
			time.Sleep(unusedRendering + time.Second)
		})
	}
}

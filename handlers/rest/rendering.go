package rest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"schedrestd/handlers/feed"
	"schedrestd/internal/limit"
	"schedrestd/internal/origin"
	"schedrestd/internal/semaphore"
)

// Many clients poll the same long list, so they get the same records, rendered
// and compressed once. A rendering has a key: the digest of the controller's data
// (package origin), and everything in the request that selects and lays out the
// records. So a rendering is never too old, and no client gets records that the
// controller has not sent for the request's own credential. Only the names of
// users may be older, by at most a minute.
//
// What differs from request to request, such as the client's address, follows
// the records in the body. It is not compressed, so that it can be appended to a
// rendering.

// A rendering is the records of an answer, as they are sent: the body up to the
// end of the records.
type rendering struct {
	key     renderingKey
	coding  string
	owner   string // the user whose request creates it
	created time.Time

	// The request that creates the rendering sets these fields. They are final
	// when ready is closed.
	ready  chan struct{}
	whole  bool // the records are in pieces
	alone  bool // they are too long or too short for it: each request renders them itself
	tag    string
	plain  int    // length before compression
	crc    uint32 // of the plain records; only for gzip
	pieces [][]byte
	size   int // bytes in pieces

	// The lock of renderings guards these fields.
	users  int
	memory feed.Reservation
	expiry *time.Timer // runs while users is 0
}

type renderingKey [sha256.Size]byte

// renderings are those of a server, by their keys. Together they take at most
// limit bytes.
type renderings struct {
	limit int // bytes of all renderings

	mu    sync.Mutex // guards the fields below, and some of each rendering; locked before what Memory locks
	byKey map[renderingKey]*rendering
	bytes *semaphore.Queue[string, *rendering] // by user; the items are the renderings that are not in use
}

func newRenderings(size int) *renderings {
	return &renderings{limit: size, byKey: map[renderingKey]*rendering{}, bytes: semaphore.NewQueue[string, *rendering](limit.Renderings.Of(size), nil)}
}

const (
	unusedRendering = 30 * time.Second // how long a rendering that is not used is kept
	maxRenderingAge = time.Minute      // then the names of users are looked up again, which are not in the controller's data
	renderingPiece  = 64 << 10
)

// errShared ends a stream of records whose rendering exists already.
var errShared = errors.New("records are rendered already")

// get returns the rendering with this key. If there was none, build is true, and
// the caller must create it and call publish. In any case, the caller must call
// release.
func (rs *renderings) get(key renderingKey, coding, owner string, reserve func() feed.Reservation) (r *rendering, build bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r = rs.byKey[key]; r == nil || time.Since(r.created) > maxRenderingAge {
		if r != nil && r.users == 0 {
			rs.forgetLocked(r)
		}
		r, build = &rendering{key: key, coding: coding, owner: owner, created: time.Now(), ready: make(chan struct{}), memory: reserve()}, true
		rs.byKey[key] = r
	}
	rs.bytes.Remove(r.owner, r)
	if r.users++; r.expiry != nil {
		r.expiry.Stop()
	}
	return r, build
}

// release ends a use of r.
func (rs *renderings) release(r *rendering) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.users--; r.users > 0 {
		return
	}
	if rs.byKey[r.key] != r {
		rs.freeLocked(r)
		return
	}
	if len(r.pieces) > 0 {
		rs.bytes.Push(r.owner, r)
	}
	r.expiry = time.AfterFunc(unusedRendering, func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		rs.forgetLocked(r)
	})
}

// publish makes the rendering final. Unless it is whole, the caller then frees
// its memory. If it is not worth a place in the map, because it failed or its
// records are few, the next request creates another one.
func (rs *renderings) publish(r *rendering) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if !r.whole && (!r.alone || r.plain == 0) && rs.byKey[r.key] == r {
		delete(rs.byKey, r.key)
	}
	close(r.ready)
}

// discard frees the memory of a rendering that is not whole.
func (rs *renderings) discard(r *rendering) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.freeLocked(r)
}

// forgetLocked removes r unless it is in use.
func (rs *renderings) forgetLocked(r *rendering) {
	if r.users == 0 && rs.byKey[r.key] == r {
		delete(rs.byKey, r.key)
		rs.freeLocked(r)
	}
}

// freeLocked frees the memory of a rendering whose pieces nothing uses any
// more.
func (rs *renderings) freeLocked(r *rendering) {
	if r.expiry != nil {
		r.expiry.Stop()
	}
	rs.bytes.Remove(r.owner, r)
	rs.bytes.Hold(r.owner, -len(r.pieces)*renderingPiece)
	r.pieces = nil
	r.memory.Shrink(r.memory.Size())
}

// grow adds a piece to r. If there is no memory for it, grow removes renderings
// that are not in use. It reports whether it succeeded.
func (rs *renderings) grow(r *rendering) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	share := 2 // of the limit
	if r.coding == "" {
		share = 8
	}
	if (len(r.pieces)+1)*renderingPiece > rs.limit/share {
		return false
	}
	for rs.bytes.Free() < renderingPiece {
		victim, ok := rs.bytes.Most()
		if !ok {
			return false
		}
		rs.forgetLocked(victim)
	}
	for !r.memory.Grow(renderingPiece) {
		// Usually it is this user who may not have more memory. The renderings of
		// others would not help.
		victim, ok := rs.bytes.First(r.owner)
		if !ok {
			return false
		}
		rs.forgetLocked(victim)
	}
	rs.bytes.Hold(r.owner, renderingPiece)
	r.pieces = append(r.pieces, make([]byte, 0, renderingPiece))
	return true
}

// renderingKey returns the key of the answer's records. It returns false if they
// can't be shared.
func (c *Call) renderingKey() (key renderingKey, ok bool) {
	data, ok := origin.From(c.ctx).Sum()
	if ok {
		key = sha256.Sum256(fmt.Appendf(data[:], "%q%q%q%q", c.r.URL.EscapedPath(), c.r.URL.RawQuery, c.media, c.coding.name))
	}
	return key, ok
}

// wait waits until r is final, or the request has ended.
func (r *rendering) wait(ctx context.Context) error {
	select {
	case <-r.ready:
		return nil
	case <-ctx.Done():
		return cancelled(context.Cause(ctx))
	}
}

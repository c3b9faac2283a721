package rest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"sync"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"

	"schedrestd/internal/origin"
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
	memory reservation
	expiry *time.Timer // runs while users is 0
}

type renderingKey [sha256.Size]byte

// renderings is the renderings of a server. The zero value stores none.
type renderings struct {
	limit int // bytes of all renderings

	mu    sync.Mutex
	byKey map[renderingKey]*rendering
	size  int // bytes of all renderings
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
func (all *renderings) get(key renderingKey, coding string, memory reservation) (r *rendering, build bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if r = all.byKey[key]; r == nil || time.Since(r.created) > maxRenderingAge {
		if all.byKey == nil {
			all.byKey = map[renderingKey]*rendering{}
		}
		if r != nil && r.users == 0 {
			all.forget(r)
		}
		r, build = &rendering{key: key, coding: coding, created: time.Now(), ready: make(chan struct{}), memory: memory}, true
		all.byKey[key] = r
	}
	if r.users++; r.expiry != nil {
		r.expiry.Stop()
	}
	return r, build
}

// release ends a use of r.
func (all *renderings) release(r *rendering) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if r.users--; r.users > 0 {
		return
	}
	if all.byKey[r.key] != r {
		all.free(r)
		return
	}
	r.expiry = time.AfterFunc(unusedRendering, func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		all.forget(r)
	})
}

// publish makes the rendering final. Unless it is whole, the caller then frees
// its memory. If it is not worth a place in the map, because it failed or its
// records are few, the next request creates another one.
func (all *renderings) publish(r *rendering) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if !r.whole && (!r.alone || r.plain == 0) && all.byKey[r.key] == r {
		delete(all.byKey, r.key)
	}
	close(r.ready)
}

// empty frees the memory of a rendering that is not whole.
func (all *renderings) empty(r *rendering) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.freeMemory(r)
}

// forget removes r unless it is in use. The caller holds the lock.
func (all *renderings) forget(r *rendering) {
	if r.users == 0 && all.byKey[r.key] == r {
		delete(all.byKey, r.key)
		all.free(r)
	}
}

// free frees the memory of a rendering that nothing uses any more. The caller
// holds the lock.
func (all *renderings) free(r *rendering) {
	if r.expiry != nil {
		r.expiry.Stop()
	}
	all.freeMemory(r)
}

func (all *renderings) freeMemory(r *rendering) {
	all.size -= len(r.pieces) * renderingPiece
	r.pieces = nil
	r.memory.release(r.memory.size)
}

// grow adds a piece to r. If there is no memory for it, grow removes renderings
// that are not in use. It reports whether it succeeded.
func (all *renderings) grow(r *rendering) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	share := 2 // of the limit
	if r.coding == "" {
		share = 8
	}
	if (len(r.pieces)+1)*renderingPiece > all.limit/share {
		return false
	}
	for all.size+renderingPiece > all.limit || !r.memory.hold(renderingPiece) {
		if !all.evict() {
			return false
		}
	}
	all.size += renderingPiece
	r.pieces = append(r.pieces, make([]byte, 0, renderingPiece))
	return true
}

// evict removes a rendering that is not in use. The caller holds the lock.
func (all *renderings) evict() bool {
	for _, r := range all.byKey {
		if r.users == 0 && len(r.pieces) > 0 {
			all.forget(r)
			return true
		}
	}
	return false
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

// A builder creates a rendering. If the rendering becomes too long, the builder
// writes it and all that follows to out.
type builder struct {
	all   *renderings
	r     *rendering
	coder flushCoder // nil without compression
	hash  hash.Hash  // of the plain records
	out   io.Writer
	begin func() error // called before the first byte is written to out
	over  bool         // the rendering is too long
}

// A flushCoder is a coder whose output ends at a byte after Flush.
type flushCoder interface {
	coder
	Flush() error
}

func newBuilder(all *renderings, r *rendering, out io.Writer, begin func() error) *builder {
	b := &builder{all: all, r: r, hash: sha256.New(), out: out, begin: begin}
	if r.coding != "" {
		b.coder = partCoders[r.coding].Get().(flushCoder)
		b.coder.Reset((*builderStore)(b))
	}
	if r.coding == "gzip" {
		_, _ = (*builderStore)(b).Write(gzipHeader)
	}
	return b
}

// Write adds a part of the records.
func (b *builder) Write(p []byte) (int, error) {
	if !b.over { // otherwise there is no tag
		b.hash.Write(p)
	}
	b.r.plain += len(p)
	if b.r.coding == "gzip" {
		b.r.crc = crc32.Update(b.r.crc, crc32.IEEETable, p)
	}
	if b.coder == nil {
		return (*builderStore)(b).Write(p)
	}
	return b.coder.Write(p)
}

// finish completes the rendering and publishes it.
func (b *builder) finish() error {
	if b.coder != nil {
		if err := b.coder.Flush(); err != nil {
			return err
		}
	}
	if !b.over {
		b.r.whole, b.r.tag = true, entityTag(b.hash.Sum(nil))
		b.all.publish(b.r)
	}
	return nil
}

// end writes the end of the body if the rendering became too long.
func (b *builder) end() error {
	if b.coder != nil {
		if err := b.coder.Close(); err != nil {
			return err
		}
	}
	if b.r.coding != "gzip" {
		return nil
	}
	_, err := b.out.Write(b.r.gzipTrailer(nil))
	return err
}

// gzipTrailer returns the checksum and the length of a plain body that consists
// of the records and of what follows them (RFC 1952, 2.3.1).
func (r *rendering) gzipTrailer(own []byte) []byte {
	end := binary.LittleEndian.AppendUint32(nil, crc32.Update(r.crc, crc32.IEEETable, own))
	return binary.LittleEndian.AppendUint32(end, uint32(r.plain+len(own)))
}

// close returns the coder.
func (b *builder) close() {
	if b.coder != nil {
		b.coder.Reset(nil)
		partCoders[b.r.coding].Put(b.coder)
		b.coder = nil
	}
}

// builderStore is the writer to which a builder's coder writes.
type builderStore builder

// Write stores compressed data. If there is no memory for it, Write sends what is
// stored instead, and then the data.
func (s *builderStore) Write(p []byte) (int, error) {
	r := s.r
	for rest := p; !s.over && len(rest) > 0; {
		last := len(r.pieces) - 1
		if last < 0 || len(r.pieces[last]) == renderingPiece {
			if !s.all.grow(r) {
				return s.overflow(len(p), rest)
			}
			last++
		}
		n := min(len(rest), renderingPiece-len(r.pieces[last]))
		r.pieces[last] = append(r.pieces[last], rest[:n]...)
		r.size += n
		if rest = rest[n:]; len(rest) == 0 {
			return len(p), nil
		}
	}
	return s.out.Write(p)
}

// overflow sends what is stored and then the rest, which is not stored. It
// returns n. The requests that wait for the rendering go on first, because this
// client may read slowly, or have left.
func (s *builderStore) overflow(n int, rest []byte) (int, error) {
	s.over, s.r.alone = true, true
	s.all.publish(s.r)
	defer s.all.empty(s.r)
	if err := s.begin(); err != nil {
		return 0, err
	}
	for _, piece := range append(s.r.pieces, rest) {
		if _, err := s.out.Write(piece); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// ending returns the end of the body: what follows the records, and what the
// coding needs.
func (r *rendering) ending(own []byte) []byte {
	var end []byte
	switch r.coding {
	case "gzip": // stored blocks (RFC 1951, 3.2.4)
		const longest = 1<<16 - 1
		rest := own
		for first := true; first || len(rest) > 0; first = false {
			block := rest[:min(len(rest), longest)]
			rest = rest[len(block):]
			final := byte(0)
			if len(rest) == 0 {
				final = 1
			}
			end = append(end, final)
			end = binary.LittleEndian.AppendUint16(end, uint16(len(block)))
			end = binary.LittleEndian.AppendUint16(end, ^uint16(len(block)))
			end = append(end, block...)
		}
		return append(end, r.gzipTrailer(own)...)
	case "zstd": // raw blocks (RFC 8878, 3.1.1.2)
		rest := own
		for first := true; first || len(rest) > 0; first = false {
			block := rest[:min(len(rest), renderingPiece)]
			rest = rest[len(block):]
			header := uint32(len(block)) << 3
			if len(rest) == 0 {
				header |= 1 // the last block
			}
			end = append(end, byte(header), byte(header>>8), byte(header>>16))
			end = append(end, block...)
		}
		return end
	}
	return own
}

// gzipHeader is the header of RFC 1952, 2.3, without a time or a name.
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255}

// partCoders keeps the coders of renderings for reuse. Other data follows what
// they write. So they write no header, length and checksum of the whole.
var partCoders = map[string]*sync.Pool{
	"gzip": {New: func() any {
		w, err := flate.NewWriter(nil, flate.BestSpeed)
		if err != nil {
			panic(err) // the level is a constant
		}
		return w
	}},
	"zstd": {New: func() any {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
		if err != nil {
			panic(err) // the options are constants
		}
		return w
	}},
}

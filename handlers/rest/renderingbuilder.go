package rest

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

// A builder creates a rendering. If the rendering becomes too long, the builder
// writes it and all that follows to out.
type builder struct {
	in    *renderings
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

func newBuilder(rs *renderings, r *rendering, out io.Writer, begin func() error) *builder {
	b := &builder{in: rs, r: r, hash: sha256.New(), out: out, begin: begin}
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
		b.in.publish(b.r)
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
			if !s.in.grow(r) {
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
	s.in.publish(s.r)
	defer s.in.discard(s.r)
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

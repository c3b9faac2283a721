package codec

import "hash/maphash"

// pieces holds the part of a decoder's input that is not in buf.
type pieces struct {
	next      func() ([]byte, error)
	offset    int    // bytes of earlier pieces
	remaining int    // bytes of later pieces
	joined    []byte // copy of a value that spans several pieces
	digest    *digest
}

// digest hashes the bytes of an element.
type digest struct {
	hash  maphash.Hash
	begin int // where the rest of the element begins in the current piece
}

// beginDigest starts to hash an element, which begins at the given place of the
// current piece.
func (p *pieces) beginDigest(at int) {
	if p.digest == nil {
		p.digest = new(digest)
		p.digest.hash.SetSeed(seed)
	}
	p.digest.hash.Reset()
	p.digest.begin = at
}

// endDigest returns the hash of an element. The argument is the current piece
// up to the end of the element.
func (p *pieces) endDigest(piece []byte) uint64 {
	d := p.digest
	_, _ = d.hash.Write(piece[d.begin:])
	return d.hash.Sum64()
}

// seed makes the hashes of this process unpredictable. A client who does not
// know it can't make two elements with the same hash.
var seed = maphash.MakeSeed()

// NewPiecesDecoder returns a Codec whose input consists of several pieces:
// first, and those that next returns. The argument remaining is the total
// length of the pieces that next returns, in bytes. The Codec checks counts and
// lengths against the number of bytes left in all pieces. Once it has called
// next again, it no longer uses the previous piece. If next returns an error,
// that becomes the Codec's error.
func NewPiecesDecoder(v Version, first []byte, next func() ([]byte, error), remaining int) *Codec {
	return &Codec{mode: decoding, version: v, buf: first, pieces: pieces{next: next, remaining: remaining}}
}

// unread returns the number of unread bytes of the input.
func (c *Codec) unread() int { return len(c.buf) - c.off + c.pieces.remaining }

// join returns the next n bytes, which are in several pieces, as one slice. The
// slice is valid until the next call. Its memory grows as the bytes arrive.
func (c *Codec) join(name string, n int) []byte {
	switch {
	case n > c.unread():
		c.Fail(name, ErrShort)
		return nil
	case n > maxValue:
		c.Fail(name, ErrLong)
		return nil
	}
	p := &c.pieces
	if c.trace != nil {
		c.trace(name, p.offset+c.off, n, c.isText)
	}
	b := append(p.joined[:0], c.buf[c.off:]...)
	for len(b) < n {
		if p.digest != nil {
			_, _ = p.digest.hash.Write(c.buf[p.digest.begin:])
			p.digest.begin = 0
		}
		p.offset += len(c.buf)
		c.buf, c.off = nil, 0
		piece, err := p.next()
		if err == nil && (len(piece) == 0 || len(piece) > p.remaining) {
			err = ErrShort // fewer bytes than were announced, or more
		}
		if err != nil {
			c.Fail(name, err)
			return nil
		}
		p.remaining -= len(piece)
		c.buf, c.off = piece, min(n-len(b), len(piece))
		b = append(b, piece[:c.off]...)
	}
	if p.joined = b; cap(b) > maxJoined {
		p.joined = nil
	}
	return b
}

// maxValue is the maximum length of a value that spans several pieces. The
// whole value is held in memory, and for a short time twice.
const maxValue = 16 << 20

// maxJoined is the maximum size of the buffer that is kept for the next value
// that spans several pieces.
const maxJoined = 64 << 10

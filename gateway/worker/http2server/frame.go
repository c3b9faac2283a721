package http2server

import "encoding/binary"

// The types of the frames that are inspected (RFC 9113, section 6), and three
// flags.
const (
	dataFrame         = 0
	headersFrame      = 1
	resetFrame        = 3
	goAwayFrame       = 7
	windowFrame       = 8
	continuationFrame = 9

	endStream  = 1
	endHeaders = 4
	isPadded   = 8
)

// A frame holds the part of an HTTP/2 frame that is inspected.
type frame struct {
	kind, flags byte
	stream      uint32
	length      int
	payload     []byte // first bytes of the payload, at most framePeek
}

// code returns the error code at an offset in the payload. It returns 0 if the
// frame is too short.
func (f frame) code(offset int) uint32 {
	if len(f.payload) < offset+4 {
		return 0
	}
	return binary.BigEndian.Uint32(f.payload[offset:])
}

const (
	frameHeader = 9 // in bytes
	framePeek   = 8 // number of inspected bytes of a payload
)

// A frameScanner finds the frames in one direction of a connection, no matter
// how reads and writes split them.
type frameScanner struct {
	head     [frameHeader + framePeek]byte
	have     int  // number of bytes in head
	skip     int  // remaining bytes of the frame's payload
	inHeader bool // the rest of a header block must come next, in another frame
}

// scan calls fn for each frame whose last inspected byte is in p.
func (s *frameScanner) scan(p []byte, fn func(frame)) {
	for len(p) > 0 {
		if s.skip > 0 {
			n := min(s.skip, len(p))
			s.skip, p = s.skip-n, p[n:]
			continue
		}
		want := frameHeader
		if s.have >= frameHeader {
			want += min(framePeek, s.length())
		}
		n := copy(s.head[s.have:want], p)
		s.have, p = s.have+n, p[n:]
		if s.have < frameHeader || s.have < frameHeader+min(framePeek, s.length()) {
			continue
		}
		f := frame{s.head[3], s.head[4], binary.BigEndian.Uint32(s.head[5:]) &^ (1 << 31), s.length(), s.head[frameHeader:s.have]}
		s.inHeader = (f.kind == headersFrame || f.kind == continuationFrame) && f.flags&endHeaders == 0
		fn(f)
		s.skip, s.have = frameHeader+s.length()-s.have, 0
	}
}

// isComplete reports whether no frame and no header block is incomplete, so that
// a frame of any type may come next.
func (s *frameScanner) isComplete() bool { return s.have == 0 && s.skip == 0 && !s.inHeader }

// length returns the length of the frame's payload.
func (s *frameScanner) length() int { return int(s.head[0])<<16 | int(s.head[1])<<8 | int(s.head[2]) }

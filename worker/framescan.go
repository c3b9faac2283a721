package worker

// The kinds of frames that are looked at (RFC 9113, 6), and a flag.
const (
	dataFrame    = 0
	headersFrame = 1
	resetFrame   = 3
	goAwayFrame  = 7
	windowFrame  = 8

	endStream = 1
)

const frameHeader = 9 // bytes

// scanner finds the frames in the bytes of one direction, in whatever pieces
// they come.
type scanner struct {
	head [frameHeader + 8]byte // a frame's header, and the beginning of its payload
	have int                   // bytes of head
	rest int                   // bytes of the frame that are skipped
}

// scan calls see with the header of each frame, and as much of its payload as
// payload asks for.
func (s *scanner) scan(p []byte, payload func(head []byte) int, see func(head []byte)) {
	for len(p) > 0 {
		if s.rest > 0 {
			n := min(s.rest, len(p))
			s.rest, p = s.rest-n, p[n:]
			continue
		}
		end := s.end(payload)
		n := copy(s.head[s.have:end], p)
		s.have, p = s.have+n, p[n:]
		if s.have < s.end(payload) { // more of it, now that its kind is known, or in the next piece
			continue
		}
		see(s.head[:s.have])
		s.rest, s.have = frameHeader+lengthOf(s.head[:])-s.have, 0
	}
}

// end returns how many bytes of the frame are wanted.
func (s *scanner) end(payload func([]byte) int) int {
	if s.have < frameHeader {
		return frameHeader
	}
	return frameHeader + min(payload(s.head[:]), lengthOf(s.head[:]))
}

// lengthOf returns the length of a frame's payload.
func lengthOf(head []byte) int { return int(head[0])<<16 | int(head[1])<<8 | int(head[2]) }

// noPayload is for scan.
func noPayload([]byte) int { return 0 }

// answerPayload returns how much of a server's frame says what became of a
// request: an error's code, or the status.
func answerPayload(head []byte) int {
	switch head[3] {
	case resetFrame:
		return 4
	case goAwayFrame:
		return 8
	case headersFrame:
		return 7
	}
	return 0
}

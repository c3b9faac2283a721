package http1

import "net/http"

// body is the state of the body of a request.
type body struct {
	remaining int64 // remaining bytes of the body, or of the chunk
	total     int64 // bytes of all chunks so far
	size      int64 // size of the chunk, from the digits read so far
	count     int   // bytes of the line so far, without its end; in the trailer, bytes of all lines so far
	wasted    int64 // bytes of the chunks' framing above the allowance
	started   bool  // whether the size has a digit
	quoted    bool  // whether the extension has an open quote
	escaped   bool  // whether a backslash precedes this byte in the quote
}

const (
	maxDigits  = 16       // digits of a chunk's size
	maxLine    = 1 << 10  // bytes of a line with a chunk's size
	maxTrailer = 4 << 10  // bytes of all lines after the last chunk; the same limit as net/http's
	maxWasted  = 16 << 10 // bytes of framing above the allowance (for each chunk, 16 bytes plus twice its size); the same limit as net/http's
)

// Body returns how many bytes of p belong to the current request. If the
// request ends within p, or an error is found there, n is less than len(p).
func (l *Lexer) Body(p []byte) (n int, err error) {
	for n < len(p) && l.state != done {
		if l.state == inBody || l.state == inChunk {
			k := min(l.remaining, int64(len(p)-n))
			n += int(k)
			if l.remaining -= k; l.remaining == 0 {
				l.endData()
			}
			continue
		}
		if err := l.frame(p[n]); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (l *Lexer) endData() {
	if l.state == inBody {
		l.state = done
		return
	}
	l.state = atChunkCR
}

// frame processes one byte of a chunk's framing (RFC 9112, 7.1). A line must
// end with CR and LF, because parsers disagree about a lone LF.
func (l *Lexer) frame(c byte) error {
	switch l.state {
	case inSize, inExtension:
		return l.sizeLine(c)
	case atSizeLF:
		if c != '\n' {
			return malformed("the line with a chunk's size has a bare CR")
		}
		return l.endSize()
	case atChunkCR:
		return l.expect(c, '\r', atChunkLF, "a chunk is longer than its size, or no CRLF follows it")
	case atChunkLF:
		if err := l.expect(c, '\n', inSize, "a chunk is longer than its size, or no CRLF follows it"); err != nil {
			return err
		}
		l.size, l.count, l.started = 0, 0, false
		return nil
	}
	return l.trailer(c)
}

// sizeLine processes one byte of the line that contains a chunk's size.
func (l *Lexer) sizeLine(c byte) error {
	l.count++
	switch {
	case c == '\r' && l.quoted: // another parser may look for the end of the quote on the next line
		return malformed("a chunk extension has an unclosed quote")
	case c == '\r' && l.started:
		l.count--
		l.state = atSizeLF
	case l.count > maxLine:
		return malformed("the line with a chunk's size is too long")
	case l.state == inExtension:
		if !isText[c] {
			return malformed("a chunk extension has a control character")
		}
		l.quoted = l.quoted != (c == '"' && !l.escaped)
		l.escaped = l.quoted && c == '\\' && !l.escaped
	case isHex(c):
		if l.count > maxDigits {
			return malformed("a chunk's size has too many digits")
		}
		if l.size >= 1<<59 {
			return l.tooLarge()
		}
		l.size, l.started = l.size<<4|int64(hexValue(c)), true
	case c == ';' && l.started:
		l.state = inExtension
	case c == ' ' || c == '\t':
		return malformed("a chunk's size has whitespace")
	case c == '\n':
		return malformed("the line with a chunk's size ends with a bare LF")
	default:
		return malformed("a chunk's size is not a hexadecimal number")
	}
	return nil
}

// endSize processes the size of a chunk after its last digit was read.
func (l *Lexer) endSize() error {
	if l.size > l.MaxBody-l.total {
		return l.tooLarge()
	}
	l.total += l.size
	l.wasted = max(0, l.wasted+int64(l.count)+2-16-2*l.size)
	switch {
	case l.wasted > maxWasted:
		return malformed("the chunks are too small: the body is mostly framing")
	case l.size == 0:
		l.count, l.state = 0, atTrailer
	default:
		l.remaining, l.state = l.size, inChunk
	}
	return nil
}

func (l *Lexer) tooLarge() error {
	return &Error{http.StatusRequestEntityTooLarge, "the body is too large"}
}

// trailer processes one byte of the lines after the last chunk. These lines
// have no effect, but they must be well-formed: another parser could mistake a
// malformed line for the beginning of a request.
func (l *Lexer) trailer(c byte) error {
	if l.count++; l.count > maxTrailer {
		return malformed("the trailer is too long")
	}
	switch l.state {
	case atTrailer:
		switch {
		case c == '\r':
			l.state = atLastLF
		case isToken[c]:
			l.state = inName
		case c == ' ' || c == '\t':
			return malformed("a line of the trailer begins with whitespace: a field must be on one line")
		default:
			return malformed("a line of the trailer does not begin with a name")
		}
	case inName:
		switch {
		case c == ':':
			l.state = inValue
		case c == ' ' || c == '\t':
			return malformed("a name in the trailer has whitespace")
		case !isToken[c]:
			return malformed("a line of the trailer has no colon after the name")
		}
	case inValue:
		if c == '\r' {
			l.state = atValueLF
		} else if !isText[c] {
			return malformed("a value in the trailer has a control character")
		}
	case atValueLF:
		return l.expect(c, '\n', atTrailer, "a value in the trailer has a bare CR")
	case atLastLF:
		return l.expect(c, '\n', done, "the trailer ends with a bare CR")
	}
	return nil
}

func (l *Lexer) expect(c, want byte, next state, reason string) error {
	if c != want {
		return malformed(reason)
	}
	l.state = next
	return nil
}

package http1

import "net/http"

// body is how far the body of a request has come.
type body struct {
	left    int64 // bytes of it, or of the chunk
	total   int64 // bytes of all chunks so far
	size    int64 // of the chunk, as far as its digits were read
	count   int   // bytes of the line, without its end; in the trailer, of all of it
	wasted  int64 // bytes of the chunks' frames, beyond what is fair
	started bool  // the size has a digit
	quoted  bool  // the extension has an open quote
	escaped bool  // … and a backslash before this byte
}

const (
	mostDigits  = 16       // of a chunk's size
	mostLine    = 1 << 10  // bytes of a line with a chunk's size
	mostTrailer = 4 << 10  // bytes of all lines behind the last chunk: net/http's limit
	mostWasted  = 16 << 10 // bytes that frames may take beyond 16 and twice the data for each chunk: net/http's limit
)

// Body returns how many bytes of p belong to the current request, which are
// less than all of them when it ends, or is broken, within p.
func (l *Lexer) Body(p []byte) (n int, err error) {
	for n < len(p) && l.state != done {
		if l.state == inBody || l.state == inChunk {
			k := min(l.left, int64(len(p)-n))
			n += int(k)
			if l.left -= k; l.left == 0 {
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

// frame takes one byte of what surrounds the chunks (RFC 9112, 7.1). Lines end
// with CR and LF here: a bare LF is where readers disagree.
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

// sizeLine takes a byte of a line with a chunk's size.
func (l *Lexer) sizeLine(c byte) error {
	l.count++
	switch {
	case c == '\r' && l.quoted: // a reader may look for its end on the next line
		return malformed("a chunk extension has an unclosed quote")
	case c == '\r' && l.started:
		l.count--
		l.state = atSizeLF
	case l.count > mostLine:
		return malformed("the line with a chunk's size is too long")
	case l.state == inExtension:
		if !isText[c] {
			return malformed("a chunk extension has a control character")
		}
		l.quoted = l.quoted != (c == '"' && !l.escaped)
		l.escaped = l.quoted && c == '\\' && !l.escaped
	case isHex(c):
		if l.count > mostDigits {
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

// endSize decides on a chunk, whose size is known now.
func (l *Lexer) endSize() error {
	if l.size > l.MaxBody-l.total {
		return l.tooLarge()
	}
	l.total += l.size
	l.wasted = max(0, l.wasted+int64(l.count)+2-16-2*l.size)
	switch {
	case l.wasted > mostWasted:
		return malformed("the chunks are too small: the body is mostly framing")
	case l.size == 0:
		l.count, l.state = 0, atTrailer
	default:
		l.left, l.state = l.size, inChunk
	}
	return nil
}

func (l *Lexer) tooLarge() error {
	return &Error{http.StatusRequestEntityTooLarge, "the body is too large"}
}

// trailer takes a byte of the lines behind the last chunk. They are not used,
// but a malformed one may begin a request to another reader.
func (l *Lexer) trailer(c byte) error {
	if l.count++; l.count > mostTrailer {
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

func (l *Lexer) expect(c, want byte, then state, reason string) error {
	if c != want {
		return malformed(reason)
	}
	l.state = then
	return nil
}

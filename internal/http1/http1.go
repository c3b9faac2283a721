// Package http1 finds where each request on an HTTP/1.x connection begins and
// ends (RFC 9112). It prevents request smuggling: if two parsers could disagree
// about the end of a request, the request is refused, and the error gives the
// reason.
//
// All rules of this package are at least as strict as those of net/http. So
// net/http accepts each request that this package accepts, and finds its end at
// the same byte.
//
// A Lexer only examines bytes. It stores none of them, decodes nothing and
// sends nothing. Its caller passes it the head of a request in one piece, and
// the body as it arrives:
//
//	n := l.Skip(b)         // empty lines before the request
//	n, err := l.Head(b)    // 0: more has to be read
//	n, err := l.Body(b)    // as often as needed, until l.Done()
//	l.Next()               // the request is answered
package http1

import "net/http"

// Error is the reason for refusing a request. It quotes nothing from the
// request, because the quoted text could be a token.
type Error struct {
	Status int // HTTP status
	Reason string
}

func (e *Error) Error() string { return e.Reason }

func malformed(reason string) *Error { return &Error{http.StatusBadRequest, reason} }

// Lexer examines the requests of one connection.
type Lexer struct {
	MaxHead     int   // maximum length of a request line and its header, in bytes
	MaxBody     int64 // maximum bytes of a chunked body
	Interactive bool  // a person types the requests: Host may be missing, and empty lines may come between requests

	state       state
	hasPrevious bool // whether this is not the first request
	blankLines  int  // number of empty lines before it
	head
	body
}

// state is the state of the current request.
type state uint8

const (
	inHead state = iota
	inBody       // a body of known length
	inSize       // digits of a chunk's size
	inExtension
	atSizeLF
	inChunk
	atChunkCR
	atChunkLF
	atTrailer // beginning of a line
	inName
	inValue
	atValueLF
	atLastLF
	done
)

// maxBlank is the maximum number of empty lines before a request.
const maxBlank = 4

// Skip returns how many bytes at the beginning of b are empty lines. The caller
// must remove these bytes before it calls Head. Empty lines are permitted
// before the first request, and also after a body, because old clients send a
// line end there (RFC 9112, 2.2).
func (l *Lexer) Skip(b []byte) (n int) {
	if l.line > 0 {
		return 0
	}
	for l.Interactive || l.blankLines < maxBlank && (!l.hasPrevious || l.hadBody) {
		switch {
		case n < len(b) && b[n] == '\n':
			n++
		case n+1 < len(b) && b[n] == '\r' && b[n+1] == '\n':
			n += 2
		default:
			return n
		}
		l.blankLines++
		l.scanned = 0
	}
	return n
}

// Done reports whether the current request is complete.
func (l *Lexer) Done() bool { return l.state == done }

func (l *Lexer) Next() {
	hadBody := l.hadBody
	*l = Lexer{MaxHead: l.MaxHead, MaxBody: l.MaxBody, Interactive: l.Interactive, hasPrevious: true}
	l.hadBody = hadBody
}

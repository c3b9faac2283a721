// Package http1 finds where each request on an HTTP/1.x connection begins and
// ends (RFC 9112). It is stricter than net/http in every rule: a request that
// it accepts is one that net/http accepts too and ends at the same byte, and a
// request whose end two readers could see in different places is refused with
// the reason (request smuggling).
//
// A Lexer only decides: it keeps no bytes, decodes nothing and sends nothing.
// Its caller hands it the head of a request whole and the body as it arrives:
//
//	n := l.Skip(b)         // empty lines before the request
//	n, err := l.Head(b)    // 0: more has to be read
//	n, err := l.Body(b)    // as often as needed, until l.Done()
//	l.Next()               // the request is answered
package http1

import "net/http"

// Error is why a request is refused. It quotes nothing that the client sent:
// that may be a token.
type Error struct {
	Status int // of HTTP
	Reason string
}

// Error returns the reason.
func (e *Error) Error() string { return e.Reason }

func malformed(reason string) *Error { return &Error{http.StatusBadRequest, reason} }

// Lexer follows the requests of one connection.
type Lexer struct {
	MaxHead int   // most bytes of a request line with its header
	MaxBody int64 // most bytes of a body in chunks
	Typed   bool  // a person writes the requests: empty lines between them and a missing Host are no fault

	state state
	later bool // this is not the first request
	blank int  // empty lines before it
	head
	body
}

// state is how far the current request has come.
type state uint8

const (
	inHead state = iota
	inBody       // of a known length
	inSize       // digits of a chunk's size
	inExtension
	atSizeLF
	inChunk
	atChunkCR
	atChunkLF
	atTrailer // the beginning of a line
	inName
	inValue
	atValueLF
	atLastLF
	done
)

// mostBlank is how many empty lines may come before a request.
const mostBlank = 4

// Skip returns how many bytes of b, which begins where a request may, are
// empty lines to be passed over: before the first request, and after a body,
// which old clients end with a line break (RFC 9112, 2.2). The caller drops
// them before it calls Head.
func (l *Lexer) Skip(b []byte) (n int) {
	if l.line > 0 {
		return 0
	}
	for l.Typed || l.blank < mostBlank && (!l.later || l.hadBody) {
		switch {
		case n < len(b) && b[n] == '\n':
			n++
		case n+1 < len(b) && b[n] == '\r' && b[n+1] == '\n':
			n += 2
		default:
			return n
		}
		l.blank++
		l.scanned = 0
	}
	return n
}

// HeadDone reports whether the head of the current request is complete.
func (l *Lexer) HeadDone() bool { return l.state != inHead }

// Done reports whether all of the current request was seen.
func (l *Lexer) Done() bool { return l.state == done }

// Next begins the next request.
func (l *Lexer) Next() {
	hadBody := l.hadBody
	*l = Lexer{MaxHead: l.MaxHead, MaxBody: l.MaxBody, Typed: l.Typed, later: true}
	l.hadBody = hadBody
}

package http1

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
)

// head holds the state of a request's head after the lines read so far.
type head struct {
	line      int  // number of lines; the request line is the first
	lineStart int  // index of the next line
	scanned   int  // there is no line end between lineStart and this index
	minor     byte // second digit of the version, as a character

	hosts     int
	hasLength bool
	length    int64
	digits    int // digits of the length, including leading zeros
	chunked   bool
	hadBody   bool // whether this request or the previous one announces a body

	unsupported *Error // error for a well-formed request that is not supported; otherwise nil
}

// Head examines b, which must begin at the start of the current request. It
// returns the length of the head, or 0 if the head is incomplete. If Head
// returns 0, the next call must pass the same bytes, followed by more.
func (l *Lexer) Head(b []byte) (n int, err error) {
	for {
		i := bytes.IndexByte(b[l.scanned:], '\n')
		end := l.scanned + i + 1
		if i < 0 {
			end = len(b)
		}
		switch {
		case end > l.MaxHead && l.line == 0:
			return 0, &Error{http.StatusRequestURITooLong, "the request line is too long"}
		case end > l.MaxHead:
			return 0, &Error{http.StatusRequestHeaderFieldsTooLarge, "the header is too long"}
		case l.line == 0 && len(b) > 0 && !beginsMethod(b[0]):
			return 0, methodError(b[0])
		case i < 0:
			l.scanned = end
			return 0, nil
		}
		line := bytes.TrimSuffix(b[l.lineStart:end-1], []byte("\r"))
		l.lineStart, l.scanned = end, end
		l.line++
		switch {
		case l.line == 1:
			err = l.requestLine(line)
		case len(line) == 0:
			if err = l.endHead(); err == nil {
				return end, nil
			}
		default:
			err = l.field(line)
		}
		if err != nil {
			return 0, err
		}
	}
}

// beginsMethod reports whether a request line may begin with c. If it may not,
// Head refuses the request before the line is complete. beginsMethod accepts CR
// and LF, because empty lines are refused later.
func beginsMethod(c byte) bool { return isToken[c] || c == '\r' || c == '\n' }

func methodError(first byte) error {
	if first == recordHandshake {
		return malformed("received a TLS handshake where plain HTTP is served; use http://")
	}
	return malformed("the request line does not begin with a method")
}

// recordHandshake is the first byte that a TLS client sends (RFC 8446, 5.1).
const recordHandshake = 22

// requestLine checks the request line (RFC 9112, 3).
func (l *Lexer) requestLine(line []byte) error {
	if len(line) == 0 {
		return malformed("an empty line comes before the request line")
	}
	method, rest, _ := bytes.Cut(line, []byte(" "))
	target, version, ok := bytes.Cut(rest, []byte(" "))
	switch {
	case !areTokens(method):
		return malformed("the method has an invalid character")
	case len(target) == 0 && !ok:
		return malformed("the request line has no target")
	case len(target) == 0:
		return malformed("the request line has more than one space between method and target")
	case !ok:
		return malformed("the request line has no version")
	case bytes.IndexByte(version, ' ') >= 0:
		return malformed("the request line has more than three parts")
	case !isVersion(version):
		return malformed("the version is not of the form HTTP/1.1")
	case version[5] != '1':
		return &Error{http.StatusHTTPVersionNotSupported, "unsupported HTTP version: use 1.1 or 1.0"}
	}
	l.minor = version[7]
	return checkTarget(method, target)
}

// isVersion reports whether text is a version such as HTTP/1.1, with any two
// digits.
func isVersion(text []byte) bool {
	return len(text) == len("HTTP/1.1") && bytes.HasPrefix(text, []byte("HTTP/")) &&
		isDigit(text[5]) && text[6] == '.' && isDigit(text[7])
}

// field checks one line of the header. It calls applyField if the value may
// need further checks.
func (l *Lexer) field(line []byte) error {
	number := l.line - 1 // the request line does not count
	colon := bytes.IndexByte(line, ':')
	switch {
	case line[0] == ' ' || line[0] == '\t':
		return malformed(fmt.Sprintf("header line %d begins with whitespace: a field must be on one line", number))
	case colon < 0:
		return malformed(fmt.Sprintf("header line %d has no colon", number))
	case colon == 0:
		return malformed(fmt.Sprintf("header line %d has no name", number))
	case line[colon-1] == ' ' || line[colon-1] == '\t':
		return malformed(fmt.Sprintf("header line %d has whitespace before the colon", number))
	case !areTokens(line[:colon]):
		return malformed(fmt.Sprintf("header line %d has an invalid character in its name", number))
	}
	name, value := line[:colon], line[colon+1:]
	if !areAll(&isText, value) {
		return malformed(fmt.Sprintf("header line %d has a control character in its value", number))
	}
	switch len(name) { // only names of these lengths matter
	case len("Host"), len("Expect"), len("Trailer"), len("Content-Length"), len("Transfer-Encoding"):
		return l.applyField(name, bytes.Trim(value, " \t"))
	}
	return nil
}

// applyField checks the fields that determine where the request ends, and the
// fields whose values net/http might refuse.
func (l *Lexer) applyField(name, value []byte) error {
	switch {
	case equalFold(name, "Host"):
		if l.hosts++; l.hosts > 1 {
			return malformed("more than one Host field")
		}
		if len(value) > 0 && !isHost(value) {
			return malformed("the Host field is not a host with an optional port")
		}
	case equalFold(name, "Content-Length"):
		return l.contentLength(value)
	case equalFold(name, "Transfer-Encoding"):
		if l.chunked || !equalFold(value, "chunked") {
			l.unsupported = &Error{http.StatusNotImplemented, "unsupported transfer coding: only chunked is supported, and only once"}
		}
		l.chunked = true
	case equalFold(name, "Expect"):
		if len(value) > 0 && !equalFold(value, "100-continue") {
			l.unsupported = &Error{http.StatusExpectationFailed, "unsupported expectation: only 100-continue is supported"}
		}
	case equalFold(name, "Trailer"):
		for listed := range bytes.SplitSeq(value, []byte(",")) {
			listed = bytes.Trim(listed, " \t")
			if equalFold(listed, "Content-Length") || equalFold(listed, "Transfer-Encoding") || equalFold(listed, "Trailer") {
				return malformed("the Trailer field lists a field that must be in the header")
			}
		}
	}
	return nil
}

// contentLength parses a Content-Length. If a request has several, they must
// have the same value.
func (l *Lexer) contentLength(value []byte) error {
	var n int64
	for _, c := range value {
		if !isDigit(c) {
			return malformed("Content-Length is not a number")
		}
		if n > (math.MaxInt64-int64(c-'0'))/10 {
			return malformed("Content-Length is too large")
		}
		n = n*10 + int64(c-'0')
	}
	switch {
	case len(value) == 0:
		return malformed("Content-Length is empty")
	case l.hasLength && (n != l.length || len(value) != l.digits):
		return malformed("Content-Length is repeated with a different value")
	}
	l.hasLength, l.length, l.digits = true, n, len(value)
	return nil
}

// endHead determines how the body is framed.
func (l *Lexer) endHead() error {
	switch {
	case l.unsupported != nil:
		return l.unsupported
	case l.hosts == 0 && l.minor != '0' && !l.Interactive:
		return malformed("the Host field is missing")
	case l.chunked && l.hasLength:
		return malformed("both Content-Length and Transfer-Encoding are present")
	case l.chunked && l.minor == '0':
		return malformed("Transfer-Encoding is not allowed in HTTP/1.0")
	}
	l.hadBody = l.chunked || l.length > 0
	switch {
	case l.chunked:
		l.state = inSize
	case l.length > 0:
		l.remaining, l.state = l.length, inBody
	default:
		l.state = done
	}
	return nil
}

// equalFold reports whether name and word are equal, ignoring case.
func equalFold(name []byte, word string) bool {
	return len(name) == len(word) && bytes.EqualFold(name, []byte(word))
}

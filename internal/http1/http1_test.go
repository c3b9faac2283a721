package http1

import (
	"fmt"
	"strings"
	"testing"
)

// lexed is the result for one request.
type lexed struct {
	start, end int    // positions in the text; if err is set, end is the position of the error
	body       string // without framing
	done       bool
	err        error
}

func (r lexed) String() string {
	return fmt.Sprintf("%d-%d %q %t %v", r.start, r.end, r.body, r.done, r.err)
}

// lexAll passes the requests in text to a Lexer, in pieces of the given length.
func lexAll(l *Lexer, text string, piece int) (list []lexed) {
	b := []byte(text)
	have := 0
	more := func() bool { have = min(len(b), have+piece); return have > 0 }
	for pos := 0; ; l.Next() {
		if have <= pos && (have == len(b) || !more()) {
			return list
		}
		pos += l.Skip(b[pos:have])
		r := lexed{start: pos, end: pos}
		var n int
		for n == 0 && r.err == nil {
			if n, r.err = l.Head(b[pos:have]); n > 0 || r.err != nil {
				break
			}
			if have == len(b) {
				if pos == len(b) {
					return list
				}
				return append(list, r)
			}
			more()
			pos += l.Skip(b[pos:have])
			r.start, r.end = pos, pos
		}
		r.end += n
		for r.err == nil && !l.Done() && (r.end < have || have < len(b)) {
			if r.end == have {
				more()
			}
			stop := r.end + 1 // byte by byte, to distinguish data from framing
			data := l.state == inBody || l.state == inChunk
			n, r.err = l.Body(b[r.end:stop])
			if data && n > 0 {
				r.body += string(b[r.end:stop])
			}
			r.end += n
		}
		r.done = r.err == nil && l.Done()
		list, pos = append(list, r), r.end
		if !r.done {
			return list
		}
	}
}

func newLexer() *Lexer { return &Lexer{MaxHead: 8 << 10, MaxBody: 1 << 20} }

const get, host = "GET /ok HTTP/1.1\r\n", "Host: h\r\n"

const chunks = "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n"

var long = strings.Repeat("a", 9<<10)

// refused lists requests with one error each.
var refused = []struct {
	name, text string
	status     int
	reason     string
}{
	{"no version", "GET /ok\r\n\r\n", 400, "has no version"},
	{"no target", "GET\r\n\r\n", 400, "has no target"},
	{"two spaces", "GET  / HTTP/1.1\r\n\r\n", 400, "more than one space"},
	{"four parts", "GET / x HTTP/1.1\r\n\r\n", 400, "more than three parts"},
	{"space at the end", "GET / HTTP/1.1 \r\n\r\n", 400, "more than three parts"},
	{"tabs", "GET\t/\tHTTP/1.1\r\n\r\n", 400, "method"},
	{"no method", " / HTTP/1.1\r\n\r\n", 400, "does not begin with a method"},
	{"zero byte first", "\x00", 400, "does not begin with a method"},
	{"TLS", "\x16\x03\x01", 400, "TLS"},
	{"empty line between", get + host + "\r\n\r\n" + get, 400, "empty line"},
	{"HTTP/1", "GET / HTTP/1\r\n\r\n", 400, "version"},
	{"HTTP/2.0", "GET / HTTP/2.0\r\n\r\n", 505, "use 1.1 or 1.0"},
	{"HTTP/0.9", "GET / HTTP/0.9\r\n\r\n", 505, "use 1.1 or 1.0"},
	{"long line", "GET /" + long, 414, "request line"},
	{"long header", get + "X: " + long, 431, "header"},

	{"fragment", "GET /#x HTTP/1.1\r\n\r\n", 400, "fragment"},
	{"fragment of a URL", "GET http://h/#x HTTP/1.1\r\n\r\n", 400, "fragment"},
	{"fragment without a path", "GET http://h#x HTTP/1.1\r\n\r\n", 400, "fragment"},
	{"user", "GET http://root:x@h/ HTTP/1.1\r\n\r\n", 400, "user information"},
	{"ftp", "GET ftp://h/ HTTP/1.1\r\n\r\n", 400, "neither a path"},
	{"file", "GET file:///etc/passwd HTTP/1.1\r\n\r\n", 400, "neither a path"},
	{"authority", "GET h:80 HTTP/1.1\r\n\r\n", 400, "neither a path"},
	{"no slash", "GET ok HTTP/1.1\r\n\r\n", 400, "neither a path"},
	{"no host", "GET http:///ok HTTP/1.1\r\n\r\n", 400, "no host"},
	{"broken host", "GET http://[::1/ HTTP/1.1\r\n\r\n", 400, "or an invalid one"},
	{"asterisk of a GET", "GET * HTTP/1.1\r\n\r\n", 400, "OPTIONS"},
	{"bad escape", "GET /%zz HTTP/1.1\r\n\r\n", 400, "%"},
	{"escape at the end", "GET /% HTTP/1.1\r\n\r\n", 400, "%"},
	{"control in the target", "GET /\x01 HTTP/1.1\r\n\r\n", 400, "control"},

	{"folded", get + host + "X: a\r\n b\r\n\r\n", 400, "header line 3 begins with whitespace"},
	{"folded first line", get + " X: a\r\n\r\n", 400, "header line 1 begins with whitespace"},
	{"space before the colon", get + host + "X: y\r\nA : b\r\n\r\n", 400, "header line 3 has whitespace before the colon"},
	{"no colon", get + "X\r\n\r\n", 400, "header line 1 has no colon"},
	{"no name", get + ": x\r\n\r\n", 400, "header line 1 has no name"},
	{"bad name", get + "X/Y: x\r\n\r\n", 400, "character in its name"},
	{"bare CR", get + "X: a\rb\r\n\r\n", 400, "control character in its value"},
	{"NUL", get + "X: a\x00b\r\n\r\n", 400, "control character in its value"},
	{"DEL", get + "X: a\x7fb\r\n\r\n", 400, "control character in its value"},

	{"no Host", get + "\r\n", 400, "Host field is missing"},
	{"two Hosts", get + host + host + "\r\n", 400, "more than one Host"},
	{"open bracket", get + "Host: [::1\r\n\r\n", 400, "Host field is not"},
	{"Host with a path", get + "Host: a/b\r\n\r\n", 400, "Host field is not"},
	{"Host with a user", get + "Host: root@h\r\n\r\n", 400, "Host field is not"},
	{"port of letters", get + "Host: h:http\r\n\r\n", 400, "Host field is not"},
	{"negative port", get + "Host: h:-1\r\n\r\n", 400, "Host field is not"},
	{"behind the bracket", get + "Host: [::1]x\r\n\r\n", 400, "Host field is not"},
	{"no address", get + "Host: [x]\r\n\r\n", 400, "Host field is not"},

	{"signed length", get + host + "Content-Length: +3\r\n\r\n", 400, "not a number"},
	{"lengths in a list", get + host + "Content-Length: 3, 3\r\n\r\n", 400, "not a number"},
	{"empty length", get + host + "Content-Length:\r\n\r\n", 400, "empty"},
	{"huge length", get + host + "Content-Length: 9223372036854775808\r\n\r\n", 400, "Content-Length is too large"},
	{"two lengths", get + host + "Content-Length: 3\r\nContent-Length: 4\r\n\r\n", 400, "different value"},
	{"one length written twice", get + host + "Content-Length: 3\r\nContent-Length: 03\r\n\r\n", 400, "different value"},
	{"length and chunks", get + host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "both"},
	{"chunks in HTTP/1.0", "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "HTTP/1.0"},
	{"gzip", get + host + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501, "chunked"},
	{"chunked twice", get + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501, "once"},
	{"expectation", get + host + "Expect: x\r\n\r\n", 417, "100-continue"},
	{"trailer of a length", get + host + "Trailer: X, Content-Length\r\n\r\n", 400, "Trailer"},

	{"space behind a size", chunks + "3 \r\nabc\r\n0\r\n\r\n", 400, "whitespace"},
	{"tab before a size", chunks + "\t3\r\nabc\r\n0\r\n\r\n", 400, "whitespace"},
	{"space before an extension", chunks + "3 ;x\r\nabc\r\n0\r\n\r\n", 400, "whitespace"},
	{"NUL in an extension", chunks + "3;x=\x00\r\nabc\r\n0\r\n\r\n", 400, "extension has a control character"},
	{"LF in an extension", chunks + "3;x\nabc\r\n0\r\n\r\n", 400, "extension has a control character"},
	{"open quote in an extension", chunks + "3;x=\"a\\\"\r\nabc\r\n0\r\n\r\n", 400, "unclosed quote"},
	{"bare CR in an extension", chunks + "3;x\rabc\r\n0\r\n\r\n", 400, "bare CR"},
	{"bare LF", chunks + "3\nabc\r\n0\r\n\r\n", 400, "bare LF"},
	{"no size", chunks + "\r\nabc\r\n0\r\n\r\n", 400, "not a hexadecimal number"},
	{"0x", chunks + "0x3\r\nabc\r\n0\r\n\r\n", 400, "not a hexadecimal number"},
	{"many digits", chunks + strings.Repeat("0", 17), 400, "too many digits"},
	{"long extension", chunks + "3;" + long, 400, "too long"},
	{"chunk beyond the limit", chunks + "100001\r\n", 413, "too large"},
	{"sum beyond the limit", chunks + "3\r\nabc\r\nffffe\r\n", 413, "too large"},
	{"size that wraps", chunks + "ffffffffffffffff\r\n", 413, "too large"},
	{"longer than its size", chunks + "3\r\nabcd\r\n0\r\n\r\n", 400, "longer than its size"},
	{"bare LF behind data", chunks + "3\r\nabc\n0\r\n\r\n", 400, "longer than its size"},
	{"frames alone", chunks + strings.Repeat("1;"+strings.Repeat("x", 1000)+"\r\na\r\n", 20), 400, "framing"},
	{"space in a trailer's name", chunks + "0\r\nX : y\r\n\r\n", 400, "name in the trailer has whitespace"},
	{"folded trailer", chunks + "0\r\nX: y\r\n z\r\n\r\n", 400, "begins with whitespace"},
	{"no colon in the trailer", chunks + "0\r\nX\r\n\r\n", 400, "no colon"},
	{"NUL in the trailer", chunks + "0\r\nX: \x00\r\n\r\n", 400, "control character"},
	{"bare LF in the trailer", chunks + "0\r\nX: y\n\n", 400, "control character"},
	{"bare LF at the end", chunks + "0\r\n\n", 400, "does not begin with a name"},
	{"long trailer", chunks + "0\r\nX: " + long, 400, "trailer is too long"},
}

const post = "POST / HTTP/1.1\r\n" + host

// accepted lists requests without errors.
var accepted = []struct {
	name, text string
	want       []string // expected bodies
}{
	{"plain", get + host + "\r\n", []string{""}},
	{"bare LF", "GET / HTTP/1.1\nHost: h\n\n", []string{""}},
	{"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", []string{""}},
	{"HTTP/1.2", "GET / HTTP/1.2\r\n" + host + "\r\n", []string{""}},
	{"URL", "GET http://lab:80/x?y=%zz HTTP/1.1\r\n" + host + "\r\n", []string{""}},
	{"URL without a path", "GET HTTPS://[::1]?x HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", []string{""}},
	{"asterisk", "OPTIONS * HTTP/1.1\r\n" + host + "\r\n", []string{""}},
	{"CONNECT", "CONNECT lab:80 HTTP/1.1\r\n" + host + "\r\n", []string{""}},
	{"empty Host", get + "Host:\r\n\r\n", []string{""}},
	{"other bytes in a value", get + host + "X: \xff\t\xfe\r\n\r\n", []string{""}},
	{"empty lines before", "\r\n\n\r\n" + get + host + "\r\n", []string{""}},
	{"empty lines alone", "\r\n\n", nil},
	{"two", get + host + "\r\n" + get + host + "\r\n", []string{"", ""}},
	{"length", post + "Content-Length: 3\r\n\r\nabc" + get + host + "\r\n", []string{"abc", ""}},
	{"length twice", post + "Content-Length: 03\r\nContent-Length:  03\t\r\n\r\nabc", []string{"abc"}},
	{"empty line behind a body", post + "Content-Length: 3\r\n\r\nabc\r\n" + get + host + "\r\n", []string{"abc", ""}},
	{"chunks", post + "transfer-encoding: Chunked\r\n\r\n3;x=\"y\\\"\"\r\nabc\r\n0000A\r\n0123456789\r\n0\r\n\r\n" + get + host + "\r\n", []string{"abc0123456789", ""}},
	{"trailer", post + "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0;x\r\nX: y\r\nZ:\r\n\r\n" + get + host + "\r\n", []string{"", ""}},
	{"expectation", post + "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx", []string{"x"}},
}

// TestRefused checks the status and the reason for each refused request.
func TestRefused(t *testing.T) {
	for _, tt := range refused {
		for _, piece := range []int{1, 3, len(tt.text)} {
			list := lexAll(newLexer(), tt.text, piece)
			if len(list) == 0 {
				t.Errorf("%s: no result", tt.name)
				continue
			}
			e, ok := list[len(list)-1].err.(*Error)
			if !ok || e.Status != tt.status || !strings.Contains(e.Reason, tt.reason) {
				t.Errorf("%s, in pieces of %d: got %v, want %d with %q", tt.name, piece, list[len(list)-1], tt.status, tt.reason)
			}
		}
	}
}

// TestAccepted checks that the ends of requests are found, wherever the bytes
// are split.
func TestAccepted(t *testing.T) {
	for _, tt := range accepted {
		for _, piece := range []int{1, 2, 7, max(1, len(tt.text))} {
			var got []string
			for _, r := range lexAll(newLexer(), tt.text, piece) {
				if !r.done {
					t.Errorf("%s, in pieces of %d: %v", tt.name, piece, r)
				}
				got = append(got, r.body)
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
				t.Errorf("%s, in pieces of %d: got %q, want %q", tt.name, piece, got, tt.want)
			}
		}
	}
}

// TestTyped tests the requests of a person at a terminal, who may type empty
// lines between requests, and omit Host.
func TestTyped(t *testing.T) {
	text := "\n\n\n\n\n\n" + get + "\n\n\n\n" + get + "\r\n"
	l := newLexer()
	l.Interactive = true
	if list := lexAll(l, text, len(text)); len(list) != 2 || !list[1].done {
		t.Errorf("got %v", list)
	}
}

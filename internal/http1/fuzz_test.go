package http1

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// FuzzAgainstNetHTTP checks that net/http accepts every request that the lexer
// accepts, and finds the same body and the same end of the request. The result
// must not depend on how the bytes are split.
func FuzzAgainstNetHTTP(f *testing.F) {
	for _, tt := range refused {
		f.Add(tt.text, uint8(3))
	}
	for _, tt := range accepted {
		f.Add(tt.text, uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, piece uint8) {
		if len(text) > 64<<10 {
			return
		}
		whole := lexAll(newLexer(), text, max(1, len(text)))
		if pieces := lexAll(newLexer(), text, int(piece)+1); fmt.Sprint(whole) != fmt.Sprint(pieces) {
			t.Fatalf("whole %v, in pieces of %d %v", whole, int(piece)+1, pieces)
		}
		for _, r := range whole {
			if !r.done {
				continue
			}
			in := bufio.NewReader(strings.NewReader(text[r.start:]))
			req, err := http.ReadRequest(in)
			if err != nil {
				t.Fatalf("net/http refuses %q: %v", text[r.start:r.end], err)
			}
			body, err := io.ReadAll(req.Body)
			if err != nil || string(body) != r.body {
				t.Fatalf("net/http reads the body %q, %v; not %q, of %q", body, err, r.body, text[r.start:r.end])
			}
			if rest, _ := io.ReadAll(in); string(rest) != text[r.end:] {
				t.Fatalf("net/http ends %q before %q", text[r.start:r.end], rest)
			}
		}
	})
}

// BenchmarkHead measures the lexer's time for an ordinary head.
func BenchmarkHead(b *testing.B) {
	text := []byte("GET /sched/v0.0.43/ping HTTP/1.1\r\nHost: 127.0.0.1:6820\r\nUser-Agent: curl/8.14.1\r\nAccept: */*\r\n" +
		"X-SCHED-USER-TOKEN: " + strings.Repeat("a", 180) + "\r\n\r\n")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	l := newLexer()
	for b.Loop() {
		l.Next()
		if n, err := l.Head(text); n != len(text) || err != nil {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkChunks measures the lexer's time for a body in chunks of 4 KiB.
func BenchmarkChunks(b *testing.B) {
	head := []byte("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
	text := []byte(strings.Repeat("1000\r\n"+strings.Repeat("a", 4<<10)+"\r\n", 16) + "0\r\n\r\n")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	l := newLexer()
	for b.Loop() {
		l.Next()
		if n, err := l.Head(head); n != len(head) || err != nil {
			b.Fatal(n, err)
		}
		if n, err := l.Body(text); n != len(text) || err != nil {
			b.Fatal(n, err)
		}
	}
}

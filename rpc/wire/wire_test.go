package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	tests := []struct {
		name  string
		input string
		limit int
		want  string
		err   error
	}{
		{name: "empty message", input: "\x00\x00\x00\x00", limit: 10},
		{name: "one message", input: "\x00\x00\x00\x03abcREST", limit: 10, want: "abc"},
		{name: "longer than the first chunk", input: "\x00\x01\x86\xa0" + long, limit: 1 << 20, want: long},
		{name: "just at the limit", input: "\x00\x00\x00\x03abc", limit: 3, want: "abc"},
		{name: "over the limit", input: "\x00\x00\x00\x04abcd", limit: 3, err: LengthError{4, 3}},
		{name: "all ones", input: "\xff\xff\xff\xffabcd", limit: 1 << 30, err: LengthError{1<<32 - 1, 1 << 30}},
		{name: "nothing", input: "", limit: 10, err: ErrNoMessage},
		{name: "nothing is also the end", input: "", limit: 10, err: io.EOF},
		{name: "half a length", input: "\x00\x00", limit: 10, err: io.ErrUnexpectedEOF},
		{name: "ends early", input: "\x00\x00\x00\x04ab", limit: 10, want: "ab", err: io.ErrUnexpectedEOF},
		{name: "ends after the length", input: "\x00\x00\x00\x04", limit: 10, err: io.ErrUnexpectedEOF},
		{name: "HTTP", input: "HTTP/1.1 405 Method Not Allowed\r\n", limit: 1 << 30, err: ErrHTTP},
		{name: "an alert of TLS", input: "\x15\x03\x03\x00\x02\x02\x0a", limit: 1 << 30, err: ErrTLS},
		{name: "a handshake of TLS", input: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", limit: 64 << 20, err: ErrTLS},
		{name: "a length like a handshake of TLS", input: "\x16\x03\x01\x02\x00", limit: 1 << 30, want: "\x00", err: io.ErrUnexpectedEOF},
		{name: "a length like an alert of TLS", input: "\x15\x03\x03\x01\x00", limit: 1 << 30, want: "\x00", err: io.ErrUnexpectedEOF},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.input), iotest.OneByteReader(strings.NewReader(tt.input))} {
				got, err := Read(r, tt.limit)
				if !errors.Is(err, tt.err) {
					t.Fatalf("error %v, want %v", err, tt.err)
				}
				if diff := cmp.Diff(tt.want, string(got)); diff != "" {
					t.Errorf("message (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestFillGrowsWithWhatArrives checks that Fill does not allocate a gigabyte
// when a length of nearly a gigabyte is announced but only ten bytes arrive.
func TestFillGrowsWithWhatArrives(t *testing.T) {
	buf, err := Fill(bytes.NewReader(make([]byte, 10)), nil, 1<<30-1)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if cap(buf) > 1<<20 {
		t.Errorf("%d bytes of memory for a message that sent 10", cap(buf))
	}
}

func TestFillContinues(t *testing.T) {
	got, err := Fill(strings.NewReader("defgh"), []byte("abc"), 6)
	if err != nil || string(got) != "abcdef" {
		t.Errorf("got %q, %v", got, err)
	}
}

package excerpt

import (
	"io"
	"os"
	"strings"
	"testing"
)

// TestBuffer checks that a Buffer takes everything and keeps the beginning, when
// it is filled as package os/exec does it, and otherwise.
func TestBuffer(t *testing.T) {
	for _, tt := range []struct{ written, want string }{{"", ""}, {"abc", "abc"}, {"abcd", "abcd"}, {strings.Repeat("abcde", 1000), "abcd"}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() { io.WriteString(w, tt.written); w.Close() }()
		copied, written := Buffer{Max: 4}, Buffer{Max: 4}
		if n, err := io.Copy(&copied, r); n != int64(len(tt.written)) || err != nil || copied.String() != tt.want {
			t.Errorf("%.10q: %d, %v, %q", tt.written, n, err, copied.String())
		}
		r.Close()
		for i := range tt.written {
			if n, err := written.Write([]byte(tt.written[i : i+1])); n != 1 || err != nil {
				t.Errorf("%.10q: %d, %v", tt.written, n, err)
			}
		}
		if written.String() != tt.want {
			t.Errorf("%.10q, byte by byte: %q", tt.written, written.String())
		}
	}
}

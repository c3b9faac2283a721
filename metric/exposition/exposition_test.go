package exposition

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriter(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	w := NewWriter(&b)
	w.Family("a", Gauge, "One \\ two\nthree.")
	w.Sample("a", 1_795_000_200)
	w.Sample("a", 0.25, "x", `q"b\s`+"\nn\x00\xff", "y", "")
	w.Sample("a", math.Inf(1), "x", "1")
	w.Sample("a", math.NaN(), "x", "2")
	w.Sample("a", 1<<60, "x", "3")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	want := `# HELP a One \\ two\nthree.
# TYPE a gauge
a 1795000200
a{x="q\"b\\s\nn` + "\uFFFD\uFFFD" + `",y=""} 0.25
a{x="1"} +Inf
a{x="2"} NaN
a{x="3"} 1.152921504606847e+18
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

type full struct{ left int }

var errFull = errors.New("full")

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// TestWriteError checks that Flush returns the error of an earlier write.
func TestWriteError(t *testing.T) {
	t.Parallel()
	w := NewWriter(&full{left: 100})
	for range 10_000 {
		w.Sample("a", 1)
	}
	if err := w.Flush(); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}

package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// written returns the JSON that f writes.
func written(t *testing.T, f func(Encoder)) string {
	t.Helper()
	var b bytes.Buffer
	j := NewJSONWriter(&b, Compact)
	f(j)
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestJSONWriter(t *testing.T) {
	tests := []struct {
		name  string
		write func(Encoder)
		want  string
	}{
		{"commas", func(e Encoder) {
			e.BeginObject()
			e.Key("a")
			e.BeginArray()
			e.Int(-1)
			e.BeginObject()
			e.EndObject()
			e.Bool(true)
			e.EndArray()
			e.Key("b")
			e.Null()
			e.EndObject()
		}, `{"a":[-1,{},true],"b":null}`},
		{"integers beyond 2^53", func(e Encoder) { e.Uint(math.MaxUint64) }, "18446744073709551615"},
		{"least integer", func(e Encoder) { e.Int(math.MinInt64) }, "-9223372036854775808"},
		{"whole float", func(e Encoder) { e.Float(2) }, "2.0"},
		{"float", func(e Encoder) { e.Float(0.1) }, "0.1"},
		{"small float", func(e Encoder) { e.Float(1e-9) }, "1e-09"},
		{"large float", func(e Encoder) { e.Float(1e300) }, "1e+300"},
		{"not a number", func(e Encoder) { e.Float(math.NaN()) }, "0.0"},
		{"infinite", func(e Encoder) { e.Float(math.Inf(-1)) }, "0.0"},
		{"escapes", func(e Encoder) { e.String("a\"\\\n\r\t\x00\x1f/ä\u2028") }, `"a\"\\\n\r\t\u0000\u001f/ä` + "\u2028\""},
		{"not UTF-8", func(e Encoder) { e.String("h\xe4ld\xff") }, `"h` + "\uFFFD" + `ld` + "\uFFFD" + `"`},
		{"cut UTF-8", func(e Encoder) { e.String("é"[:1]) }, "\"\uFFFD\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, written(t, tt.write)); d != "" {
				t.Error(d)
			}
		})
	}
}

// pieces records the size of every write.
type pieces struct {
	sizes []int
	err   error
}

func (p *pieces) Write(b []byte) (int, error) {
	p.sizes = append(p.sizes, len(b))
	return len(b), p.err
}

func TestJSONWriterWritesInPieces(t *testing.T) {
	var p pieces
	j := NewJSONWriter(&p, Compact)
	j.BeginArray()
	for range 200 {
		j.String(strings.Repeat("x", 1021))
	}
	if len(p.sizes) != 3 {
		t.Errorf("200 KiB in writes of %v, want one each 64 KiB", p.sizes)
	}
	if cap(j.buf) > 2*pieceSize {
		t.Errorf("the buffer grew to %d", cap(j.buf))
	}
}

func TestJSONWriterKeepsItsFirstFailure(t *testing.T) {
	var p pieces
	j := NewJSONWriter(&p, Compact)
	first := errors.New("controller gone")
	j.BeginArray()
	j.Fail(first)
	j.Fail(errors.New("later"))
	j.EndArray()
	if err := j.Flush(); err != first {
		t.Errorf("Flush: %v, want the first failure", err)
	}
	if len(p.sizes) != 0 {
		t.Error("half an answer was sent")
	}
}

func FuzzJSONWriterString(f *testing.F) {
	f.Add("a\xff\"\\\n")
	f.Fuzz(func(t *testing.T, s string) {
		text := written(t, func(e Encoder) { e.String(s) })
		var back string
		if err := json.Unmarshal([]byte(text), &back); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var want string // s with one U+FFFD for each byte that is not UTF-8
		for _, r := range s {
			want += string(r)
		}
		if back != want {
			t.Errorf("%q came back as %q", s, back)
		}
	})
}

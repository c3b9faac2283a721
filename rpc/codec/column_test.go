package codec

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A pair is a record that is sent field by field.
type pair struct {
	ID    uint16
	Count uint32
}

func pairs(c *Codec, rows *[]pair) {
	Array(c, "id", "u16", rows, func(c *Codec, p *pair) { c.Uint16("id", &p.ID) })
	Column(c, "count", "u32", *rows, func(c *Codec, p *pair) { c.Uint32("count", &p.Count) })
}

func TestColumns(t *testing.T) {
	const wire = "\x00\x00\x00\x02\x00\x07\x00\x08\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x02"
	want := []pair{{7, 1}, {8, 2}}
	out := NewEncoder(V2411, nil)
	if pairs(out, &want); string(out.Bytes()) != wire {
		t.Errorf("encoded % x", out.Bytes())
	}
	var got []pair
	in := NewDecoder(V2411, []byte(wire))
	pairs(in, &got)
	if diff := cmp.Diff(want, got); in.Finish() != nil || diff != "" {
		t.Errorf("%v (want -, got +):\n%s", in.Err(), diff)
	}
	for name, bad := range map[string]string{
		"one too few":  "\x00\x00\x00\x02\x00\x07\x00\x08\x00\x00\x00\x01\x00\x00\x00\x01",
		"one too many": "\x00\x00\x00\x01\x00\x07\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x02",
		"4 billion":    "\x00\x00\x00\x01\x00\x07\xff\xff\xff\xff\x00\x00\x00\x01",
	} {
		in := NewDecoder(V2411, []byte(bad))
		if pairs(in, &got); !errors.Is(in.Finish(), ErrColumn) {
			t.Errorf("%s: %v", name, in.Finish())
		}
	}
}

func TestStreamList(t *testing.T) {
	walk := func(c *Codec, s *Stream[string]) { StreamList(c, "l", "str", s, text) }
	tests := []struct {
		name, wire string
		want       []string
		err        error
	}{
		{name: "null", wire: "\xff\xff\xff\xfe"},
		{name: "empty", wire: "\x00\x00\x00\x00", want: []string{}},
		{name: "two", wire: "\x00\x00\x00\x02\x00\x00\x00\x02a\x00\x00\x00\x00\x02b\x00", want: []string{"a", "b"}},
		{name: "4 billion", wire: "\xff\xff\xff\xf0\x00", err: ErrCount},
		{name: "cut short", wire: "\x00\x00\x00\x02\x00\x00\x00\x02a\x00", want: []string{"a"}, err: ErrShort},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var whole Stream[string]
			in := NewDecoder(V2411, []byte(tt.wire))
			walk(in, &whole)
			if diff := cmp.Diff(tt.want, whole.List); !errors.Is(in.Finish(), tt.err) || diff != "" {
				t.Errorf("%v (want -, got +):\n%s", in.Err(), diff)
			}
			got := []string{}
			each := Stream[string]{Each: func(s *string) error { got = append(got, *s); return nil }}
			in = NewDecoder(V2411, []byte(tt.wire))
			walk(in, &each)
			if len(got) != len(tt.want) || !errors.Is(in.Finish(), tt.err) || each.List != nil {
				t.Errorf("each: %q, %v, %v", got, in.Err(), each.List)
			}
			if tt.err != nil {
				return
			}
			out := NewEncoder(V2411, nil)
			if walk(out, &whole); string(out.Bytes()) != tt.wire {
				t.Errorf("encoded % x", out.Bytes())
			}
		})
	}
}

func TestDecimal(t *testing.T) {
	tests := []struct {
		text, again string
		want        float64
		err         error
	}{
		{text: "1234.500000", want: 1234.5},
		{text: "0.000000"},
		{text: "nan", again: "0.000000"},
		{text: "-nan", again: "0.000000"},
		{text: "1" + strings.Repeat("0", 400), again: "inf", want: math.Inf(1)},
		{text: "inf", want: math.Inf(1)},
		{text: "-inf", want: math.Inf(-1)},
		{text: "", err: ErrDecimal},
		{text: "12 apples", err: ErrDecimal},
	}
	for _, tt := range tests {
		v, in := -1.0, NewEncoder(V2411, nil)
		in.String("", &tt.text)
		c := NewDecoder(V2411, in.Bytes())
		if c.Decimal("n", &v); !errors.Is(c.Finish(), tt.err) || v != tt.want {
			t.Errorf("%q: %v, %v", tt.text, v, c.Err())
		}
		if tt.err != nil {
			continue
		}
		want, again := tt.text, NewEncoder(V2411, nil)
		if tt.again != "" {
			want = tt.again
		}
		again.Decimal("n", &v)
		var got string
		if NewDecoder(V2411, again.Bytes()).String("", &got); got != want {
			t.Errorf("%q: encoded %q, want %q", tt.text, got, want)
		}
	}
}

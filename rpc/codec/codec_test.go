package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/model"
)

// TestBytes checks that each type is encoded as the description of the protocol
// says.
func TestBytes(t *testing.T) {
	tests := []struct {
		name string
		walk func(*Codec)
		want string
	}{
		{"u16", func(c *Codec) { v := uint16(0x1234); c.Uint16("", &v) }, "\x12\x34"},
		{"bool", func(c *Codec) { v := true; c.Bool("", &v) }, "\x01"},
		{"time before 1970", func(c *Codec) { v := model.Time(-1); c.Time("", &v) }, "\xff\xff\xff\xff\xff\xff\xff\xff"},
		{"double is scaled", func(c *Codec) { v := 2.0; c.Float("", &v) }, "\x41\x3e\x84\x80\x00\x00\x00\x00"},
		{"text", func(c *Codec) { v := "ab"; c.String("", &v) }, "\x00\x00\x00\x03ab\x00"},
		{"empty text is null", func(c *Codec) { v := ""; c.String("", &v) }, "\x00\x00\x00\x00"},
		{"not set", func(c *Codec) { var v model.Opt[uint16]; c.OptUint16("", &v) }, "\xff\xfe"},
		{"unlimited", func(c *Codec) { v := model.Infinite[uint32](); c.OptUint32("", &v) }, "\xff\xff\xff\xff"},
		{"set to 0", func(c *Codec) { v := model.Some[uint64](0); c.OptUint64("", &v) }, "\x00\x00\x00\x00\x00\x00\x00\x00"},
		{"null list", func(c *Codec) { var v []string; List(c, "", "str", &v, text) }, "\xff\xff\xff\xfe"},
		{"empty list", func(c *Codec) { v := []string{}; List(c, "", "str", &v, text) }, "\x00\x00\x00\x00"},
		{"array", func(c *Codec) { v := []uint16{1, 2}; c.Uint16s("", &v) }, "\x00\x00\x00\x02\x00\x01\x00\x02"},
		{"bits", func(c *Codec) { v := model.Bitmap{Set: true, Len: 5, Bits: []byte{0x12}}; c.Bitmap("", &v) }, "\x00\x00\x00\x05\x00\x00\x00\x050x12\x00"},
		{"null bits", func(c *Codec) { var v model.Bitmap; c.Bitmap("", &v) }, "\xff\xff\xff\xfe"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := NewEncoder(V2411, nil)
			tt.walk(c)
			if diff := cmp.Diff(tt.want, string(c.Bytes())); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func text(c *Codec, s *string) { c.String("", s) }

// TestRefusals checks which input a decoder refuses.
func TestRefusals(t *testing.T) {
	var (
		s    string
		list []string
		bits model.Bitmap
		n    uint32
	)
	tests := []struct {
		name string
		in   string
		walk func(*Codec)
		want error
	}{
		{"number cut short", "\x00\x00", func(c *Codec) { c.Uint32("n", &n) }, ErrShort},
		{"text longer than the message", "\x00\x00\x00\x09ab\x00", func(c *Codec) { c.String("s", &s) }, ErrShort},
		{"text of 4 GiB", "\xff\xff\xff\xffab\x00", func(c *Codec) { c.String("s", &s) }, ErrShort},
		{"text without its NUL", "\x00\x00\x00\x02ab", func(c *Codec) { c.String("s", &s) }, ErrNoNUL},
		{"list of 4 billion", "\xff\xff\xff\xf0\x00", func(c *Codec) { List(c, "l", "str", &list, text) }, ErrCount},
		{"array of 4 billion", "\xff\xff\xff\xff\x00", func(c *Codec) { c.Strings("l", &list) }, ErrCount},
		{"count of records beyond the message", "\x00\x00\x00\x02\x00", func(c *Codec) { c.Count("n", 0) }, ErrCount},
		{"bits without 0x", "\x00\x00\x00\x04\x00\x00\x00\x02F\x00", func(c *Codec) { c.Bitmap("b", &bits) }, ErrBitString},
		{"bits of the wrong length", "\x00\x00\x00\x08\x00\x00\x00\x040xF\x00", func(c *Codec) { c.Bitmap("b", &bits) }, ErrBitString},
		{"bits that are no digits", "\x00\x00\x00\x04\x00\x00\x00\x040xG\x00", func(c *Codec) { c.Bitmap("b", &bits) }, ErrBitString},
		{"bytes left over", "\x00\x00\x00\x00\x00", func(c *Codec) { c.Uint32("n", &n) }, ErrLeftover},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := NewDecoder(V2411, []byte(tt.in))
			tt.walk(c)
			if err := c.Finish(); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// TestFirstErrorSticks checks that nothing is read after an error, and that Err
// returns the first error.
func TestFirstErrorSticks(t *testing.T) {
	c := NewDecoder(V2411, []byte{0, 0, 0, 9})
	var s, later string
	c.String("first", &s)
	c.String("second", &later)
	if err := c.Err(); err == nil || err.Error() != "field first at byte 4: message ends early" {
		t.Errorf("got %v", err)
	}
}

// TestEncodingDoesNotWrite checks that encoding does not write to the record,
// so that several connections can encode the same record concurrently.
func TestEncodingDoesNotWrite(t *testing.T) {
	job := model.Job{BillableTRES: math.Nextafter(1, 2), Federated: true, TimeLimit: model.Infinite[uint32](), SubmitTime: 5}
	before := job
	c := NewEncoder(V2411, nil)
	c.Float("", &job.BillableTRES)
	c.Bool("", &job.Federated)
	c.OptUint32("", &job.TimeLimit)
	c.Time("", &job.SubmitTime)
	if job.BillableTRES != before.BillableTRES || job.TimeLimit != before.TimeLimit {
		t.Errorf("encoding changed %v to %v", before.BillableTRES, job.BillableTRES)
	}
}

// TestBitmapHas checks that the bits of a bitmap are numbered from the end of
// its text.
func TestBitmapHas(t *testing.T) {
	var b model.Bitmap
	NewDecoder(V2411, []byte("\x00\x00\x00\x05\x00\x00\x00\x050x12\x00")).Bitmap("b", &b)
	var got []int
	for i := -1; i < 8; i++ {
		if b.Has(i) {
			got = append(got, i)
		}
	}
	if diff := cmp.Diff([]int{1, 4}, got); diff != "" {
		t.Error(diff)
	}
}

// TestBitmapDigits compares random bit strings, with long runs of zeros, with
// the definition: counted from the right, digit i holds bits 4i to 4i+3. It also
// replaces each digit by bytes that are none.
func TestBitmapDigits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	decode := func(n int, text string) (v model.Bitmap, err error) {
		b := binary.BigEndian.AppendUint32(nil, uint32(n))
		b = binary.BigEndian.AppendUint32(b, uint32(len(text)+3))
		c := NewDecoder(V2411, append(append(b, "0x"...), text+"\x00"...))
		c.Bitmap("b", &v)
		return v, c.Finish()
	}
	for n := range 150 {
		digits := bytes.Repeat([]byte("0"), (n+3)/4)
		for i := range digits {
			if rng.IntN(10) == 0 {
				digits[i] = "0123456789abcdefABCDEF"[rng.IntN(22)]
			}
		}
		v, err := decode(n, string(digits))
		if err != nil || !v.Set || int(v.Len) != n || len(v.Bits) != (n+7)/8 {
			t.Fatal(n, err, v)
		}
		for i := range digits {
			value, _ := strconv.ParseUint(string(digits[len(digits)-1-i]), 16, 8)
			if got := v.Bits[i/2] >> (4 * (i % 2)) & 0xf; uint64(got) != value {
				t.Fatalf("%s: digit %d is %x", digits, i, got)
			}
			for _, wrong := range []byte{0, '/', ':', '@', 'G', '`', 'g', 0x10, 0xff} {
				bad := bytes.Clone(digits)
				bad[i] = wrong
				if _, err := decode(n, string(bad)); !errors.Is(err, ErrBitString) {
					t.Fatalf("%q: %v", bad, err)
				}
			}
		}
	}
}

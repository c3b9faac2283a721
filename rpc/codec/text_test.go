package codec

import (
	"bytes"
	"testing"

	"schedrestd/model"
)

// TestElement checks how "" is sent: as empty text for an element of a list,
// and as null for a field. Both must be decoded to "".
func TestElement(t *testing.T) {
	for _, tt := range []struct {
		name string
		walk func(*Codec, *string)
		text string
		want []byte
	}{
		{"a field", func(c *Codec, s *string) { c.String("", s) }, "", []byte{0, 0, 0, 0}},
		{"an element", (*Codec).Element, "", []byte{0, 0, 0, 1, 0}},
		{"an element with text", (*Codec).Element, "a", []byte{0, 0, 0, 2, 'a', 0}},
	} {
		e := NewEncoder(Newest, nil)
		tt.walk(e, &tt.text)
		if !bytes.Equal(e.Bytes(), tt.want) {
			t.Errorf("%s: sent as %v, want %v", tt.name, e.Bytes(), tt.want)
		}
		got := "before"
		d := NewDecoder(Newest, e.Bytes())
		if tt.walk(d, &got); d.Finish() != nil || got != tt.text {
			t.Errorf("%s: read as %q, %v, want %q", tt.name, got, d.Finish(), tt.text)
		}
	}
}

// TestText checks that a text that is set to empty text differs on the wire
// from one that is unset. A controller removes the value of a field for the
// former, and leaves it as it is for the latter.
func TestText(t *testing.T) {
	for _, tt := range []struct {
		name string
		text model.Text
		wire []byte
	}{
		{"unset", "", []byte{0, 0, 0, 0}},
		{"emptied", model.SetText(""), []byte{0, 0, 0, 1, 0}},
		{"set", model.SetText("ab"), []byte{0, 0, 0, 3, 'a', 'b', 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := NewEncoder(Newest, nil)
			e.Text("t", &tt.text)
			if got := e.Bytes(); !bytes.Equal(got, tt.wire) {
				t.Errorf("encoded as % x, want % x", got, tt.wire)
			}
			got := model.Text("before")
			d := NewDecoder(Newest, tt.wire)
			if d.Text("t", &got); d.Finish() != nil || got != tt.text {
				t.Errorf("decoded as %q, %v", string(got), d.Err())
			}
		})
	}
}

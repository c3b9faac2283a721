package munge

import (
	"bytes"
	"testing"
)

// FuzzAnswer parses arbitrary bytes as munged's answers. The parsers must not
// panic, and every credential that they return must be well-formed.
func FuzzAnswer(f *testing.F) {
	f.Add(encoded(credential + "\x00"))
	f.Add(decoded(10, "pay"))
	f.Add(framed(encodeResponse, append(words(1, "no"), long("")...)))
	f.Add(framed(decodeResponse, append(words(Replayed, "again"), decoded(1, "x")[13:]...)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if answer, err := receive(bytes.NewReader(b), encodeResponse); err == nil {
			if text, err := parseEncoded(answer); err == nil && (!wellFormed(text) || len(text) > len(answer)) {
				t.Errorf("%q is taken for a credential", text)
			}
		}
		if answer, err := receive(bytes.NewReader(b), decodeResponse); err == nil {
			if d, err := parseDecoded(answer); err == nil && (d.UID == Anyone || len(d.Payload) > len(answer)) {
				t.Errorf("%+v is taken for a user's", d)
			}
		}
	})
}

package table

import (
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// An Escaper makes a text of any length safe for a terminal, and writes it to W. It
// escapes what printable.Text escapes, except line feeds, tabs and carriage returns:
// with those, progress bars write over their own line. A character may arrive in
// several parts.
type Escaper struct {
	W io.Writer

	rest []byte // the beginning of a character
	out  []byte
}

// Write writes the characters of p that are complete.
func (w *Escaper) Write(p []byte) (int, error) {
	text := append(w.rest, p...)
	n := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				n -= i
			}
			break
		}
	}
	if err := w.write(text[:n]); err != nil {
		return 0, err
	}
	w.rest = append(w.rest[:0], text[n:]...)
	return len(p), nil
}

// Flush writes what is there of the last character.
func (w *Escaper) Flush() error {
	rest := w.rest
	w.rest = nil
	return w.write(rest)
}

func (w *Escaper) write(text []byte) error {
	w.out = w.out[:0]
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			w.out = append(w.out, '\\', 'x', hex[text[0]>>4], hex[text[0]&15])
		case r == '\n' || r == '\t' || r == '\r' || unicode.IsPrint(r):
			w.out = append(w.out, text[:size]...)
		default:
			q := strconv.QuoteRuneToASCII(r)
			w.out = append(w.out, q[1:len(q)-1]...)
		}
		text = text[size:]
	}
	if len(w.out) == 0 {
		return nil
	}
	_, err := w.W.Write(w.out)
	return err
}

const hex = "0123456789abcdef"

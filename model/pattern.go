package model

import (
	"strconv"
	"strings"
)

// maxPadding is the maximum number of zeros that ExpandPattern inserts, so that
// "%9999999999j" does not exhaust the memory.
const maxPadding = 10

// ExpandPattern replaces the placeholders in a file name, such as %j. word
// returns the text for the letter of a placeholder. If a number precedes the
// letter, the text is padded with zeros to this width. %% stands for a percent
// sign. Unknown placeholders stay unchanged.
func ExpandPattern(pattern string, word func(letter byte) (text string, known bool)) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(pattern, "%")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
		if digits == len(after) {
			b.WriteString("%" + after)
			return b.String()
		}
		letter := after[digits]
		text, known := "%", letter == '%'
		if !known {
			text, known = word(letter)
		}
		if known {
			width, _ := strconv.Atoi(after[:digits]) // the maximum int if the number is too large
			b.WriteString(strings.Repeat("0", max(0, min(width, maxPadding)-len(text))))
			b.WriteString(text)
		} else {
			b.WriteString("%" + after[:digits+1])
		}
		pattern = after[digits+1:]
	}
}

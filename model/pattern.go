package model

import (
	"strconv"
	"strings"
)

// maxPadding is the maximum width to which ExpandPattern pads a text with
// zeros. It prevents "%9999999999j" from using up all memory.
const maxPadding = 10

// ExpandPattern replaces placeholders, such as %j, in a file name. It calls
// word with the letter of each placeholder, and inserts the text that word
// returns. If a number precedes the letter, zeros pad the text to that width.
// %% becomes a percent sign. Unknown placeholders stay unchanged.
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

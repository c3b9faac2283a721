package model

import (
	"strconv"
	"strings"
)

// maxPadding is the maximum width to which ExpandPattern pads a text with
// zeros. It prevents "%9999999999j" from using up all memory.
const maxPadding = 10

// MaxExpanded is the maximum length in bytes of a file name after ExpandPattern
// has replaced its placeholders. It is PATH_MAX, so the kernel opens no file
// with a longer name.
const MaxExpanded = 4096

// ExpandPattern replaces placeholders, such as %j, in a file name. It calls
// word with the letter of each placeholder, and inserts the text that word
// returns. If a number precedes the letter, zeros pad the text to that width.
// %% becomes a percent sign. Unknown placeholders stay unchanged. If the result
// would be longer than MaxExpanded, ExpandPattern returns the pattern and false:
// otherwise 4 KB of "%x" could become megabytes in each list of jobs.
func ExpandPattern(pattern string, word func(letter byte) (text string, known bool)) (expanded string, ok bool) {
	var b strings.Builder
	for rest := pattern; ; {
		before, after, found := strings.Cut(rest, "%")
		b.WriteString(before)
		digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
		if digits == len(after) { // also if there is no percent sign
			if found {
				b.WriteString("%" + after)
			}
			if b.Len() > MaxExpanded {
				return pattern, false
			}
			return b.String(), true
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
		if b.Len() > MaxExpanded {
			return pattern, false
		}
		rest = after[digits+1:]
	}
}

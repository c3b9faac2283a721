package conf

import (
	"fmt"
	"strings"
)

// pairs cuts a logical line into its Key=Value pairs. Blanks may stand around the
// "="; a value ends at a blank unless it is in double quotes. What is wrong is
// said by its column, never by its text, which may be part of a password.
func pairs(line string) ([]Pair, error) {
	var out []Pair
	for at := skip(line, 0); at < len(line); at = skip(line, at) {
		end := at
		for end < len(line) && keyByte(line[end]) {
			end++
		}
		equals := skip(line, end)
		if end == at || equals >= len(line) || line[equals] != '=' {
			return out, fmt.Errorf("column %d: want Key=Value", at+1)
		}
		key := line[at:end]
		value, next, err := value(line, skip(line, equals+1))
		if err != nil {
			return out, fmt.Errorf("%s: %w", key, err)
		}
		out = append(out, Pair{key, value})
		at = next
	}
	return out, nil
}

// value reads the value that begins at, and says where the next pair may begin.
func value(line string, at int) (text string, next int, err error) {
	if at < len(line) && line[at] == '"' {
		length := strings.IndexByte(line[at+1:], '"')
		if length < 0 {
			return "", 0, fmt.Errorf("column %d: the quote is not closed", at+1)
		}
		next = at + length + 2
		if next < len(line) && !blank(line[next]) {
			return "", 0, fmt.Errorf("column %d: text after the closing quote", next+1)
		}
		return line[at+1 : next-1], next, nil
	}
	next = at
	for next < len(line) && !blank(line[next]) {
		next++
	}
	if next == at {
		return "", 0, fmt.Errorf("no value")
	}
	return line[at:next], next, nil
}

func skip(line string, at int) int {
	for at < len(line) && blank(line[at]) {
		at++
	}
	return at
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

func keyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.'
}

// fold is the form of a key in which two spellings of the same case compare equal.
func fold(key string) string { return strings.ToLower(key) }

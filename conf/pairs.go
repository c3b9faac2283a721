package conf

import (
	"fmt"
	"strings"
)

// parsePairs splits a logical line into its Key=Value pairs, as Slurm does.
// Spaces may surround the "=". A value ends at a space unless it is in double
// quotes. An arithmetic sign before the "=" ("Key+=Value") is ignored. Errors
// name the column or the key, but never quote a value, because it may be part
// of a password.
func parsePairs(line string) ([]Pair, error) {
	var out []Pair
	for at := skipBlanks(line, 0); at < len(line); at = skipBlanks(line, at) {
		end := at
		for end < len(line) && isKeyByte(line[end]) {
			end++
		}
		equals := skipBlanks(line, end)
		if equals < len(line) && strings.IndexByte("+-*/", line[equals]) >= 0 {
			equals++
		}
		if end == at || equals >= len(line) || line[equals] != '=' {
			return out, fmt.Errorf("column %d: want Key=Value", at+1)
		}
		text, next := parseValue(line, skipBlanks(line, equals+1))
		if text == "" && next == len(line) && line[next-1] != '"' {
			return out, fmt.Errorf("%s: no value", line[at:end])
		}
		out = append(out, Pair{line[at:end], text})
		at = next
	}
	return out, nil
}

// parseValue parses the value that begins at line[at]. It also returns the
// index at which the next pair may begin. If quotes do not surround the whole
// value, they are part of it, and the value ends at the first space.
func parseValue(line string, at int) (text string, next int) {
	if at < len(line) && line[at] == '"' {
		length := strings.IndexByte(line[at+1:], '"')
		if next = at + length + 2; length >= 0 && (next == len(line) || isBlank(line[next])) {
			return line[at+1 : next-1], next
		}
	}
	next = at
	for next < len(line) && !isBlank(line[next]) {
		next++
	}
	return line[at:next], next
}

func skipBlanks(line string, at int) int {
	for at < len(line) && isBlank(line[at]) {
		at++
	}
	return at
}

// isBlank reports whether Slurm treats c as white space.
func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isKeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.'
}

// fold returns a key in lower case, for comparisons.
func fold(key string) string { return strings.ToLower(key) }

package model

import (
	"strconv"
	"strings"
)

// PathRules are the rules by which slurmd replaces the patterns in the names of
// the files of a batch job. They differ in what they do with a pattern that they
// do not know.
type PathRules uint8

// The rules of Slurm 25.11 and later, and those of earlier releases.
const (
	NewPathRules PathRules = iota
	OldPathRules
)

// maxPadding is the maximum width to which numbers in file names are padded.
const maxPadding = 10

// MaxExpanded is the maximum length in bytes of a file name after ExpandPath
// has replaced its patterns. It is PATH_MAX, so the kernel opens no file with a
// longer name.
const MaxExpanded = 4096

// ExpandPath returns the path of the file that a job with a working directory
// opens for a pattern such as "%x-%4j.out". It calls word with each letter and the
// width before it, 0 if there is none. The function word returns the text for
// the letter, and reports whether slurmd knows the letter. A backslash in the
// pattern switches all other patterns off. If the result would be longer than
// MaxExpanded, ExpandPath returns the pattern, and false: otherwise 4 KB of "%x"
// could become megabytes in each list of jobs.
func (r PathRules) ExpandPath(directory, pattern string, word func(letter byte, width int) (text string, known bool)) (path string, ok bool) {
	e := expansion{word: word}
	escaped := strings.Contains(pattern, `\`)
	if !strings.HasPrefix(pattern, "/") {
		e.WriteString(directory)
		if !strings.HasSuffix(directory, "/") && !(escaped && r == OldPathRules) {
			e.WriteByte('/')
		}
	}
	switch {
	case r == OldPathRules && isTaskNumber(pattern):
		return "/dev/null", true
	case escaped && r == OldPathRules:
		e.WriteString(withoutEscapes(pattern))
	case escaped:
		e.WriteString(strings.ReplaceAll(pattern, `\`, ""))
	case r == OldPathRules:
		e.expandOld(pattern)
	default:
		e.expandNew(pattern)
	}
	if e.Len() > MaxExpanded {
		return pattern, false
	}
	return e.String(), true
}

// PadNumber returns a number, to which zeros are added on the left up to width.
func PadNumber(n uint32, width int) string {
	text := strconv.FormatUint(uint64(n), 10)
	return strings.Repeat("0", max(0, min(width, maxPadding)-len(text))) + text
}

type expansion struct {
	strings.Builder
	word func(letter byte, width int) (text string, known bool)
}

// cutWidth returns the width at the beginning of s, and what comes after it. If s
// begins with no digit, the width is 0.
func cutWidth(s string) (width int, digits, rest string) {
	rest = strings.TrimLeft(s, "0123456789")
	digits = s[:len(s)-len(rest)]
	width, _ = strconv.Atoi(digits) // the maximum int if the number is too large
	return min(width, maxPadding), digits, rest
}

// expandNew keeps an unknown pattern as it is, and drops a percent sign at the
// end (expand_stdio_fields in Slurm 25.11).
func (e *expansion) expandNew(pattern string) {
	for e.Len() <= MaxExpanded {
		before, after, found := strings.Cut(pattern, "%")
		e.WriteString(before)
		width, digits, rest := cutWidth(after)
		switch {
		case !found:
			return
		case rest == "":
			if digits != "" {
				e.WriteString("%" + digits)
			}
			return
		}
		text, known := e.word(rest[0], width)
		switch {
		case digits == "" && rest[0] == '%':
			e.WriteByte('%')
		case known:
			e.WriteString(text)
		default:
			e.WriteString("%" + digits + rest[:1])
		}
		pattern = rest[1:]
	}
}

// expandOld keeps an unknown pattern, but of its width only the last digit
// (fname_create in slurmd of Slurm 25.05).
func (e *expansion) expandOld(pattern string) {
	for e.Len() <= MaxExpanded {
		before, after, found := strings.Cut(pattern, "%")
		e.WriteString(before)
		if !found {
			return
		}
		width, digits, rest := cutWidth(after)
		if digits == "" && strings.HasPrefix(rest, "%") {
			e.WriteByte('%')
			pattern = rest[1:]
			continue
		}
		if rest != "" {
			if text, known := e.word(rest[0], width); known {
				e.WriteString(text)
				pattern = rest[1:]
				continue
			}
		}
		if digits == "" {
			e.WriteByte('%')
		} else {
			e.WriteByte(digits[len(digits)-1])
		}
		pattern = rest // which may begin with a percent sign
	}
}

// isTaskNumber reports whether a pattern is a number other than 0. Slurm before
// 25.11 takes it for the only task whose output is wanted.
func isTaskNumber(pattern string) bool {
	n, err := strconv.ParseUint(pattern, 10, 31)
	return err == nil && n != 0
}

// withoutEscapes removes backslashes. Two of them become one.
func withoutEscapes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			if i++; i == len(s) || s[i] != '\\' {
				i--
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

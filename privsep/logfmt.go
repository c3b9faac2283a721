package privsep

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"schedrestd/ipc"
)

// Bounds of a line that is taken apart. What has more is one text.
const (
	maxPairs = 48
	maxKey   = 64 // bytes
)

// entry is what a worker logged: one line of it.
type entry struct {
	level slog.Level
	msg   string
	attrs []slog.Attr
}

// readEntry takes a line of a worker apart. A well-formed one is flat logfmt as
// worker/log.go writes it: level=LEVEL msg=TEXT and then key=value, with one space between,
// a value either a quoted Go string or without spaces and quotes. Anything else, as what
// the Go runtime says when it panics, or what was cut because it is too long, is one text, and
// trouble.
func readEntry(line string) entry {
	if len(line) < maxLine {
		if e, ok := parseEntry(line); ok {
			return e
		}
	}
	return entry{level: slog.LevelError, msg: printable(line)}
}

func parseEntry(line string) (e entry, ok bool) {
	level, rest, ok := cutPair(line, slog.LevelKey)
	if !ok || e.level.UnmarshalText([]byte(level)) != nil {
		return e, false
	}
	e.level = min(e.level, slog.LevelError)
	msg, rest, ok := cutPair(rest, slog.MessageKey)
	if !ok {
		return e, false
	}
	e.msg = printable(msg)
	if rest != "" {
		e.attrs = make([]slog.Attr, 0, 12) // as many as a request's line has
	}
	for n := 0; rest != ""; n++ {
		var key, value string
		if key, value, rest, ok = cutNext(rest); !ok || n == maxPairs {
			return e, false
		}
		// The first one counts: a reader that takes the last one can't be told another story.
		if !reserved(key) && !e.has(key) {
			e.attrs = append(e.attrs, slog.String(key, printable(value)))
		}
	}
	return e, true
}

// labelSize is what the parent puts before a line, and the keys around it, in bytes.
const labelSize = 100

// size is what the entry takes in the log, in bytes; what is quoted there once more may have twice as many.
func (e *entry) size() int {
	n := labelSize
	add := func(s string) {
		n += len(s)
		if strings.ContainsAny(s, "\\\"") {
			n += len(s)
		}
	}
	add(e.msg)
	for _, a := range e.attrs {
		add(a.Key)
		add(a.Value.String())
	}
	return n
}

func (e *entry) has(key string) bool {
	return slices.ContainsFunc(e.attrs, func(a slog.Attr) bool { return a.Key == key })
}

// reserved tells whether key is one of the parent's: with it a captured worker could put
// its words into another's mouth.
func reserved(key string) bool {
	return slices.ContainsFunc(reservedKeys, func(r string) bool { return strings.EqualFold(key, r) })
}

var reservedKeys = func() []string {
	keys := []string{slog.TimeKey, slog.LevelKey, slog.MessageKey, slog.SourceKey}
	for role := ipc.Worker; role != 0; role <<= 1 { // and whoever comes after those that there are
		for _, a := range label(role, 0, 0, 0) {
			keys = append(keys, a.Key)
		}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return !isKey(key) })
}()

// label is what the parent says of a process, beside each line that it logs.
func label(role ipc.Role, number uint32, pid int, uid uint32) []slog.Attr {
	name := role.String()
	return []slog.Attr{slog.Uint64(name, uint64(number)), slog.Int(name+"_pid", pid), slog.Uint64(name+"_uid", uint64(uid))}
}

// cutPair cuts the pair of the given key off the start of s.
func cutPair(s, want string) (value, rest string, ok bool) {
	key, value, rest, ok := cutNext(s)
	return value, rest, ok && key == want
}

// cutNext cuts one pair off the start of s, and the space behind it.
func cutNext(s string) (key, value, rest string, ok bool) {
	key, s, ok = strings.Cut(s, "=")
	if !ok || !isKey(key) {
		return "", "", "", false
	}
	if strings.HasPrefix(s, `"`) {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", "", false
		}
		value, err = strconv.Unquote(quoted)
		if err != nil {
			return "", "", "", false
		}
		rest = s[len(quoted):]
	} else {
		end := strings.IndexAny(s, ` ="`)
		if end < 0 {
			end = len(s)
		}
		value, rest = s[:end], s[end:]
		if value == "" {
			return "", "", "", false
		}
	}
	if rest == "" {
		return key, value, "", true
	}
	if rest[0] != ' ' || len(rest) == 1 {
		return "", "", "", false
	}
	return key, value, rest[1:], true
}

// isKey tells whether s is a name as ours are: letters, digits, dot, hyphen and
// underscore, a letter first.
func isKey(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || !('0' <= c && c <= '9' || c == '.' || c == '-' || c == '_')) {
			return false
		}
	}
	return s != "" && len(s) <= maxKey
}

package privsep

import (
	"regexp"
	"strconv"
)

// relayedLine matches a line in the parent's log that comes from another
// process.
var relayedLine = regexp.MustCompile(`^time=\S+ (worker|keeper|resolver|auditor|credential)=(\d+) \w+_pid=(\d+) \w+_uid=(\d+) (.*)$`)

// The pattern field matches one field of a line, as package slog writes it.
var field = regexp.MustCompile(`^([A-Za-z][-.\w]*)=("(?:[^"\\]|\\.)*"|[^ ="]*)(?: |$)`)

// relayed returns the fields of a line that the parent relayed, or nil for
// other lines. It puts the role before the message, as in "worker: serving". If
// the rest of the line does not have the format of package slog, the whole rest
// becomes the message.
func relayed(line string) map[string]any {
	m := relayedLine.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	role, rest := m[1], m[5]
	r := map[string]any{"msg": role + ": " + rest} // for a line without fields
	fields := map[string]any{}
	for rest != "" {
		f := field.FindStringSubmatch(rest)
		if f == nil {
			fields = nil
			break
		}
		value := f[2]
		if v, err := strconv.Unquote(value); err == nil {
			value = v
		}
		if _, twice := fields[f[1]]; !twice {
			fields[f[1]] = value
		}
		rest = rest[len(f[0]):]
	}
	if msg, ok := fields["msg"]; ok {
		r = fields
		r["msg"] = role + ": " + msg.(string)
	}
	for i, key := range []string{role, role + "_pid", role + "_uid"} {
		n, _ := strconv.ParseFloat(m[2+i], 64) // a float64, like numbers in the parent's own records
		r[key] = n
	}
	r["raw"] = line
	return r
}

package auditor

import (
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// A line of the audit log is a JSON object. It contains an object with facts
// from the parent and the kernel, and another object with values that the
// worker sent. These values can't be trusted, because an attacker may control
// the worker.

// Events of the audit log.
const (
	eventIntent  = "intent"
	eventOutcome = "outcome"
)

// Ways in which a change ended, as far as the auditor knows.
const (
	endReported = "reported" // the worker reported the outcome
	endUnknown  = "unknown"  // the worker exited without reporting; the change may have been made
	endNotMade  = "not_made" // the change was refused after its intent was written
)

// auditText is the maximum length in bytes of each text that a worker sends for
// the log. The protocol's limit is lower.
const auditText = 1024

// auditLine is a JSON object that is being written.
type auditLine struct{ b []byte }

func (l *auditLine) key(name string) {
	if last := l.b[len(l.b)-1]; last != '{' {
		l.b = append(l.b, ',')
	}
	l.b = append(append(append(l.b, '"'), name...), '"', ':')
}

func (l *auditLine) text(name, value string) {
	l.key(name)
	l.b = appendJSON(l.b, value)
}

func (l *auditLine) number(name string, value uint64) {
	l.key(name)
	l.b = strconv.AppendUint(l.b, value, 10)
}

func (l *auditLine) flag(name string, value bool) {
	l.key(name)
	l.b = strconv.AppendBool(l.b, value)
}

func (l *auditLine) begin(name string) {
	l.key(name)
	l.b = append(l.b, '{')
}

func (l *auditLine) end() { l.b = append(l.b, '}') }

// change holds the facts about a change that are known from its intent on.
type change struct {
	id     string // id of the change in the log
	facts  ipc.Connection
	worker work.Client
	said   *query.Intent
}

// intent returns the line written before the change.
func (c *change) intent(now time.Time) []byte {
	l := c.start(now, eventIntent)
	l.end()
	c.words(l)
	l.end()
	l.end()
	return append(l.b, '\n')
}

// outcome returns the line written after the change. The argument ended is
// endReported, endUnknown or endNotMade. The reason, if any, is in because. The
// worker's report, if any, is in o.
func (c *change) outcome(now time.Time, ended, because string, o *query.Outcome) []byte {
	l := c.start(now, eventOutcome)
	l.text("ended", ended)
	if because != "" {
		l.text("because", because)
	}
	l.end()
	c.words(l)
	if o != nil {
		l.number("status", uint64(o.Status))
		l.text("code", o.Code)
		if o.Number != 0 {
			l.number("error_number", uint64(o.Number))
		}
		if o.Result != "" {
			l.text("result", o.Result)
		}
	}
	l.end()
	l.end()
	return append(l.b, '\n')
}

// start begins a line with the members that do not come from the worker. It
// leaves the line and its object "gateway" open, so that the caller can add to
// them.
func (c *change) start(now time.Time, event string) *auditLine {
	l := &auditLine{make([]byte, 1, 1024)}
	l.b[0] = '{'
	l.text("time", now.UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
	l.text("event", event)
	l.text("change", c.id)
	l.begin("gateway")
	l.text("listener", c.facts.Listener)
	l.text("network", c.facts.Network.String())
	l.flag("tls", c.facts.TLS)
	if c.facts.Addr != "" {
		l.text("peer", c.facts.Addr)
	}
	if c.facts.UID != ipc.NoID {
		l.number("peer_uid", uint64(c.facts.UID))
		l.number("peer_gid", uint64(c.facts.GID))
		if c.facts.PID > 0 {
			l.number("peer_pid", uint64(c.facts.PID))
		}
		l.flag("peer_vouched", c.facts.Verified)
	}
	l.number("connection", c.facts.ID)
	l.number("worker", uint64(c.worker.Number))
	l.number("worker_pid", uint64(c.worker.PID))
	l.number("worker_uid", uint64(c.worker.UID))
	return l
}

// words adds the object "worker" with the values that the worker sent, and
// leaves it open.
func (c *change) words(l *auditLine) {
	l.begin("worker")
	l.text("request", c.said.Request)
	if c.said.Forwarded != "" {
		l.text("forwarded_for", c.said.Forwarded)
	}
	if c.said.User != "" {
		l.text("user", c.said.User)
	}
	if c.said.UID != ipc.NoID {
		l.number("uid", uint64(c.said.UID))
	}
	if c.said.ActAs != "" {
		l.text("act_as", c.said.ActAs)
	}
	l.text("method", c.said.Method)
	l.text("route", c.said.Route)
	if c.said.Object != "" {
		l.text("object", c.said.Object)
	}
	if c.said.Fields != "" {
		l.text("fields", c.said.Fields)
	}
}

// appendJSON appends s as a JSON string. It replaces invalid UTF-8 by U+FFFD,
// and escapes characters that can't be printed. It shortens a text that is too
// long and appends "…". So whatever the worker sent, the result stays one valid
// line and is safe to show on a terminal.
func appendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if i += size; i > auditText {
			b = append(b, "…"...)
			break
		}
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == utf8.RuneError && size <= 1, !unicode.IsPrint(r):
			b = appendEscaped(b, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// appendEscaped appends r as \uXXXX. If r is beyond U+FFFF, it appends two such
// escapes, a surrogate pair.
func appendEscaped(b []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	if r > 0xffff {
		r -= 0x10000
		return appendEscaped(appendEscaped(b, 0xd800+r>>10), 0xdc00+r&0x3ff)
	}
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

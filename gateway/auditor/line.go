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

// Each line of the audit log is a JSON object with two nested objects. The
// object "gateway" contains facts from the dispatcher and the kernel. The
// object "worker" contains values that the worker sent. These values can't be
// trusted, because an attacker may control the worker.

// Events of the audit log.
const (
	eventIntent  = "intent"
	eventOutcome = "outcome"
)

// The auditor's knowledge about the outcome of a change.
const (
	endReported = "reported" // the worker reported the outcome
	endUnknown  = "unknown"  // the worker exited without a report; the change may have been made
	endNotMade  = "not_made" // the change was not made, although its intent may be in the log
)

// maxText is the maximum length, in bytes, of a worker's text in the log. The
// protocol's limits are lower.
const maxText = 1024

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

func (l *auditLine) beginObject(name string) {
	l.key(name)
	l.b = append(l.b, '{')
}

func (l *auditLine) endObject() { l.b = append(l.b, '}') }

// change is a change that a worker has announced.
type change struct {
	id     string // id of the change in the log
	facts  ipc.Connection
	worker work.WorkerChannel
	msg    *query.Intent
}

// intentLine returns the line that is written before the change.
func (c *change) intentLine(now time.Time) []byte {
	l := c.startLine(now, eventIntent)
	l.endObject()
	c.beginWorker(l)
	l.endObject()
	l.endObject()
	return append(l.b, '\n')
}

// outcomeLine returns the line that records how a change ended. The argument
// end is endReported, endUnknown or endNotMade. reason is "" if there is none.
// o is the worker's report, or nil if there is none.
func (c *change) outcomeLine(now time.Time, end, reason string, o *query.Outcome) []byte {
	l := c.startLine(now, eventOutcome)
	l.text("ended", end)
	if reason != "" {
		l.text("because", reason)
	}
	l.endObject()
	c.beginWorker(l)
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
	l.endObject()
	l.endObject()
	return append(l.b, '\n')
}

// startLine returns the first part of a line: the members that don't come from
// the worker. The object "gateway" is still open. The caller can add members to
// this object, and has to close the object and the line.
func (c *change) startLine(now time.Time, event string) *auditLine {
	l := &auditLine{make([]byte, 1, 1024)}
	l.b[0] = '{'
	l.text("time", now.UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
	l.text("event", event)
	l.text("change", c.id)
	l.beginObject("gateway")
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
		l.flag("peer_verified", c.facts.Verified)
	}
	l.number("connection", c.facts.ID)
	l.number("worker", uint64(c.worker.Number))
	l.number("worker_pid", uint64(c.worker.PID))
	l.number("worker_uid", uint64(c.worker.UID))
	return l
}

// beginWorker begins the object "worker" and adds the values that the worker
// sent. The caller has to close the object.
func (c *change) beginWorker(l *auditLine) {
	l.beginObject("worker")
	l.text("request", c.msg.Request)
	if c.msg.Forwarded != "" {
		l.text("forwarded_for", c.msg.Forwarded)
	}
	if c.msg.User != "" {
		l.text("user", c.msg.User)
	}
	if c.msg.UID != ipc.NoID {
		l.number("uid", uint64(c.msg.UID))
	}
	if c.msg.Token != "" {
		l.text("gateway_token", c.msg.Token)
	}
	if c.msg.ActAs != "" {
		l.text("act_as", c.msg.ActAs)
	}
	l.text("method", c.msg.Method)
	l.text("route", c.msg.Route)
	if c.msg.Object != "" {
		l.text("object", c.msg.Object)
	}
	if c.msg.Fields != "" {
		l.text("fields", c.msg.Fields)
	}
}

// appendJSON appends s as a JSON string. It truncates a long text, replaces
// invalid UTF-8 with U+FFFD, and escapes unprintable characters. So whatever
// the worker sent, the log line is valid JSON and is safe to show on a
// terminal.
func appendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if i += size; i > maxText {
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

// appendEscaped appends r as \uXXXX, or as a surrogate pair of two such escapes
// if r is above U+FFFF.
func appendEscaped(b []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	if r > 0xffff {
		r -= 0x10000
		return appendEscaped(appendEscaped(b, 0xd800+r>>10), 0xdc00+r&0x3ff)
	}
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

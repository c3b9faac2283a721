// Package logger writes a worker's log lines to its standard error, which the
// dispatcher reads.
package logger

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// maxText is the maximum length of a log attribute, in bytes. The dispatcher
// truncates lines at 2 KiB.
const maxText = 1500

// A handler writes each record as one line that begins with its level. The
// dispatcher adds the time and the identity of the worker, because a worker
// could forge them (gateway/dispatcher/relay).
//
// Waking the dispatcher for each request would cost more than the line itself.
// So lines are collected for a moment and written together. A line of level
// Warn or above is written immediately, together with all buffered lines.
type handler struct {
	slog.Handler
	lines *Lines
}

// New returns a handler that writes the records from the given level on to out.
func New(out *Lines, level slog.Level) slog.Handler {
	return handler{slog.NewTextHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: replaceAttr}), out}
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		h.lines.Flush()
	}
	return err
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.lines}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.lines}
}

const (
	maxWait     = 20 * time.Millisecond
	maxBuffered = 8 << 10 // maximum number of buffered bytes
)

// Lines buffers whole lines and writes them together.
type Lines struct {
	out io.Writer

	mu             sync.Mutex // guards the fields below, and the order of writes to out
	buf            []byte
	flushScheduled bool
}

// NewLines returns Lines that are written to out.
func NewLines(out io.Writer) *Lines { return &Lines{out: out} }

// Write buffers one line.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, p...)
	switch {
	case len(l.buf) >= maxBuffered:
		l.sendLocked()
	case !l.flushScheduled:
		l.flushScheduled = true
		time.AfterFunc(maxWait, l.Flush)
	}
	return len(p), nil
}

// Flush writes the buffered lines.
func (l *Lines) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushScheduled = false
	l.sendLocked()
}

// sendLocked writes the buffered lines. It drops errors, because there is no
// place to report them.
func (l *Lines) sendLocked() {
	if len(l.buf) > 0 {
		_, _ = l.out.Write(l.buf)
		l.buf = l.buf[:0]
	}
}

// replaceAttr omits the time and truncates long values.
func replaceAttr(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	switch v := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(truncate(v))
	case error:
		a.Value = slog.StringValue(truncate(v.Error()))
	}
	return a
}

func truncate(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.Clone(s[:end]) + "…"
}

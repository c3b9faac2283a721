package worker

import (
	"io"
	"log/slog"
	"strings"
	"unicode/utf8"
)

// maxText is how much of one attribute is written, in bytes: the parent reads lines
// of 2 KiB, and one that is longer is a sentence to it, not fields.
const maxText = 1500

// newLog writes each record to fd 2 as one line of flat logfmt, level first, with one
// system call. The parent reads it back and adds the time, the worker and its identity, which
// are not the worker's to say (privsep/logfmt.go).
func newLog(out io.Writer, level slog.Level) slog.Handler {
	return slog.NewTextHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: fit})
}

// fit leaves out the time and cuts what is too long.
func fit(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	switch v := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(cut(v))
	case error:
		a.Value = slog.StringValue(cut(v.Error()))
	}
	return a
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.Clone(s[:end]) + "…"
}

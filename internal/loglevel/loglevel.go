// Package loglevel creates the gateway's logger.
package loglevel

import (
	"io"
	"log/slog"
)

// Verbose is the level between info and debug.
const Verbose slog.Level = -2

// New returns a logger that writes to w, as JSON if format is "json", and
// otherwise as text. The logger drops messages below level. The caller may
// change level later.
func New(format string, w io.Writer, level *slog.LevelVar) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: formatAttr}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// formatAttr formats durations as text. It also formats the level Verbose,
// which slog can't name, as VERBOSE.
func formatAttr(groups []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.String())
	}
	if l, ok := a.Value.Any().(slog.Level); ok && l == Verbose && a.Key == slog.LevelKey && len(groups) == 0 {
		a.Value = slog.StringValue("VERBOSE")
	}
	return a
}

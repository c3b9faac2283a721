// Package loglevel creates the gateway's logger.
package loglevel

import (
	"io"
	"log/slog"
)

// Verbose is the level between info and debug.
const Verbose slog.Level = -2

// New returns a logger that writes to w, from a level that can change.
func New(w io.Writer, from *slog.LevelVar) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: from, ReplaceAttr: named}))
}

// named writes the name of the level that slog does not have.
func named(groups []string, a slog.Attr) slog.Attr {
	if a.Key != slog.LevelKey || len(groups) > 0 {
		return a
	}
	if l, ok := a.Value.Any().(slog.Level); ok && l == Verbose {
		a.Value = slog.StringValue("VERBOSE")
	}
	return a
}

// Package loglevel names the levels of the gateway's log, and makes it.
package loglevel

import (
	"io"
	"log/slog"
	"strings"
)

// Levels is how much can be logged, by the number and the name that Slurm's configuration and
// SCHEDRESTD_DEBUG have for it. Each includes those before it; -v is one step from info on. Nothing
// is logged below debug, as the manual says: the levels of Slurm's that are there are taken only.
var Levels = []struct {
	Name  string
	Level slog.Level
}{
	{"quiet", 127}, // nothing
	{"fatal", 12},
	{"error", slog.LevelError},
	{"info", slog.LevelInfo}, // warnings and a line for each request, too
	{"verbose", Verbose},
	{"debug", slog.LevelDebug},
	{"debug2", -5},
	{"debug3", -6},
	{"debug4", -7},
	{"debug5", -8},
}

// Info is the place of info in Levels.
const Info = 3

// Verbose is the level between info and debug.
const Verbose slog.Level = -2

// New returns the log on w from a level on that can change.
func New(w io.Writer, from *slog.LevelVar) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: from, ReplaceAttr: named}))
}

// named writes the names of levels that slog has not.
func named(groups []string, a slog.Attr) slog.Attr {
	if a.Key != slog.LevelKey || len(groups) > 0 {
		return a
	}
	l, ok := a.Value.Any().(slog.Level)
	if !ok {
		return a
	}
	for _, known := range Levels {
		if known.Level == l {
			a.Value = slog.StringValue(strings.ToUpper(known.Name))
		}
	}
	return a
}

package plan

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/loglevel"
)

// levels is how much can be logged, by the number and the name that Slurm's configuration and
// SCHEDRESTD_DEBUG have for it. Each includes those before it; -v is one step from info on. Nothing
// is logged below debug, as the manual says: the levels of Slurm's that are there are taken only.
var levels = []struct {
	Name  string
	Level slog.Level
}{
	{"quiet", 127}, // nothing
	{"fatal", 12},
	{"error", slog.LevelError},
	{"info", slog.LevelInfo}, // warnings and a line for each request, too
	{"verbose", loglevel.Verbose},
	{"debug", slog.LevelDebug},
	{"debug2", -5},
	{"debug3", -6},
	{"debug4", -7},
	{"debug5", -8},
}

// infoLevel is the place of info in levels.
const infoLevel = 3

// level is a level that was chosen, or not.
type level struct {
	slog.Level
	chosen bool
}

// parseLevel reads the value of SCHEDRESTD_DEBUG.
func parseLevel(v string) (level, error) {
	for i, l := range levels {
		if v == strconv.Itoa(i) || strings.EqualFold(v, l.Name) {
			return level{l.Level, true}, nil
		}
	}
	names := make([]string, len(levels))
	for i, l := range levels {
		names[i] = l.Name
	}
	return level{}, errs.New(errs.Invalid, "environment: SCHEDRESTD_DEBUG=%s is not a log level", v).
		WithHint("allowed values: 0 to %d, %s", len(levels)-1, strings.Join(names, ", "))
}

// level is how much is logged: what -v says, else SCHEDRESTD_DEBUG, else what this way to run has as
// its default, which debug flags raise.
func (o *options) level(usual slog.Level, c *conf.Cluster) slog.Level {
	switch {
	case o.verbose > 0:
		return levels[infoLevel+min(int(o.verbose), mostVee)].Level
	case o.debug.chosen:
		return o.debug.Level
	case concerned(o.flagsOf(c)):
		return min(usual, slog.LevelDebug)
	}
	return usual
}

// gatewayFlags are the debug flags of Slurm that concern a gateway; the others are about what
// other daemons do.
var gatewayFlags = []string{"auditrpcs", "audittls", "conmgr", "data", "network", "networkraw", "protocol", "tls"}

// flagsOf is the debug flags: the environment's, else the configuration's.
func (o *options) flagsOf(c *conf.Cluster) []string {
	if o.debugFlags != nil || c == nil {
		return o.debugFlags
	}
	return c.DebugFlags
}

func concerned(flags []string) bool {
	return slices.ContainsFunc(flags, func(f string) bool { return slices.Contains(gatewayFlags, strings.ToLower(f)) })
}

// withoutEffect is the flags that do nothing in a gateway.
func withoutEffect(flags []string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return concerned([]string{f}) })
}

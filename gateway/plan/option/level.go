package option

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"schedrestd/conf"
	"schedrestd/internal/loglevel"
)

// Levels lists the log levels, with the numbers and names that Slurm's
// configuration and SCHEDRESTD_DEBUG use. The messages of a level include those
// of all earlier levels in the list. One -v selects the level after info.
// Slurm's levels after debug are accepted, but have the effect of debug,
// because the gateway has no messages for them.
var Levels = []struct {
	Name  string
	Level slog.Level
}{
	{"quiet", 127}, // no messages
	{"fatal", 12},
	{"error", slog.LevelError},
	{"info", slog.LevelInfo}, // includes warnings, and a line for each request
	{"verbose", loglevel.Verbose},
	{"debug", slog.LevelDebug},
	{"debug2", -5},
	{"debug3", -6},
	{"debug4", -7},
	{"debug5", -8},
}

// infoLevel is the index of info in Levels.
const infoLevel = 3

// A level is a log level. The isSet field is false if the administrator has not
// chosen a level.
type level struct {
	slog.Level
	isSet bool
}

// parseLevel parses the value of the environment variable called name.
func parseLevel(name, v string) (level, error) {
	for i, l := range Levels {
		if v == strconv.Itoa(i) || strings.EqualFold(v, l.Name) {
			return level{l.Level, true}, nil
		}
	}
	names := make([]string, len(Levels))
	for i, l := range Levels {
		names[i] = l.Name
	}
	return level{}, invalid(name, v, " is not a log level").
		WithHint("allowed values: 0 to %d, %s", len(Levels)-1, strings.Join(names, ", "))
}

// Level returns the log level that -v sets. Without -v, it returns the level
// that the environment sets. If neither is set, it returns defaultLevel, or
// debug if a debug flag concerns the gateway.
func (o *Options) Level(defaultLevel slog.Level, c *conf.Cluster) slog.Level {
	switch {
	case o.Verbose > 0:
		return Levels[infoLevel+min(int(o.Verbose), MaxVerbosity)].Level
	case o.debug.isSet:
		return o.debug.Level
	case hasGatewayFlag(o.EffectiveDebugFlags(c)):
		return min(defaultLevel, slog.LevelDebug)
	}
	return defaultLevel
}

// GatewayFlags lists Slurm's debug flags that concern a gateway.
var GatewayFlags = []string{"auditrpcs", "audittls", "conmgr", "data", "network", "networkraw", "protocol", "tls"}

// EffectiveDebugFlags returns the debug flags that the environment sets. If the
// environment sets none, EffectiveDebugFlags returns the flags that the
// configuration sets.
func (o *Options) EffectiveDebugFlags(c *conf.Cluster) []string {
	if o.debugFlags != nil || c == nil {
		return o.debugFlags
	}
	return c.DebugFlags
}

func hasGatewayFlag(flags []string) bool {
	return slices.ContainsFunc(flags, func(f string) bool { return slices.Contains(GatewayFlags, strings.ToLower(f)) })
}

// IneffectiveFlags returns the flags that have no effect in a gateway.
func IneffectiveFlags(flags []string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return hasGatewayFlag([]string{f}) })
}

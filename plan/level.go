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

// level is a level that was chosen, or not.
type level struct {
	slog.Level
	chosen bool
}

// parseLevel reads the value of SCHEDRESTD_DEBUG.
func parseLevel(v string) (level, error) {
	for i, l := range loglevel.Levels {
		if v == strconv.Itoa(i) || strings.EqualFold(v, l.Name) {
			return level{l.Level, true}, nil
		}
	}
	names := make([]string, len(loglevel.Levels))
	for i, l := range loglevel.Levels {
		names[i] = l.Name
	}
	return level{}, errs.New(errs.Invalid, "environment: SCHEDRESTD_DEBUG=%s", v).
		WithHint("allowed are 0 to %d or %s", len(loglevel.Levels)-1, strings.Join(names, ", "))
}

// level is how much is logged: what -v says, else SCHEDRESTD_DEBUG, else what this way to run has as
// its default, which debug flags raise.
func (o *options) level(usual slog.Level, c *conf.Cluster) slog.Level {
	switch {
	case o.verbose > 0:
		return loglevel.Levels[loglevel.Info+min(int(o.verbose), mostVee)].Level
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

package option

import (
	"slices"
	"strings"
	"time"

	"schedrestd/internal/feature"
	"schedrestd/ipc/work"
)

// setDeprecated parses the versions of the API that clients should leave. Each
// has the day from which it is deprecated, and may have the day from which it is
// no longer served.
func (o *Options) setDeprecated(name, v string) error {
	bad := func(format string, args ...any) error {
		return invalid(name, v, ": "+format, args...).
			WithHint("use a list of versions, each with one or two days, such as v0.0.40:2026-12-01:2027-06-01")
	}
	o.Setup.Deprecated = nil
	for _, word := range splitList(v) {
		fields := strings.Split(word, ":")
		i := slices.IndexFunc(feature.Parsers, func(p feature.Parser) bool { return p.Name() == fields[0] })
		if i < 0 {
			return bad("unknown version %q", fields[0])
		}
		d := work.Deprecation{Version: feature.Parsers[i].Version}
		if slices.ContainsFunc(o.Setup.Deprecated, func(other work.Deprecation) bool { return other.Version == d.Version }) {
			return bad("%s is given twice", fields[0])
		}
		if len(fields) < 2 || len(fields) > 3 {
			return bad("%q has no day", word)
		}
		for j, to := range []*uint64{&d.Since, &d.Sunset}[:len(fields)-1] {
			day, err := time.Parse(time.DateOnly, fields[j+1])
			if err != nil || day.Unix() <= 0 {
				return bad("%q is not a day", fields[j+1])
			}
			*to = uint64(day.Unix())
		}
		if d.Sunset != 0 && d.Sunset < d.Since { // RFC 9745, 4
			return bad("%s would end before it is deprecated", fields[0])
		}
		o.Setup.Deprecated = append(o.Setup.Deprecated, d)
	}
	if len(o.Setup.Deprecated) == 0 {
		return bad("no version is named")
	}
	return nil
}

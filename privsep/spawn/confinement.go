package spawn

import (
	"cmp"
	"context"
	"log/slog"
	"strings"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// CheckRequired rejects a start that lacks, or has switched off, a part of the
// confinement, where all of it is required. Every kind of start calls it before
// the first worker is started. If only the worker can detect that a part is
// missing, the worker refuses to serve (ipc.SealRequire).
func (s *Spawner) CheckRequired() error {
	lacks := append(s.layers.list(ipc.PartMissing), s.layers.list(ipc.PartOff)...)
	if !s.Switches.RequireConfinement || len(lacks) == 0 {
		return nil
	}
	return errs.New(errs.Unsupported, "part of the confinement can't be had by this start, and all of it is required (require_confinement): %s", strings.Join(lacks, ", ")).
		WithHint("schedrestd --check-confinement shows each part and what would give it; without require_confinement the rest is used")
}

// Announce logs, once, which parts of the confinement are on and which are not.
// A client of inetd sees only those that this kind of start should have.
func (s *Spawner) Announce(sealed security.Sealed) {
	layers := s.layers.closed(s.Seal, sealed)
	attrs := []any{"on", strings.Join(layers.list(ipc.PartOn), ", ")}
	if off := layers.list(ipc.PartOff); len(off) > 0 {
		attrs = append(attrs, "off", strings.Join(off, ", "))
	}
	if left := layers.list(ipc.PartMissing); len(left) > 0 {
		attrs = append(attrs, "left_out", strings.Join(left, ", "))
	}
	level := slog.LevelInfo
	for p, one := range layers {
		if one.is == ipc.PartMissing && (!s.OneClient || s.Root || parts[p].lacked == "") {
			level = slog.LevelWarn
		}
	}
	s.Log.Log(context.Background(), level, "confinement of the workers", attrs...)
}

// PartFacts returns the parts for the page of --check-confinement.
func (s *Spawner) PartFacts(sealed security.Sealed) (facts []string) {
	for p, one := range s.layers.closed(s.Seal, sealed) {
		if one.is == ipc.PartMissing && !s.Root {
			one.is = cmp.Or(parts[p].lacked, one.is)
		}
		if one.why != nil {
			one.as = one.why.Error()
		}
		if one.is != "" {
			facts = append(facts, strings.Join([]string{ipc.FactPart + "=" + parts[p].name, one.is, one.as}, "\t"))
		}
	}
	return facts
}

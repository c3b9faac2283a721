package privsep

import (
	"os"

	"schedrestd/privsep/dial"
	"schedrestd/privsep/dispatch"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/pool"
	"schedrestd/privsep/spawn"
)

// parent holds what generations are made from, and what serves with them.
type parent struct {
	*makers
	*pool.Set
	plain *spawn.Spawner // of the resolver
	names *dispatch.Names
}

// newParent returns a parent that has nothing yet that needs capabilities.
func newParent(c Config, makers *makers) parent {
	m := parent{makers: makers, Set: pool.NewSet(pool.Options{Admission: c.Setup.Admission, Connections: c.Connections, PerSource: c.PerSource,
		Waiting: c.waiting(), HandLimit: c.HandLimit, Log: c.Log})}
	m.names = dispatch.NewNames(m.Loop)
	if m.reportViolation == nil {
		m.reportViolation = m.ReportViolation
	}
	return m
}

// begin starts the threads for operations that this process may not perform
// later, then drops the capabilities that are no longer needed. Every kind of
// start calls it before its first worker, and fails if the sandbox has less
// than it requires.
func (m *parent) begin(c Config, who identity.Service, program, keeper *os.File) (err error) {
	if m.Outlet, err = dial.NewOutlet(c.Outlet); err != nil {
		return err
	}
	m.Outlet.Check(c.Log)
	if m.Spawner, err = spawn.New(c.spawnOptions(who, program, keeper)); err != nil {
		return err
	}
	m.Spawner.Prepare(spawn.SpareNamespaces)
	if m.makers.resolver != nil {
		plain := c.spawnOptions(who, nil, nil)
		plain.Plain = true
		if m.plain, err = spawn.New(plain); err != nil {
			return err
		}
	}
	if err := dropCapabilities(who); err != nil {
		return err
	}
	return m.Spawner.CheckRequired()
}

// stop ends everything that begin started, including any process that is left.
func (m *parent) stop() {
	m.Loop.Stop()
	if m.plain != nil {
		m.plain.Stop()
	}
	if m.Spawner != nil {
		m.Spawner.Stop()
	}
	m.Outlet.Stop()
}

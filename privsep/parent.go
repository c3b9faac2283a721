package privsep

import (
	"os"

	"schedrestd/privsep/dial"
	"schedrestd/privsep/dispatch"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/pool"
	"schedrestd/privsep/spawn"
)

// parent is what generations are made with, and what serves by them.
type parent struct {
	*makers
	*pool.Set
	plain *spawn.Spawner // of the resolver
	names *dispatch.Names
}

// newParent has nothing yet that takes capabilities.
func newParent(c Config, makers *makers) parent {
	m := parent{makers: makers, Set: pool.NewSet(pool.Options{Admission: c.Setup.Admission, Connections: c.Connections, PerSource: c.PerSource,
		Waiting: c.waiting(), HandLimit: c.HandLimit, Log: c.Log})}
	m.names = dispatch.NewNames(m.Loop)
	if m.reportViolation == nil {
		m.reportViolation = m.ReportViolation
	}
	return m
}

// begin starts the threads that do for this process what it is permitted no more then: the last of its capabilities that nobody needs are
// dropped. Each way to start comes by here before its first worker, and none goes on that has less of the sandbox than it requires.
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

// stop ends what began, and with it any process that is left.
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

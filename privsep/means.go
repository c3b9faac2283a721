package privsep

import (
	"os"

	"schedrestd/privsep/dial"
	"schedrestd/privsep/spawn"
)

// means is what every pool works with.
type means struct {
	*makers
	*loop
	spawner *spawn.Spawner
	plain   *spawn.Spawner // of the resolver
	slots   *slots
	pools   *pools
	outlet  *dial.Outlet
}

// newMeans has nothing yet that takes capabilities.
func newMeans(c Config, makers *makers) means {
	l := newLoop()
	m := means{makers: makers, loop: l, slots: newSlots(c, l), pools: newPools()}
	m.slots.silent = func() { m.pools.each((*pool).excuseSilent) }
	m.names.loop = l
	if m.reportViolation == nil {
		m.reportViolation = func(number uint32, why string) {
			m.do(func() { m.pools.each(func(p *pool) { p.reportViolation(number, why) }) })
		}
	}
	go l.run()
	return m
}

// begin starts the threads that do for this process what it is permitted no more then: the last of its capabilities that nobody needs are
// dropped. Each way to start comes by here before its first worker, and none goes on that has less of the sandbox than it requires.
func (m *means) begin(c Config, who service, program, keeper *os.File) (err error) {
	if m.outlet, err = dial.NewOutlet(c.Outlet); err != nil {
		return err
	}
	m.outlet.Check(c.Log)
	if m.spawner, err = spawn.New(c.spawnOptions(who, program, keeper)); err != nil {
		return err
	}
	m.spawner.Prepare(spawn.SpareNamespaces)
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
	return m.spawner.CheckRequired()
}

// stop ends what began, and with it any process that is left.
func (m *means) stop() {
	m.loop.stop()
	if m.plain != nil {
		m.plain.Stop()
	}
	if m.spawner != nil {
		m.spawner.Stop()
	}
	m.outlet.Stop()
}

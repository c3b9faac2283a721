package privsep

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/spawn"
)

// Check starts one worker as Run would, and a keeper where Run would start one.
// Then it starts a process that tries everything that the workers' sandbox
// forbids and writes a page about it for the administrator, which Check copies
// to out. Check opens no listener and serves no client. Its error names the
// protections that are missing or ineffective although this kind of start can
// have them. Where all of them are required it is the error of Run.
func Check(c Config, out io.Writer) error {
	runtime.GOMAXPROCS(1)
	k := &check{out: out, required: c.Switches.RequireConfinement}
	c.Switches.RequireConfinement = false // otherwise a worker would refuse to start before the page could describe it
	c.kernelTells = len(c.Listen) == 0    // if no listener is named, clients may use any kind of socket
	if len(c.Listen) == 0 {
		c.Listen = []ipc.Listen{{Text: "127.0.0.1:0", Network: ipc.TCP}} // which is not opened
		if c.Switches.BecomeUser {
			c.Listen = []ipc.Listen{{Text: "unix:/check", Network: ipc.Unix, Path: "/check"}} // nor is this
		}
	}
	if err := c.checkListen(); err != nil {
		return err
	}
	var listeners []*listen.Listener // as they would be
	for _, e := range c.Listen {
		listeners = append(listeners, &listen.Listener{Network: e.Network, Name: e.Text, TLS: e.TLS})
	}
	c, who, program, err := prepare(c)
	if err != nil {
		return err
	}
	defer program.Close()
	c = c.with(listeners, who)
	c.Outlet = "" // nor is a connection to a daemon
	makers, err := newMakers(c, who, listeners, nil)
	if err != nil {
		return err
	}
	defer makers.close()
	makers.resolver = nil // it has no sandbox
	k.config, k.who, k.parent = c, who, newParent(c, makers)
	defer k.stop()
	if err := k.begin(c, who, program, makers.keeper.Program); err != nil {
		return err
	}
	return k.run()
}

// check is one run of Check.
type check struct {
	parent
	config   Config
	who      identity.Service
	out      io.Writer
	required bool // require_confinement is set
}

// run starts a worker and the keeper, and then the process that writes the page.
func (k *check) run() error {
	sealed, err := k.Spawner.Prove(ipc.ProveClosed)
	if err != nil {
		return err
	}
	facts := append(k.facts(), k.Spawner.PartFacts(sealed)...)
	keeper, failed := k.start()
	if failed != nil {
		facts = append(facts, ipc.FactFailed)
	}
	if keeper != "" {
		facts = append(facts, ipc.FactKeeper+"="+keeper)
	}
	k.Spawner.Switches.RequireConfinement = k.required
	refused := k.Spawner.CheckRequired()
	if refused != nil {
		facts = append(facts, ipc.FactRefused)
	}
	return cmp.Or(k.Spawner.Page(k.out, facts...), failed, refused)
}

// start starts and ends a worker and, where there would be one, the keeper,
// whose uid it returns.
func (k *check) start() (keeper string, err error) {
	g, err := k.build(k.config, nil, true)
	if err != nil {
		return "", errs.Wrap(err, errs.KindOf(err), "start the keeper")
	}
	defer k.Do(g.Release)
	if err := k.Await(func(done func(error)) { k.try(g, done) }); err != nil {
		return "", errs.Wrap(err, errs.KindOf(err), "start a worker")
	}
	if g.keeper == nil {
		return "", nil
	}
	return fmt.Sprint(g.keeper.Who.UID), nil
}

// facts returns the parts of the page that the process that writes it can't
// know.
func (k *check) facts() []string {
	c, s := k.config, k.config.Setup
	uid := fmt.Sprint(int32(k.who.UID))
	list := []string{ipc.FactUID + "=" + uid, fmt.Sprintf("%s=%s (%s:%d)", ipc.FactName, k.who.Name, uid, int32(k.who.GID)), fmt.Sprintf("%s=%d", ipc.FactTasks, spawn.MostOfUser)}
	add := func(so bool, fact string) {
		if so {
			list = append(list, fact)
		}
	}
	tcp := func(a ipc.Address) bool { return a.Network == "tcp" }
	add(k.who.Root, ipc.FactRoot)
	add(c.Switches.BecomeUser, ipc.FactBecome)
	add(s.Local && c.kernelTells, ipc.FactLocal)
	add(s.Munge.Socket != "", ipc.FactMunge)
	add(c.Secrets.TLS.Key != "", ipc.FactTLS)
	add(c.Secrets.Tokens.Key != "", ipc.FactTokens)
	add(slices.ContainsFunc(slices.Concat(s.Controllers, s.Accounting, s.Front), tcp), fmt.Sprintf("%s=%d %d %d", ipc.FactDial, c.DialBurst, c.DialRate, c.files()))
	if k.who.Unfit != nil {
		list = append(list, ipc.FactUnfit+"="+k.who.Unfit.Error())
	}
	return list
}

// try starts a worker of g that gets no connection, to see that it can serve.
func (k *check) try(g *generation, done func(error)) {
	p := k.NewPool(g.Generation, k.config.anyWorker(k.who))
	p.Workers = 1
	k.Set.Start(p, func(err error) { p.Drain(); done(err) })
}

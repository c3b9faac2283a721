package privsep

import (
	"cmp"
	"fmt"
	"io"
	"runtime"

	"schedrestd/ipc"
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
	required := c.Switches.RequireConfinement
	c.Switches.RequireConfinement = false // otherwise a worker would refuse to start before the page could describe it
	c.kernelTells = len(c.Listen) == 0    // if no listener is named, clients may use any kind of socket
	if len(c.Listen) == 0 {
		c.Listen = []ipc.Listen{{Text: "127.0.0.1:0", Network: ipc.TCP}} // which is not opened
		if c.Switches.BecomeUser {
			c.Listen = []ipc.Listen{{Text: "unix:/check", Network: ipc.Unix, Path: "/check"}} // nor is this
		}
	}
	var listeners []*listen.Listener // as they would be
	for _, e := range c.Listen {
		listeners = append(listeners, &listen.Listener{Network: e.Network, Name: e.Text, TLS: e.TLS})
	}
	c, who, err := prepare(c)
	if err != nil {
		return err
	}
	c.ControllerNetns, c.Workers, c.Audit = "", 1, ipc.Audit{} // no daemon is connected
	m := newMonitor(c, who)
	defer m.close()
	if err := m.openFiles(); err != nil {
		return err
	}
	err = m.begin(listeners)
	m.listeners = nil
	if err != nil {
		return err
	}
	sealed, err := m.spawner.Prove(ipc.ProveClosed)
	if err != nil {
		return err
	}
	facts := append(m.facts(), m.spawner.PartFacts(sealed)...)
	keeper := ""
	m.ready = func(*ipc.Outcome) {
		if p := m.programs[ipc.Keeper]; m.current.keys.NeedKeeper() {
			keeper = fmt.Sprint(p.As[0].UID)
		}
		m.end(nil)
	}
	failed := m.loop(nil)
	if failed != nil {
		facts = append(facts, ipc.FactFailed)
	}
	if keeper != "" {
		facts = append(facts, ipc.FactKeeper+"="+keeper)
	}
	m.spawner.Switches.RequireConfinement = required
	refused := m.spawner.CheckRequired()
	if refused != nil {
		facts = append(facts, ipc.FactRefused)
	}
	return cmp.Or(m.spawner.Page(out, facts...), failed, refused)
}

// facts returns the parts of the page that the process that writes it can't
// know.
func (m *monitor) facts() []string {
	c, s := m.config, m.config.Setup
	uid := fmt.Sprint(int32(m.who.UID))
	list := []string{ipc.FactUID + "=" + uid, fmt.Sprintf("%s=%s (%s:%d)", ipc.FactName, m.who.Name, uid, int32(m.who.GID)), fmt.Sprintf("%s=%d", ipc.FactTasks, spawn.MostOfUser)}
	add := func(so bool, fact string) {
		if so {
			list = append(list, fact)
		}
	}
	add(m.who.Root, ipc.FactRoot)
	add(c.Switches.BecomeUser, ipc.FactBecome)
	add(s.Local && c.kernelTells, ipc.FactLocal)
	add(s.Sockets && s.Reach&ipc.ReachMunge != 0, ipc.FactMunge)
	add(c.Secrets.TLS.Key != "", ipc.FactTLS)
	add(c.Secrets.Tokens.Key != "", ipc.FactTokens)
	add(s.Reach&ipc.ReachTCP != 0, fmt.Sprintf("%s=%d", ipc.FactDial, c.files()))
	if m.who.Unfit != nil {
		list = append(list, ipc.FactUnfit+"="+m.who.Unfit.Error())
	}
	return list
}

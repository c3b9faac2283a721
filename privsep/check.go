package privsep

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"

	"schedrestd/ipc"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/spawn"
)

// Check starts one worker as Run would, and a keeper if Run would start one.
// Then it starts a process that tries everything that the workers' sandbox
// forbids, and that writes a page with the results to out. Check opens no
// listener and serves no client.
//
// A start without root can't have every protection. Check returns an error that
// names each protection that this start could have, but that is missing or
// ineffective. If a part of the confinement is missing and require_confinement
// is set, Check returns the error that Run would return.
func Check(c Config, out *os.File) error {
	runtime.GOMAXPROCS(1)
	required := c.Switches.RequireConfinement
	c.Switches.RequireConfinement = false // otherwise a worker would refuse to start before the page could describe it
	var listeners []*listen.Listener      // the listeners that Run would open
	for _, e := range c.Listen {
		listeners = append(listeners, &listen.Listener{Listening: ipc.Listening{Network: e.Network, TLS: e.TLS}})
	}
	who, err := c.service()
	if err != nil {
		return err
	}
	m := newMonitor(c, who)
	defer m.close()
	err = m.begin(listeners)
	m.listeners = nil
	if err != nil {
		return err
	}
	facts := m.facts()
	for _, p := range m.spawner.Parts() {
		facts = append(facts, strings.Join([]string{ipc.FactPart + "=" + p.Name, p.Is, p.Why}, "\t"))
	}
	m.ready = func() {
		if p := m.programs[ipc.Keeper]; m.keys.NeedKeeper() {
			facts = append(facts, fmt.Sprintf("%s=%d", ipc.FactKeeper, p.As.UID))
		}
		m.end(nil)
	}
	failed := m.loop(nil)
	if failed != nil {
		facts = append(facts, ipc.FactFailed)
	}
	m.spawner.Switches.RequireConfinement = required
	refused := m.spawner.CheckRequired()
	if refused != nil {
		facts = append(facts, ipc.FactRefused)
	}
	_, wrong := m.spawner.Prove(ipc.ProvePage, out, facts...)
	return cmp.Or(wrong, failed, refused)
}

// facts returns the facts that the process that writes the page can't find out
// itself.
func (m *monitor) facts() []string {
	uid := fmt.Sprint(int32(m.who.UID))
	list := append(m.config.Facts, ipc.FactUID+"="+uid, fmt.Sprintf("%s=%s (%s:%d)", ipc.FactName, m.who.Name, uid, int32(m.who.GID)), fmt.Sprintf("%s=%d", ipc.FactTasks, spawn.MostOfUser))
	if m.who.Root {
		list = append(list, ipc.FactRoot)
	}
	if m.who.Unfit != nil {
		list = append(list, ipc.FactUnfit+"="+m.who.Unfit.Error())
	}
	return list
}

package privsep

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"

	"schedrestd/ipc"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/netns"
	"schedrestd/privsep/spawn"
)

// Check starts a generation of workers and services as Run would. They read all
// keys. In ModeRead, Check then writes to out that the gateway can start. In
// ModeCheck, it starts a process that tries everything that the workers' sandbox
// forbids. This process writes a page with the results to out. Check opens no
// listener and no file of the auditor, and serves no client.
//
// Without root, some protections are impossible. Check returns an error that
// names the protections that are missing or ineffective although they are
// possible. If a part of the confinement is missing and require_confinement is
// set, Check returns the error that Run would return. The process that writes
// the page determines both.
func Check(c Config, out *os.File) error {
	runtime.GOMAXPROCS(1)
	c.Audit = ipc.Audit{}            // a running gateway may use these files
	var listeners []*listen.Listener // the listeners that Run would open
	for _, e := range c.Listen {
		listeners = append(listeners, &listen.Listener{Listening: ipc.Listening{Network: e.Network, TLS: e.TLS}})
	}
	ns, err := netns.Open("SCHEDRESTD_NETNS", c.Netns)
	if err != nil {
		return err
	}
	ns.Close()
	service, err := identity.Determine(&c.PackedPlan)
	if err != nil {
		return err
	}
	m := newMonitor(c, service)
	defer m.close()
	err = m.prepare(listeners)
	m.listeners = nil
	if err != nil {
		return err
	}
	if c.Mode == ipc.ModeRead {
		m.onReady = func() { fmt.Fprintln(out, "The gateway can start with these settings."); m.endRun(nil) }
		return m.loop(nil)
	}
	facts := m.facts()
	for _, p := range m.confinedSpawner.Parts() {
		facts = append(facts, strings.Join([]string{ipc.FactPart + "=" + p.Name, p.State, p.Reason}, "\t"))
	}
	m.onReady = func() {
		if p := m.programs[ipc.Keeper]; m.keys.NeedsKeeper() {
			facts = append(facts, fmt.Sprintf("%s=%d", ipc.FactKeeper, p.Identity.UID))
		}
		m.endRun(nil)
	}
	runErr := m.loop(nil)
	if runErr != nil {
		facts = append(facts, ipc.FactFailed)
	}
	_, proofErr := m.confinedSpawner.Prove(ipc.ProvePage, out, facts...)
	return cmp.Or(proofErr, runErr)
}

// facts returns the facts that the process that writes the page needs, but
// can't determine itself.
func (m *monitor) facts() []string {
	uid := fmt.Sprint(m.service.UID)
	list := append(m.config.Facts, ipc.FactUID+"="+uid, fmt.Sprintf("%s=%s (%s:%d)", ipc.FactName, m.service.Name, uid, m.service.GID), fmt.Sprintf("%s=%d", ipc.FactTasks, spawn.MaxUserTasks))
	if m.service.Root {
		list = append(list, ipc.FactRoot)
	}
	if m.service.UserCheckErr != nil {
		list = append(list, ipc.FactUnfit+"="+m.service.UserCheckErr.Error())
	}
	return list
}

package privsep

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"schedrestd/internal/guard"
	"schedrestd/internal/socket"
	"schedrestd/ipc"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/spawn"
)

// Check starts a generation of workers and services as Run would. They read all
// keys. Check also opens the files of the auditor, or creates and removes others
// beside them. A running gateway may use the files, so nothing reads or writes
// them. In ModeRead, Check then writes to out that the gateway can start. In
// ModeCheck, it starts a process that tries everything that the workers' sandbox
// forbids. This process writes a page with the results to out. Check opens no
// listener and serves no client.
//
// Without root, some protections are impossible. Check returns an error that
// names the protections that are missing or ineffective although they are
// possible. If a part of the confinement is missing and require_confinement is
// set, Check returns the error that Run would return. The process that writes
// the page determines both.
func Check(c Config, out *os.File) error {
	runtime.GOMAXPROCS(1)
	var listeners []*listen.Listener // the listeners that Run would open
	for _, e := range c.Listen {
		listeners = append(listeners, &listen.Listener{Listening: ipc.Listening{Network: e.Network, TLS: e.TLS}})
	}
	_, netnsErr := listen.Open(listen.Options{Netns: c.Netns})
	service, err := identity.Determine(&c.PackedPlan)
	for _, e := range append(c.Metrics, c.Listen...) {
		err = cmp.Or(err, socket.CheckDirectory(e.Path, c.listenOptions(service).Unix))
	}
	if err := cmp.Or(netnsErr, err); err != nil {
		return err
	}
	defer guard.UseTrialFiles(&c.Audit.Path, &c.Audit.Claims)()
	m := newMonitor(c, service)
	defer m.close()
	err = m.prepare(listeners)
	m.listeners, m.auditLog = nil, nil
	if err != nil {
		return err
	}
	if c.Mode == ipc.ModeRead {
		c.Level.Set(min(c.Level.Level(), slog.LevelInfo)) // the log says which keys are in use
		m.onReady = func() { fmt.Fprintln(out, "The gateway can start with these settings."); m.endRun(nil) }
		return m.loop(nil)
	}
	facts := m.facts()
	for _, p := range m.confinedSpawner.Parts() {
		facts = append(facts, strings.Join([]string{ipc.FactPart + "=" + p.Name, p.State, p.Reason}, "\t"))
	}
	m.onReady = func() {
		if p := m.programs[ipc.Keeper]; m.keys().NeedsKeeper() {
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
	list := append(m.config().Facts, ipc.FactUID+"="+uid, fmt.Sprintf("%s=%s (%s:%d)", ipc.FactName, m.service.Name, uid, m.service.GID), fmt.Sprintf("%s=%d", ipc.FactTasks, spawn.MaxUserTasks))
	if m.service.Root {
		list = append(list, ipc.FactRoot)
	}
	if m.service.UserCheckErr != nil {
		list = append(list, ipc.FactUnfit+"="+m.service.UserCheckErr.Error())
	}
	return list
}

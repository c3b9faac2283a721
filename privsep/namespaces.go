package privsep

import (
	"errors"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/program"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// A PID namespace ends with its init process: the kernel kills all other
// processes in the namespace, and no process can be started there any more.
// Creating a PID namespace requires CAP_SYS_ADMIN, which the parent drops
// before it serves. So the parent prepares spare namespaces when it starts,
// each with its own Spawner.
//
// When the last spare namespace has ended, the parent uses a Spawner without a
// shared PID namespace. If the kernel permits it, this Spawner puts each
// process into a user namespace of its own.

// spareNamespaces is how many spare namespaces the parent prepares. Each takes
// about 2 MB.
const spareNamespaces = 2

// prepareSpareSpawners creates the spare spawners while this process still has
// the necessary capabilities. If it can't create them all, for example because
// of the kernel's limit on namespaces, there are fewer.
func (m *monitor) prepareSpareSpawners() {
	if m.confinedSpawner.NamespaceDone() == nil || m.config().Setup.Inetd {
		return
	}
	for range spareNamespaces {
		next, err := m.confinedSpawner.NewReplacement()
		if err != nil {
			m.config().Log.Warn("namespace not prepared", "error", err, "hint", "the gateway exits when its last namespace ends")
			return
		}
		m.spareSpawners = append(m.spareSpawners, next)
	}
}

// replaceSpawner replaces the current spawner, whose PID namespace has ended,
// with the next one. It then requests a new generation, whose processes the new
// spawner starts.
func (m *monitor) replaceSpawner() error {
	const hint = "find out what kills processes called schedrestd-init"
	if len(m.spareSpawners) == 0 {
		next, err := m.confinedSpawner.NewReplacement()
		if err != nil {
			m.config().Log.Error("namespace init exited", "error", err, "hint", "the gateway exits, since only a restart can create namespaces; "+hint)
			return errs.New(errs.Unavailable, "no PID namespace for workers is left")
		}
		m.spareSpawners = append(m.spareSpawners, next)
	}
	m.confinedSpawner.Stop()
	m.confinedSpawner, m.spareSpawners = m.spareSpawners[0], m.spareSpawners[1:]
	m.config().Log.Error("namespace init exited", "hint", "workers and services start in the next namespace; "+hint)
	if current := m.current.Load(); m.hasServed() && current.spawner != m.confinedSpawner {
		m.renewGeneration(current.id)
	}
	return nil
}

// startConfined starts a process in the current PID namespace. If that
// namespace has ended, startConfined switches to the next one.
func (m *monitor) startConfined(p *program.Program, identity security.Identity, spec spawn.Spec, setup ipc.Message) (*spawn.Child, error) {
	for {
		child, err := p.Start(m.confinedSpawner, identity, spec, setup)
		if !errors.Is(err, unix.ENOMEM) || !m.confinedSpawner.NamespaceEnded() || m.replaceSpawner() != nil {
			return child, err
		}
	}
}

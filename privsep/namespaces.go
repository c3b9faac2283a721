package privsep

import (
	"errors"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/program"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// A PID namespace ends with its init process: the kernel kills all other
// processes in it, and no process can be started in it any more. Making a PID
// namespace takes CAP_SYS_ADMIN, which the parent has dropped by the time it
// serves. So the parent prepares spare namespaces at its start, each with its
// own Spawner.
//
// When all spare namespaces have ended, the parent uses a Spawner without a
// shared PID namespace. If the kernel permits it, this Spawner puts each
// process into its own user namespace.

// spareNamespaces is how many spare namespaces the parent prepares. Each takes
// about 2 MB.
const spareNamespaces = 2

// prepareSpareSpawners makes the spare spawners while this process still has
// the capabilities to do so. If the kernel's limit on namespaces is reached,
// there are fewer.
func (m *monitor) prepareSpareSpawners() {
	if m.confinedSpawner.NamespaceDone() == nil || m.config.Setup.Inetd {
		return
	}
	for range spareNamespaces {
		next, err := m.confinedSpawner.NewReplacement()
		if err != nil {
			m.config.Log.Warn("namespace not prepared", "error", err, "hint", "the gateway exits when its last namespace ends")
			return
		}
		m.spareSpawners = append(m.spareSpawners, next)
	}
}

// replaceSpawner puts the next spawner in the place of the current one, whose
// PID namespace has ended. It then requests a generation of processes from the
// next spawner.
func (m *monitor) replaceSpawner() error {
	const hint = "find out what kills processes called schedrestd-init"
	if len(m.spareSpawners) == 0 {
		next, err := m.confinedSpawner.NewReplacement()
		if err != nil {
			m.config.Log.Error("namespace init exited", "error", err, "hint", "the gateway exits, since only a restart can create namespaces; "+hint)
			return errs.New(errs.Unavailable, "no PID namespace for workers is left")
		}
		m.spareSpawners = append(m.spareSpawners, next)
	}
	m.confinedSpawner.Stop()
	m.confinedSpawner, m.spareSpawners = m.spareSpawners[0], m.spareSpawners[1:]
	m.config.Log.Error("namespace init exited", "hint", "workers and services start in the next namespace; "+hint)
	if m.currentGeneration != nil && m.currentGeneration.spawner != m.confinedSpawner {
		m.renewGeneration(m.currentGeneration.id)
	}
	return nil
}

// startConfined starts a process in the current namespace. If that namespace
// has ended, it uses the next one.
func (m *monitor) startConfined(p *program.Program, identity security.Identity, spec spawn.Spec, setup ipc.Message) (*spawn.Child, error) {
	for {
		child, err := p.Start(m.confinedSpawner, identity, spec, setup)
		if !errors.Is(err, unix.ENOMEM) || !m.confinedSpawner.NamespaceEnded() || m.replaceSpawner() != nil {
			return child, err
		}
	}
}

package spawn

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
	"schedrestd/security/root"
)

// enter records the state of p. If p is a part that a thread can enter, the
// calling thread enters it.
func (s *Spawner) enter(p part, held security.Capabilities) {
	byThread := p == ipcNamespace || p == networkNamespace || p == ownRoot || p == pidNamespace
	s.layers[p].Name = parts[p].name
	switch why := s.unasked(p); {
	case s.nest.has(parts[p].flag):
		s.set(p, nil)
	case why != "":
		s.layers[p].Is, s.layers[p].Why = ipc.PartOff, why
	case !byThread && s.denied[p] == nil:
	case !security.Sandboxed:
		s.set(p, errUnconfined)
	case !byThread, !held.Has(unix.CAP_SYS_ADMIN):
		s.set(p, s.absent(p))
	case p == ownRoot:
		s.set(p, s.enterRoot())
	case p == pidNamespace:
		s.set(p, s.enterPIDs())
	default:
		s.set(p, unix.Unshare(int(parts[p].flag)))
	}
}

// enterRoot moves the calling thread into a file system that has the programs and little else.
func (s *Spawner) enterRoot() error {
	space := root.New(map[string]*os.File{WorkerName: s.Worker, stageName: s.stage})
	defer space.Close()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return errs.Wrap(err, errs.Unsupported, "enter a mount namespace")
	}
	if err := space.Enter(); err != nil {
		return err
	}
	s.space = space
	return nil
}

// enterPIDs makes the processes that the calling thread starts begin in a new
// PID namespace, which they share. If enterPIDs fails, these processes begin in
// the current namespace.
func (s *Spawner) enterPIDs() error {
	own, err := unix.Open("/proc/thread-self/ns/pid", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errs.Wrap(err, errs.Unsupported, "find the PID namespace")
	}
	defer unix.Close(own)
	if err := unix.Unshare(unix.CLONE_NEWPID); err != nil {
		return errs.Wrap(err, errs.Unsupported, "make a PID namespace")
	}
	if s.space != nil {
		err = root.LeaveProc()
	}
	if err == nil {
		if s.first, err = s.startFirst(security.Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}); err == nil {
			return nil
		}
	}
	if failed := unix.Setns(own, unix.CLONE_NEWPID); failed != nil {
		return errs.Wrap(failed, errs.Internal, "return to the PID namespace, after: %v", err)
	}
	if s.space != nil {
		if failed := root.MountProc(); failed != nil {
			return failed
		}
	}
	return err
}

// startFirst starts the init process of a PID namespace on this thread, and
// returns when that process has closed its sandbox. Workers and services in the
// namespace see only each other, so they can't signal any process outside it.
//
// The init process starts with the parent's identity and mounts the /proc of
// the namespace. Then it switches to an id that no user has, and only waits
// (worker/namespaceinit.go). When it or the parent exits, the kernel kills
// every process in the namespace.
func (s *Spawner) startFirst(who security.Identity) (*Started, error) {
	p, err := launch(Spec{Role: ipc.Worker, Program: s.Worker, Threads: 1, Who: who,
		Argv: append(slices.Clone(s.Argv), fmt.Sprintf("%d,%d", s.Seal, s.PIDs), ipc.NamespaceInitMode)}, s.execute)
	if err != nil {
		return nil, err
	}
	if _, err := p.proven(s.Worker.Name(), s.StartLimit); err != nil {
		p.stop()
		return nil, errs.Wrap(err, errs.Unsupported, "start the init process of the PID namespace")
	}
	return p, nil
}

// findNest tries the setups in nests in order, and returns the first that works
// here. For each setup it starts a process that closes its sandbox. It returns
// nil if no setup is needed, possible, or successful. If a setup fails,
// findNest stores the error in s.denied for each part that the setup would have
// provided.
func (s *Spawner) findNest(held security.Capabilities) *nest {
	if !security.Sandboxed || s.Root && (held.Has(unix.CAP_SYS_ADMIN) || s.Switches.DisableUserCheck) { // with disable_user_check a worker may be root, and the kernel maps no uid 0 into the user namespace
		return nil
	}
	for _, n := range nests {
		if s.Switches.DisableUnshareSysV {
			n.flags &^= unix.CLONE_NEWIPC
		}
		s.nest = &n
		one, err := s.startFirst(s.Identity)
		if err == nil {
			one.stop()
			return s.nest
		}
		s.deny(err)
	}
	return nil
}

// deny records err as the reason why some parts are missing: those that the
// setup being tried would have provided.
func (s *Spawner) deny(err error) {
	if sys, ok := errors.AsType[unix.Errno](err); ok {
		err = sys // without the name of the operation
	}
	for p, row := range parts {
		if s.nest.has(row.flag) || part(p) == emptyBounding && s.nest.settles() {
			s.denied[p] = err
		}
	}
}

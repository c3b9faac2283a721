package spawn

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/security"
	"schedrestd/security/root"
)

// enterPart makes the calling thread enter the part p, if threads can enter it,
// and records the state of p.
func (s *Spawner) enterPart(p part, held security.Capabilities) {
	byThread := p == ipcNamespace || p == networkNamespace || p == ownRoot || p == pidNamespace
	s.states[p].Name = parts[p].name
	switch reason := s.offReason(p); {
	case s.userNS.hasFlag(parts[p].flag):
		s.setState(p, nil)
	case reason != "":
		s.states[p].State, s.states[p].Reason = ipc.PartOff, reason
	case !byThread && s.partErrors[p] == nil:
	case !security.Sandboxed:
		s.setState(p, errUnconfined)
	case !byThread, !held.Has(unix.CAP_SYS_ADMIN):
		s.setState(p, s.missingReason(p))
	case p == ownRoot:
		s.setState(p, s.enterRoot())
	case p == pidNamespace:
		s.setState(p, s.enterPIDs())
	default:
		s.setState(p, unix.Unshare(int(parts[p].flag)))
	}
}

// enterRoot moves the calling thread into a file system that contains the
// programs and little else.
func (s *Spawner) enterRoot() error {
	rootFS := root.New(map[string]*os.File{WorkerName: s.Worker, stageName: s.stage})
	defer rootFS.Close()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return errs.Wrap(err, errs.Unsupported, "enter a mount namespace")
	}
	if err := rootFS.Enter(); err != nil {
		return err
	}
	s.rootFS = rootFS
	return nil
}

// enterPIDs creates a new PID namespace for the processes that the calling
// thread starts from now on. If enterPIDs fails, these processes start in the
// current namespace.
func (s *Spawner) enterPIDs() error {
	original, err := unix.Open("/proc/thread-self/ns/pid", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errs.Wrap(err, errs.Unsupported, "find the PID namespace")
	}
	defer unix.Close(original)
	if err := unix.Unshare(unix.CLONE_NEWPID); err != nil {
		return errs.Wrap(err, errs.Unsupported, "make a PID namespace")
	}
	if s.rootFS != nil {
		err = root.UnmountProc()
	}
	if err == nil {
		if s.namespaceInit, err = s.startNamespaceInit(security.Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}); err == nil {
			return nil
		}
	}
	if failed := unix.Setns(original, unix.CLONE_NEWPID); failed != nil {
		return errs.Wrap(failed, errs.Internal, "return to the PID namespace, after: %v", err)
	}
	if s.rootFS != nil {
		if failed := root.MountProc(); failed != nil {
			return failed
		}
	}
	return err
}

// startNamespaceInit starts the init process of a PID namespace on this thread,
// and returns when that process has closed its sandbox. Workers and services in
// the namespace see only each other, so they can't signal any process outside
// it.
//
// The init process starts with the parent's identity and mounts the /proc of
// the namespace. Then it switches to an id that no user has, and only waits
// (gateway/worker/namespaceinit.go). When the init process or the parent exits,
// the kernel kills every process in the namespace.
func (s *Spawner) startNamespaceInit(identity security.Identity) (*Child, error) {
	p, err := launch(Spec{Role: ipc.Worker, Program: s.Worker, Threads: 1, Identity: identity,
		Argv: append(slices.Clone(s.Argv), fmt.Sprintf("%d,%d", s.Sandbox, s.PIDs), ipc.NamespaceInitMode)}, s.execute)
	if err != nil {
		return nil, err
	}
	if _, err := p.awaitProof(s.Worker.Name(), s.StartLimit); err != nil {
		p.stop()
		return nil, errs.Wrap(err, errs.Unsupported, "start the init process of the PID namespace")
	}
	return p, nil
}

// findUserNS tries userNSSetups in order, and returns the first that works on
// this machine. To try a setup, it starts a process that closes its sandbox. It
// returns nil if this Spawner needs no setup or can't use one, or if no setup
// works. If a setup fails, findUserNS stores the error in s.partErrors for each
// part that the setup would have provided.
func (s *Spawner) findUserNS(held security.Capabilities) *userNSSetup {
	if !security.Sandboxed || s.Root && (held.Has(unix.CAP_SYS_ADMIN) || s.Switches.DisableUserCheck) { // with disable_user_check, a worker may be root, and the kernel does not let the parent map uid 0 into the user namespace
		return nil
	}
	for _, n := range userNSSetups {
		if s.Switches.DisableUnshareSysV {
			n.flags &^= unix.CLONE_NEWIPC
		}
		s.userNS = &n
		probe, err := s.startNamespaceInit(s.Identity)
		if err == nil {
			probe.stop()
			return s.userNS
		}
		s.recordPartErrors(err)
	}
	return nil
}

// recordPartErrors records err as the error of each part that the current user
// namespace setup would have provided.
func (s *Spawner) recordPartErrors(err error) {
	if sys, ok := errors.AsType[unix.Errno](err); ok {
		err = sys // without the name of the operation
	}
	for p, row := range parts {
		if s.userNS.hasFlag(row.flag) || part(p) == emptyBounding && s.userNS.emptiesBounding() {
			s.partErrors[p] = err
		}
	}
}

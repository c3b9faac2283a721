package spawn

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/printable"
	"schedrestd/security"
	"schedrestd/security/root"
)

// enter makes the calling thread enter p, if p is a part that a thread enters.
func (s *Spawner) enter(p part, held security.Capabilities) layer {
	byThread := p == ipcNamespace || p == networkNamespace || p == ownRoot || p == pidNamespace
	switch why := s.unasked(p); {
	case s.nest.has(parts[p].flag):
		return found(nil)
	case why != "":
		return layer{is: ipc.PartOff, why: errors.New(why)}
	case !byThread && s.denied[p] == nil:
		return layer{}
	case !security.Sandboxed:
		return found(errUnconfined)
	case !byThread, !held.Has(unix.CAP_SYS_ADMIN):
		return found(s.absent(p))
	case p == ownRoot:
		return found(s.enterRoot())
	case p == pidNamespace:
		return found(s.enterPIDs())
	}
	return found(unix.Unshare(int(parts[p].flag)))
}

// enterRoot moves the calling thread into a file system that has the programs and little else.
func (s *Spawner) enterRoot() error {
	space := root.New(map[string]*os.File{WorkerName: s.Worker, KeeperName: s.Keeper, stageName: s.stage})
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

// enterPIDs makes the processes that the calling thread starts begin in a PID
// namespace of their own. When it fails they begin in the current one.
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
		return errs.Wrap(failed, errs.Internal, "go back to the PID namespace, after: %v", err)
	}
	if s.space != nil {
		if failed := root.MountProc(); failed != nil {
			return failed
		}
	}
	return err
}

// startFirst starts the init process on this thread, and returns when it has closed
// its sandbox.
func (s *Spawner) startFirst(who security.Identity) (*firstPID, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "make a line to the first process")
	}
	line := os.NewFile(uintptr(fds[0]), "line to the first process")
	p, err := s.execute(Spec{Role: ipc.Worker, Program: s.Worker, Threads: 1, Who: who,
		Argv: append(slices.Clone(s.Argv), fmt.Sprintf("%d,%d", s.Seal, s.PIDs), ipc.NamespaceInitMode)}, fds[1], int(s.null.Fd()))
	unix.Close(fds[1])
	if err != nil {
		line.Close()
		return nil, err
	}
	first := &firstPID{Process: p, line: line}
	limit := unix.NsecToTimeval(int64(s.StartLimit))
	_ = unix.SetsockoptTimeval(fds[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
	var said [512]byte
	n, err := unix.Read(fds[0], said[:])
	if err == nil && string(said[:n]) == ipc.NamespaceInitReady {
		return first, nil
	}
	first.stop()
	switch {
	case err != nil:
		return nil, errs.New(errs.Unsupported, "the first process of the PID namespace says nothing (%v)", err)
	case n == 0:
		return nil, errs.New(errs.Unsupported, "the first process of the PID namespace says nothing, as %s of another build would", s.Worker.Name())
	}
	return nil, errs.New(errs.Unsupported, "the first process of the PID namespace: %s", printable.Text(string(said[:n])))
}

// findNest returns the best user namespace setup that works here, which it
// tries with a process that closes its sandbox and exits; nil: none works, or
// none is needed. It leaves the reasons for the others in s.denied.
func (s *Spawner) findNest(held security.Capabilities) *nest {
	if !security.Sandboxed || s.Root && (held.Has(unix.CAP_SYS_ADMIN) || s.Switches.DisableUserCheck) { // uid 0 can be put into none
		return nil
	}
	for i := range nests {
		s.nest = &nests[i]
		one, err := s.startFirst(s.Identity)
		if err == nil {
			one.stop()
			return s.nest
		}
		s.deny(err)
	}
	return nil
}

// deny records err as the reason for lacking the parts of the setup that is
// being tried.
func (s *Spawner) deny(err error) {
	if sys, ok := errors.AsType[unix.Errno](err); ok {
		err = sys // the operation is not needed
	}
	for p, row := range parts {
		if s.nest.has(row.flag) || part(p) == emptyBounding && s.nest.settles() {
			s.denied[p] = err
		}
	}
}

package spawn

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"schedrestd/become/stage"
	"schedrestd/internal/errs"
	"schedrestd/internal/thread"
	"schedrestd/security"
)

var (
	// SetIDCapabilities has the capabilities that a change of identity needs.
	SetIDCapabilities = security.Caps(unix.CAP_SETUID, unix.CAP_SETGID)
	// ServeCapabilities contains the capabilities that root needs to start and
	// end processes.
	ServeCapabilities = SetIDCapabilities | security.Caps(unix.CAP_KILL)
)

// CheckCapabilities returns an error if this process is root but lacks the
// capabilities to start and end processes of other users. Without this check,
// starting or ending a process would fail later.
func CheckCapabilities() error {
	held, err := security.EffectiveCapabilities()
	if err != nil || os.Geteuid() != 0 || held&ServeCapabilities == ServeCapabilities {
		return err
	}
	return errs.New(errs.Denied, "root without the capabilities to start and stop workers, CAP_KILL, CAP_SETGID and CAP_SETUID").
		WithHint("add them (CapabilityBoundingSet= of a unit, --cap-add of a container), or start as the serving user without -u")
}

// New makes a Spawner with as much confinement as the capabilities of this
// process allow. With CAP_SYS_ADMIN, all processes share one root directory and
// the namespaces of the Spawner's thread. Without CAP_SYS_ADMIN, each process
// gets its own user namespace, if the kernel permits that, and creates its
// other namespaces there. The parent drops CAP_SYS_ADMIN after it has made its
// first Spawners, including the spare ones. It can still call New afterwards.
func New(o Options) (s *Spawner, err error) {
	s = &Spawner{Options: o}
	if s.null, err = os.Open(os.DevNull); err == nil {
		s.stage, err = os.OpenFile(stage.Program, unix.O_PATH, 0)
	}
	if err != nil {
		s.null.Close()
		return nil, errs.Wrap(err, errs.Internal, "prepare the start of workers")
	}
	if !o.Switches.DisableUnshareFiles {
		s.unshareFlags |= unix.CLONE_FILES
	}
	if !o.Switches.DisableUnshareSysV {
		s.unshareFlags |= unix.CLONE_SYSVSEM
	}
	s.Thread, err = thread.Start(s.prepareThread)
	if err == nil {
		s.inherited, err = security.ReadInheritance(s.threadID) // called on another thread, because the Spawner's thread does not appear in the /proc that it sees
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// NewReplacement makes a Spawner that can replace s. It returns an error if the
// new Spawner would confine processes less than s.
func (s *Spawner) NewReplacement() (*Spawner, error) {
	next, err := New(s.Options)
	if err == nil && !next.states.coversAll(s.states) {
		next.Stop()
		return nil, errs.New(errs.Unsupported, "the processes would lack parts of their confinement: %s", next.missingParts())
	}
	return next, err
}

// Stop ends the thread. The kernel then kills all remaining processes of s.
func (s *Spawner) Stop() {
	if s.namespaceInit != nil {
		s.namespaceInit.stop()
	}
	s.Thread.Stop()
	s.null.Close()
	s.stage.Close()
}

// timerSlack is the time, in nanoseconds, by which the timers of processes may
// fire late. The spawning thread sets it, and processes inherit it. They can't
// set it themselves, because Go's monitor thread starts before the program's
// own code. While a process is busy, its monitor thread sleeps for 20 µs at a
// time. With the usual slack of 50 µs, the monitor thread would interrupt other
// threads thousands of times a second.
const timerSlack = 1_000_000

// prepareThread sets the attributes of the calling thread. The processes that
// this thread starts inherit them. prepareThread records in s.states which
// parts of the confinement are on, and which are missing.
func (s *Spawner) prepareThread() error {
	s.threadID = unix.Gettid()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0)
	held, err := security.EffectiveCapabilities()
	if err == nil && s.Enter != nil {
		err = s.Enter()
	}
	if err != nil {
		return err
	}
	if !s.Plain {
		s.userNS = s.findUserNS(held)
		for p := range numParts {
			s.enterPart(p, held)
		}
	}
	if s.Root {
		if err := security.PassCapabilities(SetIDCapabilities); err != nil {
			return err
		}
	}
	dropped, err := security.DropBounding()
	if err != nil {
		return err
	}
	if !s.userNS.emptiesBounding() && (!dropped || s.userNS != nil) {
		err = s.missingReason(emptyBounding)
	}
	s.setState(emptyBounding, err)
	if err := security.NoNewPrivsThread(); err != nil {
		return err
	}
	s.setState(noNewPrivs, nil)
	// A service manager that sets a group also adds it to the supplementary
	// groups. If there is no other supplementary group, nothing needs to be
	// dropped.
	if !s.Root && slices.ContainsFunc(s.Identity.Groups, func(gid uint32) bool { return gid != s.Identity.GID }) {
		s.setState(noGroups, unix.EPERM)
	}
	return nil
}

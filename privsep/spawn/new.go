package spawn

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"schedrestd/become/stage"
	"schedrestd/errs"
	"schedrestd/privsep/thread"
	"schedrestd/security"
)

// ToBecome is the capabilities that a change of identity takes.
var ToBecome = security.Caps(unix.CAP_SETUID, unix.CAP_SETGID)

// New makes a Spawner with as much confinement as the capabilities of this process
// allow. With CAP_SYS_ADMIN, processes share namespaces that the thread entered, and
// a root. Without, each process gets a user namespace of its own, and in it the
// others, where the kernel permits that: this works at any time and any number of
// times. So the parent drops CAP_SYS_ADMIN when it has made the first Spawner and
// some to follow it (see Prepare).
func New(o Options) (*Spawner, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "prepare the start of workers")
	}
	own, err := unix.Open(stage.Program, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		null.Close()
		return nil, errs.Wrap(err, errs.Internal, "prepare the start of workers")
	}
	s := &Spawner{Options: o, null: null, stage: os.NewFile(uintptr(own), stage.Program)}
	if !o.Switches.DisableUnshareFiles {
		s.flags |= unix.CLONE_FILES
	}
	if !o.Switches.DisableUnshareSysV {
		s.flags |= unix.CLONE_SYSVSEM
	}
	s.Thread, err = thread.Start(s.diverge)
	if err == nil {
		s.inherited, err = security.Inherited(s.id) // which is not in the /proc that it sees itself
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// diverge makes the calling thread the one that processes inherit from. It
// records in layers what a start without root can't have.
func (s *Spawner) diverge() error {
	s.id = unix.Gettid()
	if s.Enter != nil {
		if err := s.Enter(); err != nil {
			return err
		}
	}
	held, err := security.Held()
	if err != nil {
		return err
	}
	if !s.Plain {
		s.nest = s.findNest(held)
		for p := range allParts {
			s.layers[p] = s.enter(p, held)
		}
	}
	if s.Root {
		if err := security.PassCapabilities(ToBecome); err != nil {
			return err
		}
	}
	dropped, err := security.DropBounding()
	if err != nil {
		return err
	}
	if !s.nest.settles() && (!dropped || s.nest != nil) {
		err = s.absent(emptyBounding)
	}
	s.layers[emptyBounding] = found(err)
	if err := security.NoNewPrivsThread(); err != nil {
		return err
	}
	s.layers[noNewPrivs] = found(nil)
	// A service manager that sets a group has it in the list, too.
	if !s.Root && slices.ContainsFunc(s.Identity.Groups, func(gid uint32) bool { return gid != s.Identity.GID }) {
		s.layers[noGroups] = found(unix.EPERM)
	}
	return nil
}

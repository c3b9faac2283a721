// Package spawn starts the processes of the gateway, confined and as somebody
// without privileges, and waits for their deaths.
//
// All of them are started by one locked thread, a Spawner. The thread entered
// namespaces that hold nothing and gave up what it could; each process inherits
// that before its first instruction. The package reads nothing of what processes
// send but their log lines, which it bounds, escapes and prefixes.
//
// Files import downwards: spawner.go makes the thread, start.go starts processes
// on it, and process.go, output.go, program.go and layer.go know neither.
package spawn

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become/stage"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/thread"
	"schedrestd/security"
	"schedrestd/security/root"
)

// Options is what a Spawner needs.
type Options struct {
	Root       bool              // identities can be changed
	Identity   security.Identity // of workers; without root the starter's
	Switches   ipc.Switches
	Seal       ipc.Seal      // how workers close their sandbox
	Plain      bool          // processes keep the machine's file system and network, as a resolver needs
	OneClient  bool          // it serves one client and ends
	PIDs       int           // most processes and threads in the PID namespace
	StartLimit time.Duration // for a process to report
	Worker     *os.File      // the worker's program
	Argv       []string      // … and its arguments
	Keeper     *os.File      // the keeper's program; nil: there is none
	Output     io.Writer     // for lines of processes
	Log        *slog.Logger

	sharedRoot bool // processes keep the machine's file system, for tests
}

// Spawner starts processes from one thread, locked for ever. The thread has entered
// namespaces that hold nothing, emptied its bounding set and taken no_new_privs; each
// process inherits that at no cost, before its first instruction. The thread must not
// end while processes live: their death signal hangs on it.
type Spawner struct {
	Options
	*thread.Thread
	id        int     // of the thread
	flags     uintptr // what each process unshares between fork and exec
	null      *os.File
	stage     *os.File   // this program, which root executes to start the others
	space     *root.Root // their file system; nil: the machine's
	first     *firstPID  // of their PID namespace; nil: it is the machine's, or each has its own
	nest      *nest      // what each process has that is born in a user namespace of its own; nil: none is
	inherited security.Inheritance
	denied    [allParts]error // by the last nest that was tried for it
	layers    layers          // but for what processes do to themselves
	number    *atomic.Uint32  // of the last process, of all spawners together
	succession
}

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
	s := &Spawner{Options: o, null: null, stage: os.NewFile(uintptr(own), stage.Program), number: new(atomic.Uint32)}
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

// diverge makes the calling thread the one that processes inherit from. What a start
// without root can't have is noted in layers.
func (s *Spawner) diverge() error {
	s.id = unix.Gettid()
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

// enter has the calling thread enter p, where that is how it is had.
func (s *Spawner) enter(p part, held security.Capabilities) layer {
	byThread := p == ipcNamespace || p == networkNamespace || p == ownRoot || p == pidNamespace
	switch why := s.unasked(p); {
	case s.nest.has(parts[p].flag):
		return found(nil)
	case why != "":
		return layer{is: ipc.PartOff, why: errors.New(why)}
	case !byThread && s.denied[p] == nil:
		return layer{}
	case !security.Caged:
		return found(errUncaged)
	case !byThread, !held.Has(unix.CAP_SYS_ADMIN):
		return found(s.absent(p))
	case p == ownRoot:
		return found(s.enterRoot())
	case p == pidNamespace:
		return found(s.enterPIDs())
	}
	return found(unix.Unshare(int(parts[p].flag)))
}

// absent returns why p, which root enters or a nest has, is not there.
func (s *Spawner) absent(p part) error {
	if p != userNamespace && s.denied[userNamespace] != nil && s.nest == nil {
		return errNoNest
	}
	return cmp.Or(s.denied[p], error(unix.EPERM))
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

// InUserNamespaces reports whether each process is now born in a user namespace of its own.
func (s *Spawner) InUserNamespaces() bool { return s.InUse().nest != nil }

// Answer returns when the thread has nothing else to do, or is no longer needed.
func (s *Spawner) Answer() { s.Do(func() {}) }

// Stop ends the thread, and with it every process that is left.
func (s *Spawner) Stop() {
	s.succession.stop()
	s.first.stop()
	if s.Thread != nil {
		s.Thread.Stop()
	}
	s.null.Close()
	s.stage.Close()
}

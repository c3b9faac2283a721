// Package spawn starts the processes of the gateway, confined and without
// privileges, and waits for their deaths.
//
// All of them are started by one locked thread, a Spawner. The thread entered
// namespaces that hold nothing and gave up what it could; each process inherits
// that before its first instruction. The package reads nothing that processes send.
//
// The files from the top: start.go and prove.go start processes for the parent;
// succession.go chooses the Spawner; new.go makes it; namespaces.go is what it enters;
// execute.go starts a process on its thread. The others know no Spawner.
package spawn

import (
	"cmp"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

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
	Enter      func() error  // called on the thread first; nil: nothing is
	Plain      bool          // processes keep the machine's file system and network, as a resolver needs
	OneClient  bool          // it serves one client and ends
	PIDs       int           // most processes and threads in the PID namespace
	StartLimit time.Duration // for a process to report
	Worker     *os.File      // the worker's program
	Argv       []string      // … and its arguments
	Keeper     *os.File      // the keeper's program; nil: there is none
	Log        *slog.Logger
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
	nest      *nest      // the user namespace setup of each process; nil: none has one
	inherited security.Inheritance
	denied    [allParts]error // by the last nest that was tried for it
	layers    layers          // except what processes do to themselves
	succession
}

// succession is the spawner that follows another one.
type succession struct {
	once     sync.Once
	follower *Spawner
	failed   error
}

// stop ends the follower. None is made after it.
func (f *succession) stop() {
	f.once.Do(func() {})
	if f.follower != nil {
		f.follower.Stop()
	}
}

// unasked returns why a part is switched off; "" when it is not.
func (o *Options) unasked(p part) string {
	switch {
	case p == descriptorTable && o.Switches.DisableUnshareFiles:
		return "disable_unshare_files"
	case p == ipcNamespace && o.Switches.DisableUnshareSysV:
		return "disable_unshare_sysv"
	case p == pidNamespace && o.OneClient && !o.Switches.RequireConfinement:
		return "one client" // whose worker is not worth two processes
	case p == callFilter && o.Switches.AuditConfinement:
		return "audit_confinement: it logs, and kills no process"
	}
	return ""
}

// absent returns why p, which root enters or a nest has, is not there.
func (s *Spawner) absent(p part) error {
	if p != userNamespace && s.denied[userNamespace] != nil && s.nest == nil {
		return errNoNest
	}
	return cmp.Or(s.denied[p], error(unix.EPERM))
}

// IsLost reports whether the PID namespace has ended, and the parent did not end it.
func (s *Spawner) IsLost() bool {
	if s.first == nil || s.first.stopped.Load() {
		return false
	}
	select {
	case <-s.first.Dead:
		return true
	default:
		return false
	}
}

// Lost returns a channel that is closed when the first process of the PID namespace
// has ended, and everything in it. It is nil where there is no such process.
func (s *Spawner) Lost() <-chan struct{} {
	if s.first == nil {
		return nil
	}
	return s.first.Dead
}

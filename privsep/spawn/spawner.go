// Package spawn starts the processes of the gateway, confined and without
// privileges, and waits for their deaths.
//
// All of them are started by one locked thread, a Spawner. The thread entered
// namespaces that hold nothing and gave up what it could; each process inherits
// that before its first instruction. The package reads nothing that processes send.
//
// The files from the top: start.go and prove.go start processes for the parent;
// new.go makes a Spawner; namespaces.go is what it enters;
// execute.go starts a process on its thread. The others know no Spawner.
package spawn

import (
	"cmp"
	"log/slog"
	"os"
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
	Log        *slog.Logger
}

// Spawner starts processes from one thread that is locked permanently. The thread has
// entered empty namespaces, emptied its bounding set and set no_new_privs. Each process
// inherits these before its first instruction, at no cost. The thread must not end while
// its processes run, because the kernel would send them their death signal.
type Spawner struct {
	Options
	*thread.Thread
	id        int     // of the thread
	flags     uintptr // what each process unshares between fork and exec
	null      *os.File
	stage     *os.File   // this program, which root executes to start the others
	space     *root.Root // their file system; nil: the machine's
	first     *Started   // the init process of their PID namespace; nil: it is the machine's, or each has its own
	nest      *nest      // the user namespace setup of each process; nil: none has one
	inherited security.Inheritance
	denied    [allParts]error // by the last nest that was tried for it
	layers    layers          // except what processes do to themselves
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

// IsEnding reports whether a PID namespace in which no process starts any more has
// ended. It waits a moment for the end, which comes when all processes in there have
// been waited for.
func (s *Spawner) IsEnding() bool { return s.first != nil && s.first.awaitDeath(lastWords) }

// Lost returns a channel that is closed when the PID namespace has ended, with its first
// process and all others. The channel is nil if there is no such process.
func (s *Spawner) Lost() <-chan struct{} {
	if s.first == nil {
		return nil
	}
	return s.first.Dead
}

// Package spawn starts the processes of the gateway, confined and without
// privileges, and waits for them to exit.
//
// A Spawner starts processes from one locked thread. That thread has entered
// empty namespaces and dropped its privileges, as far as the kernel and the
// gateway's user permit. Each process inherits this state before its first
// instruction. The package reads nothing that processes send, except the report
// and the log of the process that tests the sandbox (prove.go).
//
// The files start.go and prove.go start processes for the parent, new.go makes
// a Spawner, namespaces.go enters the namespaces, and execute.go starts a
// process on the Spawner's thread. The other files have helpers.
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

// Options configures a Spawner.
type Options struct {
	Root       bool              // identities can be changed
	Identity   security.Identity // identity of workers; without root that of the user who started the gateway
	Switches   ipc.Switches
	Sandbox    ipc.SandboxOptions // how workers close their sandbox
	Enter      func() error       // called first on the thread; nil: no call
	Plain      bool               // processes keep the machine's file system and network, as a resolver needs
	OneClient  bool               // the gateway serves one client and ends
	PIDs       int                // maximum of processes and threads in the PID namespace
	StartLimit time.Duration      // how long a process may take to report
	Worker     *os.File           // the worker's program
	Argv       []string           // … and its arguments
	Log        *slog.Logger
}

// Spawner starts processes from one permanently locked thread. The thread has
// entered empty namespaces, emptied its bounding set and set no_new_privs. Each
// process inherits this state before its first instruction, at no cost. The
// thread must not end while its processes run, because the kernel would then
// send them their death signal.
type Spawner struct {
	Options
	*thread.Thread
	threadID      int     // the thread's number
	unshareFlags  uintptr // namespaces that each process unshares between fork and exec
	null          *os.File
	stage         *os.File     // this program, which root executes to start the other programs
	rootFS        *root.Root   // the processes' file system; nil: the machine's
	namespaceInit *Child       // the init process of the shared PID namespace; nil: processes are in the machine's, or each has its own
	userNS        *userNSSetup // the user namespace setup of each process; nil: none has one
	inherited     security.Inheritance
	partErrors    [numParts]error // for each part, the error of the last user namespace setup that would have provided it
	states        partStates
}

// offReason returns the reason why a part is switched off, or "" if it is not.
func (o *Options) offReason(p part) string {
	switch {
	case p == descriptorTable && o.Switches.DisableUnshareFiles:
		return "disable_unshare_files"
	case p == ipcNamespace && o.Switches.DisableUnshareSysV:
		return "disable_unshare_sysv"
	case p == pidNamespace && o.OneClient && !o.Switches.RequireConfinement:
		return "one client" // a worker that serves one client is not worth a second process
	}
	return ""
}

// missingReason returns the reason why the part p is missing:
//   - errNoUserNS, if p needs a user namespace and none could be set up
//   - the error of the last user namespace setup that would have provided p
//   - EPERM, if there was no such setup, because only a thread with
//     CAP_SYS_ADMIN can enter p without a user namespace
func (s *Spawner) missingReason(p part) error {
	if p != userNamespace && s.partErrors[userNamespace] != nil && s.userNS == nil {
		return errNoUserNS
	}
	return cmp.Or(s.partErrors[p], error(unix.EPERM))
}

// NamespaceEnded reports whether the PID namespace has ended. Call it after a
// process could not be started there. It waits a moment, because the namespace
// ends only when all its processes have been reaped.
func (s *Spawner) NamespaceEnded() bool {
	return s.namespaceInit != nil && s.namespaceInit.awaitExit(exitTimeout)
}

// NamespaceDone returns a channel that is closed when the PID namespace has
// ended with all its processes. If there is no init process, the channel is
// nil.
func (s *Spawner) NamespaceDone() <-chan struct{} {
	if s.namespaceInit == nil {
		return nil
	}
	return s.namespaceInit.Exited
}

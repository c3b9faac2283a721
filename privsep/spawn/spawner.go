// Package spawn starts the processes of the gateway, confined and without
// privileges, and waits for them to exit.
//
// A Spawner starts processes from one locked thread. That thread has entered
// empty namespaces and dropped its privileges, as far as the kernel permits
// this for the user who started the gateway. Each process inherits this state
// before its first instruction. The package reads nothing that processes send,
// except the report and the log of the process that tests the sandbox
// (prove.go).
//
// The code that starts processes for the parent is in start.go and prove.go.
// The code that makes a Spawner is in new.go, and the code that enters the
// namespaces is in namespaces.go. The code that starts a process on the
// Spawner's thread is in execute.go. The other files contain helpers.
package spawn

import (
	"cmp"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/thread"
	"schedrestd/ipc"
	"schedrestd/security"
	"schedrestd/security/root"
)

// Options configures a Spawner.
type Options struct {
	Root       bool              // identities can be changed
	Identity   security.Identity // identity of the workers; without root, the identity of the user who started the gateway
	Switches   ipc.Switches
	Sandbox    ipc.SandboxOptions // how workers close their sandbox
	Enter      func() error       // called on the thread before it enters any other namespace; may be nil
	Plain      bool               // processes keep the machine's file system and network, which a resolver needs
	OneClient  bool               // the gateway serves one client and ends
	PIDs       int                // maximum number of processes and threads in the PID namespace
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
	unshareFlags  uintptr // CLONE flags for what each process unshares between fork and exec
	null          *os.File
	stage         *os.File     // this program, which root executes to start the other programs
	rootFS        *root.Root   // the processes' file system; nil: the machine's
	namespaceInit *Child       // the init process of the shared PID namespace; nil: processes are in the machine's PID namespace, or each has its own
	userNS        *userNSSetup // the user namespace setup of each process; nil: processes get no user namespaces
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
		return "one client" // for a worker that serves only one client, an additional init process is not worthwhile
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
// process could not be started in the namespace. NamespaceEnded waits a moment,
// because the namespace ends only when all its processes have been reaped.
func (s *Spawner) NamespaceEnded() bool {
	return s.namespaceInit != nil && s.namespaceInit.awaitExit(exitTimeout)
}

// NamespaceDone returns a channel that is closed when the PID namespace and all
// its processes have ended. If there is no init process, the channel is nil.
func (s *Spawner) NamespaceDone() <-chan struct{} {
	if s.namespaceInit == nil {
		return nil
	}
	return s.namespaceInit.Exited
}

// Package spawn starts the processes of the gateway, confined and without
// privileges, and waits for their deaths.
//
// A Spawner starts processes from one locked thread. That thread has entered
// empty namespaces and given up its privileges, as far as the kernel and the
// user of the gateway permit. Each process inherits this state before its first
// instruction. The package reads nothing that processes send, except the report
// and the log of the process that tests the sandbox (prove.go).
//
// The files from the top: start.go and prove.go start processes for the parent;
// new.go makes a Spawner; namespaces.go enters the namespaces; execute.go
// starts a process on the Spawner's thread. The other files have what these
// use.
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

// Spawner starts processes from one thread that is locked permanently. The
// thread has entered empty namespaces, emptied its bounding set and set
// no_new_privs. Each process inherits this state before its first instruction,
// at no cost. The thread must not end while its processes run, because the
// kernel would then send them their death signal.
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

// offReason returns why a part is switched off; "" when it is not.
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

// missingReason returns why part p is missing. It returns errNoUserNS if p
// needs a user namespace and none could be set up, and otherwise the error of
// the last user namespace setup that would have provided p. If there was no
// such setup, it returns EPERM: only a thread with CAP_SYS_ADMIN can enter a
// namespace without a user namespace of its own.
func (s *Spawner) missingReason(p part) error {
	if p != userNamespace && s.partErrors[userNamespace] != nil && s.userNS == nil {
		return errNoUserNS
	}
	return cmp.Or(s.partErrors[p], error(unix.EPERM))
}

// NamespaceEnded reports whether the PID namespace has ended. Call it when no
// process can be started there. It waits for a moment, because the namespace
// ends only when all processes in it have been waited for.
func (s *Spawner) NamespaceEnded() bool {
	return s.namespaceInit != nil && s.namespaceInit.awaitExit(exitTimeout)
}

// NamespaceDone returns a channel that is closed when the PID namespace has
// ended, with its init process and all others. The channel is nil if there is
// no init process.
func (s *Spawner) NamespaceDone() <-chan struct{} {
	if s.namespaceInit == nil {
		return nil
	}
	return s.namespaceInit.Exited
}

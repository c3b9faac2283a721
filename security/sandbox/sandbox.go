// Package sandbox closes the sandbox of a process. This is the last step of a
// worker or a service before it sends Ready: from then on the process can open
// no file, start no program and make no connection, and few system calls work.
// An attacker who captures the process has only its memory, its descriptors and
// the few calls that serve requests. There is one exception: the dispatcher can
// also open files for reading and connect over TCP.
//
// Start with Close. It always takes these three steps, in this order:
//
//	denyFiles      Landlock: no files and no TCP, even through a hole in the filter;
//	               denyWriting for the dispatcher: no changes of files
//	installFilter  seccomp on all threads: a table of calls; a call without a row kills the process
//	runProbes      the proof: forbidden operations are tried and must return EPERM
//
// For the operations that runProbes tries, the filter returns an error and does
// not kill the process, so that a worker can test them itself. Death tests
// prove that other calls kill: a process makes one call of DeathTests with
// RunDeathTest, and must be killed.
//
// The allowed calls are a table (table.go), one row for each call with its
// arguments and its reason. testdata/*.filter shows the table. The table has
// the calls that our programs and Go's runtime make. The filter checks
// arguments: signals reach only the process itself, clone creates only threads,
// and memory is never executable.
//
// The filter can't be removed, and only Options can make it allow more calls.
// Rows are written by hand. When a new version of Go needs another call, SIGSYS
// kills the tests, and a developer adds a row. With Options.Audit the kernel
// logs calls instead of killing, for kernels and versions of Go that have not
// been tested.
//
// The parent does not link this package, because the parent can't run in such a
// sandbox.
package sandbox

// Kind is a kind of process. Each kind has its own table.
type Kind uint8

// The kinds of processes.
const (
	Worker     Kind = iota
	Keeper          // no connections and no poll
	Auditor         // the keeper's table with fdatasync, but without calls that read or change an open file
	Dispatcher      // TCP, channels and files for reading; it sends descriptors
	Exporter        // the worker's table, and accepting connections
)

// Options selects the table.
type Options struct {
	Kind   Kind
	Claims bool // auditor: calls that read and write a file at a position, and that lock it
	Unix   bool // worker: it may create UNIX stream sockets and connect them, because munged and the controller must see the worker's own uid
	Audit  bool // the kernel logs calls that would kill (SECCOMP_RET_LOG), and allows them
}

// Channel is the descriptor of the channel to the parent. Workers and the
// exporter can receive descriptors only over this channel.
const Channel = 3

// Package seal closes the sandbox of a process. It is the last step of a worker
// or a service before it sends Ready: from then on it can open no file, start
// no program and make no connection, and few system calls work. An attacker who
// captures it has only what it holds and the few calls that serve requests. The
// dispatcher can also open files for reading and connect over TCP.
//
// Start with Close, which takes three steps in this order, and never only some
// of them:
//
//	denyFiles  Landlock: no files and no TCP, even through a hole in the filter;
//	           denyWriting for the dispatcher: no changes of files
//	install    seccomp on all threads: a list of allowed calls; all others kill the process
//	try        the proof: forbidden operations are tried and must return EPERM
//
// The operations that try uses return an error instead of killing, so that a
// worker can prove them. That all others kill is proven by death tests:
// processes that make one call of Acts each, with Commit.
//
// The allowed calls are a table (table.go), one row for each call with its
// arguments and its reason. It follows from what the worker and Go's runtime
// do; testdata/*.filter shows it. The filter checks arguments: signals reach
// only the process itself, clone creates only threads, and memory is never
// executable.
//
// The filter can't be removed, and only Options can make it allow more calls.
// Rows are written by hand: when a new version of Go needs another call, SIGSYS
// kills the tests, and a person adds the row. Options.Audit logs instead of killing, for
// kernels and versions that were not tried yet.
//
// The parent does not link this package, because it can't run in that sandbox.
package seal

// Kind is a kind of process, each of which has its table.
type Kind uint8

// The kinds of processes.
const (
	Worker     Kind = iota
	Keeper          // no connections and no poll
	Auditor         // the keeper's table without calls that read or change an open file, and with fdatasync
	Dispatcher      // TCP, channels and files for reading; it sends descriptors
	Exporter        // the worker's table, and accepting
)

// Options selects the table.
type Options struct {
	Kind   Kind
	Claims bool // auditor: calls that read and write a file at a place, and lock it
	Unix   bool // worker: UNIX stream sockets may be created and connected: munged and the controller need the worker's own uid
	Audit  bool // the kernel logs calls that would kill (SECCOMP_RET_LOG), and allows them
}

// Channel is the descriptor of the channel to the parent, the only one over
// which descriptors can be received.
const Channel = 3

// Package seal is what a worker or the keeper does to itself last, before it says Ready: from then on it
// can open no file, start no program, make no connection, and hardly any call of the kernel answers it. Who
// captures it is left with what it holds and with the few calls that serve requests.
//
// The way in is Close, which takes three steps, in this order; there is no half of it:
//
//	denyFiles  Landlock: no file, no TCP, whatever a later hole in the filter lets through
//	install    seccomp on all threads: a list of what is allowed; all else kills the process
//	try        the proof: what is forbidden is tried, and has to be answered with EPERM
//
// What is tried has to answer instead of kill, so that a worker can be asked to prove it. That
// all else kills is proven by processes that exist to die: each does one of Acts with Commit.
//
// What is allowed is a table (table.go), one row for each call with its arguments and its reason, read
// off the worker's and Go's runtime's behaviour and kept for reading in testdata/*.filter. The filter looks at arguments: a
// signal reaches the own process only, a clone makes a thread and nothing else, memory that can be executed is
// not to be had.
//
// It refuses to be undone, to allow anything by configuration but the few Options, and to guess: a new version of Go
// that needs another call dies of SIGSYS in the tests, and its row is then written by a person. Options.Audit logs
// where others die, for kernels and versions that nobody has tried.
//
// The parent does not link this package: it can't live in that cage.
package seal

// Options is what the table is made for.
type Options struct {
	Keeper  bool // the keeper's table: no connection of any kind, no poll
	Appends bool // of the keeper's, without what could change or read what is in an open file, and with what brings it to the disk
	Unix    bool // UNIX stream sockets may be made and connected: munged and a controller that want the worker's own uid
	Audit   bool // what would kill is logged by the kernel (SECCOMP_RET_LOG), and let through
}

// Channel is the descriptor of the channel to the parent: nobody else's descriptors can be received.
const Channel = 3

// Package sandbox closes the sandbox of a process. This is the last step of a
// worker or a service before it sends Ready. After this step the process can
// open no files, start no programs and make no connections, and can use only a
// few system calls. An attacker who captures the process has only its memory,
// its descriptors and the few calls that serve requests. There are three
// exceptions: the dispatcher can also open files for reading and connect over
// TCP, the process that reads output can open files for reading, and a worker
// with Options.Unix and the process that gets credentials can connect to UNIX
// sockets.
//
// Start with Close. It always takes these three steps, in this order:
//
//	denyFiles      Landlock: no files and no TCP, even through a hole in the filter;
//	               denyWriting for those that open files: no changes of files
//	installFilter  seccomp on all threads: a table of calls; a call without a row kills the process
//	runProbes      the proof: forbidden operations are tried and must return EPERM
//
// For the operations that runProbes tries, the filter returns an error and does
// not kill the process. So a worker can test these operations itself. Death
// tests prove that other calls kill the process: a process uses RunDeathTest to
// make one of the calls that DeathTests names, and must be killed.
//
// A table (table.go) lists the allowed calls: the calls that our programs and
// Go's runtime make. Each row has a call, conditions for its arguments, and a
// reason. testdata/*.filter shows the table. The conditions ensure that signals
// reach only the process itself, that clone creates only threads, and that
// memory is never executable.
//
// The filter can't be removed, and only Options can make it allow more calls.
// Developers write the rows by hand. When a new version of Go needs another
// call, SIGSYS kills the tests, and a developer adds a row. Options.Audit is
// for kernels and versions of Go that have not been tested. With it, the kernel
// logs calls that would otherwise kill the process.
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
	Auditor         // the keeper's table with fdatasync, but without lseek, pread64 and F_SETFL
	Dispatcher      // it connects over TCP, opens files for reading, and sends descriptors over channels
	Exporter        // the worker's table, and accepting connections
	Output          // it opens files for reading
	Credential      // the keeper's table, and connecting to UNIX sockets
)

// Options selects the table.
type Options struct {
	Kind     Kind
	Claims   bool // auditor: it may read and write a file at a position, and lock the file
	Register bool // keeper: it may append to a file and lock it, but not end append mode
	Unix     bool // worker: it may create UNIX stream sockets and connect them, because munged and the controller must see the worker's own uid
	Audit    bool // the kernel logs calls that would otherwise kill the process, and allows them (SECCOMP_RET_LOG)
}

// Channel is the descriptor of the channel to the parent. Workers and the
// exporter can receive descriptors only over this channel.
const Channel = 3

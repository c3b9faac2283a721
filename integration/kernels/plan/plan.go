// Package plan defines the messages between a test and the first process of the
// machine that the test boots.
package plan

import "time"

// Step is one step in the machine. It writes files and then runs a program.
type Step struct {
	Name     string
	Write    map[string]string // contents by path
	Optional bool              // the step is skipped if the files can't be written
	Argv     []string
	UID      uint32 // also the gid
	Dir      string
	Env      []string
	Group    string // control group to run it in
	Limit    time.Duration
}

// Result is the result of a step.
type Result struct {
	Name   string
	Status int
	Took   time.Duration
	Output []byte
}

// Skipped is the status of an optional step that was skipped.
const Skipped = -2

// Prefixes of the console lines that the guest writes. They distinguish these
// lines from the kernel's.
const (
	Begin  = "@begin"
	Part   = "@ "
	End    = "@end"
	Note   = "@note "
	Failed = "@failed"
	Done   = "@over"
)

// Modules lists the kernel modules that the machine loads at its start. The
// kernel needs them to report the owners of TCP sockets. A normal machine loads
// them on demand.
var Modules = []string{"inet_diag", "tcp_diag"}

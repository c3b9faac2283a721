// Package plan is what the test and the first process of the machine that it boots say to each other.
package plan

import "time"

// Step is one thing to do in the machine: files are written, then a program is run.
type Step struct {
	Name     string
	Write    map[string]string // by path
	Optional bool              // the files need not be there to be written
	Argv     []string
	UID      uint32 // and the gid of that number
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

// Absent is the status of an optional step that could not be taken.
const Absent = -2

// These prefixes begin the console lines that the kernel did not write.
const (
	Begin  = "@begin"
	Part   = "@ "
	End    = "@end"
	Note   = "@note "
	Failed = "@failed"
	Over   = "@over"
)

package security

import (
	"fmt"
	"strings"
)

// Sandbox describes a closed sandbox (package sandbox). A process reports it to
// the parent. The parent then decides whether the process may serve.
type Sandbox struct {
	Filter   bool  // only listed system calls are allowed
	Audit    bool  // … and other calls are only logged: they do not kill the process
	Landlock uint8 // Landlock's version, or 0 if the kernel has no Landlock or it is switched off
	Denies   uint8 // what Landlock denies
}

// The denials of Landlock, joined with |.
const (
	DeniesFiles uint8 = 1 << iota
	DeniesTCP
	DeniesDevices
	DeniesAbstract
	DeniesSignals
	DeniesWriting // writing files, but not reading them
)

// denials names the bits, in order.
var denials = []string{"files", "TCP", "devices", "abstract UNIX sockets", "signals", "writing"}

// Layers returns a description of each layer: the system call filter, and
// Landlock. The description of a missing layer is empty.
func (s Sandbox) Layers() (filter, landlock string) {
	switch {
	case s.Filter && s.Audit:
		filter = "seccomp in audit"
	case s.Filter:
		filter = "seccomp"
	}
	if s.Landlock > 0 {
		var list []string
		for i, name := range denials {
			if s.Denies&(1<<i) != 0 {
				list = append(list, name)
			}
		}
		landlock = fmt.Sprintf("Landlock %d (%s)", s.Landlock, strings.Join(list, ", "))
	}
	return filter, landlock
}

// String returns the layers for the log, such as "seccomp, Landlock 7 (files,
// TCP)".
func (s Sandbox) String() string {
	filter, landlock := s.Layers()
	switch {
	case filter == "" && landlock == "":
		return "nothing"
	case filter == "":
		return landlock
	case landlock == "":
		return filter + ", no Landlock"
	}
	return filter + ", " + landlock
}

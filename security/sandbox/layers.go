package sandbox

import (
	"fmt"
	"strings"
)

// Layers describes a closed sandbox. A process reports it to the parent or the
// dispatcher in an ipc.Ready.
type Layers struct {
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

// Describe returns a description of each layer: the system call filter, and
// Landlock. The description of a missing layer is empty.
func (s Layers) Describe() (filter, landlock string) {
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

// String returns both descriptions in one line.
func (s Layers) String() string {
	filter, landlock := s.Describe()
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

package security

import (
	"fmt"
	"strings"
)

// Sealed is what a process reports about its closed sandbox (package seal). The
// parent decides by it.
type Sealed struct {
	Filter   bool  // only listed system calls are allowed
	Audit    bool  // … and others are logged instead of killing
	Landlock uint8 // version; 0: this kernel has none, or has it switched off
	Denies   uint8 // by Landlock
}

// The denials of Landlock, joined with |.
const (
	DeniesFiles uint8 = 1 << iota
	DeniesTCP
	DeniesDevices
	DeniesAbstract
	DeniesSignals
	DeniesWriting // of files, not their reading
)

// denials names the bits, in order.
var denials = []string{"files", "TCP", "devices", "abstract UNIX sockets", "signals", "writing"}

// Words returns the two layers in words; "" for a missing one.
func (s Sealed) Words() (filter, landlock string) {
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
func (s Sealed) String() string {
	filter, landlock := s.Words()
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

const sealedLine = "filter %t audit %t landlock %d denies %d"

// Line returns s as a line that another process reads with ReadSealed.
func (s Sealed) Line() string {
	return fmt.Sprintf(sealedLine, s.Filter, s.Audit, s.Landlock, s.Denies)
}

// ReadSealed parses what Line has written, and nothing else.
func ReadSealed(line string) (s Sealed, ok bool) {
	_, err := fmt.Sscanf(line, sealedLine, &s.Filter, &s.Audit, &s.Landlock, &s.Denies)
	return s, err == nil && s.Line() == line
}

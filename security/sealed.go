package security

import (
	"fmt"
	"strings"
)

// Sealed is how a process has closed its cage (package seal): facts, by which the parent decides.
type Sealed struct {
	Filter   bool  // a list of system calls is all that is left
	Audit    bool  // … and what is not on it is logged, and kills nobody
	Landlock uint8 // version; 0: this kernel has none, or has it switched off
	Denies   uint8 // by Landlock
}

// What Landlock denies, joined with |.
const (
	DeniesFiles uint8 = 1 << iota
	DeniesTCP
	DeniesDevices
	DeniesAbstract
	DeniesSignals
	DeniesWriting // of files, not their reading
)

// denials names them, in their order.
var denials = []string{"files", "TCP", "devices", "abstract UNIX sockets", "signals", "writing"}

// Words is what people are told of the two layers; "" of one that there is not.
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

// String is for the log, as "seccomp, Landlock 7 (files, TCP)".
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

// Line is s for who reads it off another process's output with ReadSealed.
func (s Sealed) Line() string {
	return fmt.Sprintf(sealedLine, s.Filter, s.Audit, s.Landlock, s.Denies)
}

// ReadSealed reads what Line has written, and nothing else.
func ReadSealed(line string) (s Sealed, ok bool) {
	_, err := fmt.Sscanf(line, sealedLine, &s.Filter, &s.Audit, &s.Landlock, &s.Denies)
	return s, err == nil && s.Line() == line
}

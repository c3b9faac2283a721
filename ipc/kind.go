package ipc

import (
	"fmt"
	"math/bits"
)

// Role is a process that holds an end of a channel. In a row of the book it may be
// several, joined with |.
type Role uint8

// The roles.
const (
	Parent Role = 1 << iota
	Worker
	Keeper
	Resolver
	Auditor
	Config
)

// Services are the roles of the unprivileged processes that work for the parent and for
// the workers.
const Services = Keeper | Resolver | Auditor

// roleNames are the roles' names, in the order of their bits.
var roleNames = []string{"parent", "worker", "keeper", "resolver", "auditor", "config"}

// Has tells whether one is among r.
func (r Role) Has(one Role) bool { return r&one != 0 }

// String returns the role's name in logs.
func (r Role) String() string {
	if i := bits.TrailingZeros8(uint8(r)); r == 1<<i && i < len(roleNames) {
		return roleNames[i]
	}
	return fmt.Sprintf("roles %#b", uint8(r))
}

// Phase is how far a channel has come. It only ever moves forward, by the Then
// column of the book. Each end keeps its own; they agree but for what is in flight.
type Phase uint8

// The phases, in order.
const (
	Born     Phase = iota // nothing was said
	Told                  // the process has its Setup, or ServiceSetup
	Proving               // it compares its posture with what it was told to expect
	Planned               // schedrestd-config sends the parts of its Plan
	Serving               // a worker takes connections, a service takes work
	Draining              // no more connections come to a worker; those held are finished
	Over                  // it refused; nothing may follow
	phases
)

// String returns the phase's name in logs and docs.
func (p Phase) String() string {
	return word(p, "born", "told", "proving", "planned", "serving", "draining", "over")
}

// word returns the word for v, of which there is one for each value.
func word[T ~uint8](v T, words ...string) string {
	if int(v) < len(words) && words[v] != "" {
		return words[v]
	}
	return fmt.Sprintf("unknown %d", v)
}

// Phases is a set of phases. The empty set is how every row starts: forbidden.
type Phases uint16

// In is the set of the given phases.
func In(list ...Phase) Phases {
	var s Phases
	for _, p := range list {
		s |= 1 << p
	}
	return s
}

// Has tells whether p is in the set.
func (s Phases) Has(p Phase) bool { return p < phases && s&(1<<p) != 0 }

// Kind is the first byte of a frame. Zero is not a kind.
type Kind uint8

// String is the kind's name in the book, or its number when it isn't there.
func (k Kind) String() string {
	if r := byKind[k]; r != nil {
		return r.Name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

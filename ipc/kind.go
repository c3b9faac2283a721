package ipc

import (
	"fmt"
	"math/bits"
)

// Role is a kind of process that holds one end of a channel. Several roles may
// be joined with |.
type Role uint16

const (
	Parent Role = 1 << iota
	Worker
	Keeper
	Resolver
	Auditor
	Config
	Dispatcher
	Acceptor // the part of the parent that accepts connections, and believes the keeper about users
	Exporter
	Output
	Credential
)

// Services are the unprivileged processes that work for the dispatcher and the
// workers. The dispatcher starts in the same way as a service.
const Services = Keeper | Resolver | Auditor | Exporter | Output | Credential

// Managers are the processes that share an end of the channel to a worker or a
// service. The parent makes the channel and sets up the process. Then it passes
// the end on to the dispatcher. A parent that keeps a copy uses it only to send
// an auditor another file. The worker or service can't see which of the two has
// sent a message, so the phase of the channel decides which of them may send it.
const Managers = Parent | Dispatcher

// roleNames holds the names of the roles, in the order of the roles' bits.
var roleNames = []string{"parent", "worker", "keeper", "resolver", "auditor", "config", "dispatcher", "acceptor", "exporter", "output", "credential"}

// Has reports whether r includes role.
func (r Role) Has(role Role) bool { return r&role != 0 }

// String returns the role's name in logs.
func (r Role) String() string {
	if r == Managers {
		return "parent or dispatcher"
	}
	if i := bits.TrailingZeros16(uint16(r)); r == 1<<i && i < len(roleNames) {
		return roleNames[i]
	}
	return fmt.Sprintf("roles %#b", uint16(r))
}

// Phase is the state of a channel. Some messages move the channel to a later
// phase: the one in the column Then of the protocol table. Each end of the
// channel has its own phase. The two phases differ only while messages are in
// flight.
type Phase uint8

// The phases, in order.
const (
	Initial    Phase = iota // no message was sent
	Configured              // the process has its Setup or ServiceSetup
	Proving                 // the process compares its attributes with the expected ones
	Planned                 // schedrestd-config sends the parts of its Plan
	Handover                // the process has sent Ready; until the dispatcher's first message, the parent's files may still arrive
	Serving                 // a worker takes connections, a service takes requests
	Draining                // a worker gets no more connections and finishes those that it has
	Closed                  // nothing may follow, for example because the process refused to serve
	numPhases
)

// String returns the phase's name in logs and docs.
func (p Phase) String() string {
	return Word(p, "new", "configured", "proving", "planned", "handover", "serving", "draining", "closed")
}

// Word returns words[v]. If there is no such word, it returns "unknown" and the
// number v.
func Word[T ~uint8](v T, words ...string) string {
	if int(v) < len(words) && words[v] != "" {
		return words[v]
	}
	return fmt.Sprintf("unknown %d", v)
}

// Phases is a set of phases. The empty set permits nothing.
type Phases uint16

// In returns the set of the given phases.
func In(list ...Phase) Phases {
	var s Phases
	for _, p := range list {
		s |= 1 << p
	}
	return s
}

// Has reports whether p is in the set.
func (s Phases) Has(p Phase) bool { return p < numPhases && s&(1<<p) != 0 }

// Kind is the first byte of a frame. Zero is not a kind.
type Kind uint8

// String returns the kind's name in the protocol table.
func (k Kind) String() string {
	if r := byKind[k]; r != nil {
		return r.Name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

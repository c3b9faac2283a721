package ipc

import (
	"fmt"
	"strings"
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

// String returns the role's name in logs and docs, or the names of several roles.
func (r Role) String() string {
	if r == 0 || r>>len(roleNames) != 0 {
		return fmt.Sprintf("role %d", uint8(r))
	}
	var names []string
	for i, name := range roleNames {
		if r.Has(1 << i) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
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

var phaseNames = [phases]string{"born", "told", "proving", "planned", "serving", "draining", "over"}

// String is the phase's name in logs and docs.
func (p Phase) String() string {
	if p < phases {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// phaseSet is a set of phases. The empty set is how every row starts: forbidden.
type phaseSet uint16

// in is the set of the given phases.
func in(list ...Phase) phaseSet {
	var s phaseSet
	for _, p := range list {
		s |= 1 << p
	}
	return s
}

// Has tells whether p is in the set.
func (s phaseSet) Has(p Phase) bool { return p < phases && s&(1<<p) != 0 }

// String lists the phases of the set, "never" when there is none.
func (s phaseSet) String() string {
	var names []string
	for p := range phases {
		if s.Has(p) {
			names = append(names, p.String())
		}
	}
	if names == nil {
		return "never"
	}
	return strings.Join(names, ", ")
}

// Kind is the first byte of a frame. Zero is not a kind.
type Kind uint8

// The kinds. Numbers are kept when a kind goes out of use.
const (
	KindSetup      Kind = 1
	KindPosture    Kind = 2
	KindReady      Kind = 3
	KindRefused    Kind = 4
	KindConnection Kind = 5
	KindDone       Kind = 6
	KindPing       Kind = 7
	KindPong       Kind = 8
	KindDrain      Kind = 9
	KindTaken      Kind = 10
	KindRetire     Kind = 11
	KindYield      Kind = 12
	KindStreams    Kind = 13
	KindProgress   Kind = 16
	KindDial       Kind = 17
	KindDialed     Kind = 18
	KindSign       Kind = 19
	KindSigned     Kind = 20
	KindVerify     Kind = 21
	KindVerified   Kind = 22

	KindServiceSetup Kind = 32
	KindClient       Kind = 33
	KindKept         Kind = 34
	KindServiceFD    Kind = 35
	KindUndialed     Kind = 41
	KindWho          Kind = 42
	KindKnown        Kind = 43
	KindOffence      Kind = 44
	KindPause        Kind = 45
	KindIntent       Kind = 47
	KindNoted        Kind = 48
	KindOutcome      Kind = 49
	KindBreach       Kind = 50
	KindStock        Kind = 51
	KindSpares       Kind = 52
	KindLogFD        Kind = 53
	KindFacts        Kind = 54
	KindGone         Kind = 55
	KindExited       Kind = 56
	KindFollow       Kind = 57
	KindFollowed     Kind = 58
	KindSecretKeys   Kind = 59
	KindKeys         Kind = 60

	KindConfigSetup Kind = 64
	KindVariable    Kind = 65
	KindOpenFile    Kind = 66
	KindOpenedFD    Kind = 67
	KindJudge       Kind = 68
	KindJudgement   Kind = 69
	KindNoPlan      Kind = 70
	KindPlan        Kind = 71
	KindPlanListen  Kind = 72
	KindPlanSubuids Kind = 73
	KindPlanSetup   Kind = 74
)

// String is the kind's name in the book, or its number when it isn't there.
func (k Kind) String() string {
	if r, ok := rowOf(k); ok {
		return r.Name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

package ipc

import "strings"

// These helpers are for tests of the whole protocol table, including the rows
// in packages query and work.

const (
	AllPhases = numPhases
	MaxFDs    = maxFDs
	Version   = tableVersion
)

var (
	Permit   = permit
	Decode   = Unmarshal
	ParseFDs = parseFDs
)

// Table returns all rows, sorted by kind.
func Table() (rows []*Row) {
	for _, r := range byKind {
		if r != nil {
			rows = append(rows, r)
		}
	}
	return rows
}

// RowOf returns the row of m.
func RowOf(m Message) *Row { return byKind[KindOf(m)] }

// Size returns the length of the row's messages in bytes, such as "8" or
// "2–34".
func (r *Row) Size() string { return r.size() }

// WalkFields calls visit for each field of m, as if m were encoded, and returns
// m.
func WalkFields(m Message, visit func(field any, label string, lo, hi int)) Message {
	m.Walk(&Walker{hook: visit})
	return m
}

// SetPhase puts the end into a phase.
func (c *Channel) SetPhase(p Phase) { c.phase = p }

// Fd returns the descriptor of the end.
func (c *Channel) Fd() uintptr { return c.file.Fd() }

// DecodePacket decodes one packet. It acts as a process with the role self
// whose channel is in the given phase. It also returns the channel's phase
// after the packet.
func DecodePacket(self, peer Role, phase Phase, frame, oob []byte) (Received, Phase, error) {
	c := &Channel{self: self, peer: peer, phase: phase}
	r, err := c.decodePacket(frame, oob, 0)
	return r, c.phase, err
}

// String lists the phases of the set. For an empty set it returns "never".
func (s Phases) String() string {
	var names []string
	for p := range numPhases {
		if s.Has(p) {
			names = append(names, p.String())
		}
	}
	if names == nil {
		return "never"
	}
	return strings.Join(names, ", ")
}

// Names returns the names of the roles in r.
func (r Role) Names() string {
	var names []string
	for i := range roleNames {
		if r.Has(1 << i) {
			names = append(names, Role(1<<i).String())
		}
	}
	return strings.Join(names, ", ")
}

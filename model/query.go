package model

import "time"

// Credential is who asks a daemon. The zero value is nobody's word but the kernel's, who
// names the peer on a UNIX socket.
type Credential struct {
	Token string // JWT, passed on as it came
	ActAs string // the user to act as; "": the token's own

	Expires time.Time // of Token, as it says itself: true when it is genuine; zero: not known
}

// String shows no token, whatever the verb.
func (c Credential) String() string { return "(credential)" }

// GoString is String.
func (c Credential) GoString() string { return c.String() }

// Local tells whether the kernel's word is all there is.
func (c Credential) Local() bool { return c.Token == "" }

// Query narrows what a daemon is asked to show.
type Query struct {
	Since Time // only when anything changed at or after it; 0: in any case
	Flags Show
}

// Or is q with other flags when it has none.
func (q Query) Or(flags Show) Query {
	if q.Flags == 0 {
		q.Flags = flags
	}
	return q
}

// Show is a set of what else to show.
type Show uint16

// The bits of Show, as they travel.
const (
	ShowAll        Show = 1   // hidden partitions and nodes too
	ShowDetail     Show = 2   // a job's allocation node by node
	ShowMixed      Show = 8   // nodes that are partly allocated as such
	ShowLocal      Show = 16  // of a federation this cluster alone
	ShowSibling    Show = 32  // of a federation the sibling jobs too
	ShowFederation Show = 64  // the whole federation
	ShowFuture     Show = 128 // nodes that are not there yet
)

// Kill is a set of how to send a signal to a job; the bits are as they travel.
type Kill uint16

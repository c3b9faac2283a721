package model

import "time"

// Credential identifies the client to a daemon. The zero value is valid only on
// a UNIX socket, where the kernel identifies the client.
type Credential struct {
	Token string // JWT, passed on as it came
	ActAs string // the user to act as; "": the token's own

	Expires time.Time // of Token, according to the token, whose signature was not checked; zero: not known
}

// String hides the token, whatever the verb.
func (c Credential) String() string { return "(credential)" }

// GoString hides the token like String.
func (c Credential) GoString() string { return c.String() }

// Local reports whether only the kernel identifies the client.
func (c Credential) Local() bool { return c.Token == "" }

// Query narrows the information that a daemon returns.
type Query struct {
	Since Time // only when anything changed at or after it; 0: in any case
	Flags Show
}

// Or returns q, with flags if it has none.
func (q Query) Or(flags Show) Query {
	if q.Flags == 0 {
		q.Flags = flags
	}
	return q
}

// Show are flags for additional information.
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

// Kill are flags for sending a signal to a job, with the values of the
// protocol.
type Kill uint16

package model

import "time"

// Credential identifies the client to a daemon. The zero value is valid only on
// a UNIX socket, where the kernel identifies the client.
type Credential struct {
	Token string // JWT, passed on unchanged
	ActAs string // user to act as; "" for the token's own user

	// Gateway is set if Token is a gateway token. The daemons get another token in
	// its place.
	Gateway bool

	Expires time.Time // expiry according to the token, whose signature is not checked; zero if unknown

	// Holder says whose share of limits the requests use: that of the user, once
	// the credential is verified, and before that of the client's address or
	// uid. It is never a name from a token that is not verified. If it is empty,
	// each token has a share of its own.
	Holder string
}

// String returns a text without the token, for the format verbs %v, %s, %q, %x
// and %X.
func (c Credential) String() string { return "(credential)" }

// GoString hides the token, like String.
func (c Credential) GoString() string { return c.String() }

// Local reports whether the client has no token. Such a client is identified
// only by the kernel.
func (c Credential) Local() bool { return c.Token == "" }

// Query limits the information that a daemon returns.
type Query struct {
	Since Time // return information only if something has changed at or after this time; 0 for always
	Flags Show

	// User limits a list of jobs to those of one user, by uid.
	User Opt[uint32]

	// Prompt means that the caller uses each record as soon as it is decoded,
	// without waiting for a client. So a long answer can be decoded while it
	// arrives, and need not be held in memory.
	Prompt bool

	// Undated says that the caller does not use the time of the list. The
	// list may then be one that was read earlier and has not changed since.
	Undated bool

	// Digest is set before each record of a list is passed on, unless it is nil:
	// to a hash of everything that the daemon has sent about the record. Each
	// process has other hashes.
	Digest *uint64

	// Without are parts of jobs that the caller does not need. They may be
	// missing or incomplete.
	Without JobParts
}

// JobParts are parts of a job that take long to decode.
type JobParts uint8

// The parts of a job.
const (
	JobAllocation  JobParts = 1 << iota // Resources
	JobNodeIndexes                      // NodeIndexes, ReqNodeIndexes, ExcNodeIndexes, Resources.NodeBitmap: a bit for each node of the cluster
)

// Or returns q unchanged if it has flags, and otherwise q with the given flags.
func (q Query) Or(flags Show) Query {
	if q.Flags == 0 {
		q.Flags = flags
	}
	return q
}

// Show are flags that request additional information.
type Show uint16

// The bits of Show, with the values of the protocol.
const (
	ShowAll        Show = 1   // include hidden partitions and nodes
	ShowDetail     Show = 2   // include each job's allocation on each node
	ShowMixed      Show = 8   // show partly allocated nodes as MIXED
	ShowLocal      Show = 16  // only this cluster of a federation
	ShowSibling    Show = 32  // include the sibling jobs of a federation
	ShowFederation Show = 64  // the whole federation
	ShowFuture     Show = 128 // include nodes that do not exist yet
)

// Kill is a set of flags for sending a signal to a job. The flags have the same
// values as in the protocol.
type Kill uint16

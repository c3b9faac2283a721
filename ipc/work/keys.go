package work

import "schedrestd/ipc"

// MaxPEM is the maximum size of a file with a private key or with certificates,
// in bytes.
const MaxPEM = 1 << 20

// maxTickets is the largest number of session ticket keys.
const maxTickets = 4

// Keys gives a worker the public keys of its generation, as open files, and the
// secret keys of TLS session tickets.
type Keys struct {
	ipc.PublicKeys

	// Tickets are the secret keys of TLS session tickets, newest first. Workers
	// encrypt tickets with the first key, and can decrypt them with any key.
	// The dispatcher makes one key for each generation, and adds the keys of
	// the two previous generations. All workers of a generation have the same
	// keys, so that a client can resume a session with another worker.
	Tickets [][32]byte
}

func (k *Keys) Walk(w *ipc.Walker) {
	k.PublicKeys.Walk(w)
	ipc.List(w, &k.Tickets, maxTickets, 32, func(k *[32]byte) { w.Bytes(k[:]) })
}

// maxPrivileged is the largest number of names of root and SchedUser.
const maxPrivileged = 32

// TokenRegister gives the keeper the register of gateway tokens
// (gatewaytoken.Register), as an open file, and what else decides about them.
type TokenRegister struct {
	Cluster    string   // ClusterName, which the tokens must contain
	Size       uint32   // what the dispatcher has found right, in bytes; the file may have grown since
	MinUID     uint32   // the lowest uid of a user for whom a token of another user acts
	SchedUID   uint32   // uid of SchedUser, for whom none acts
	Lifetime   uint32   // for how long a token that a client creates may be valid, in seconds; 0: it ends with the client's token
	Privileged []string // every name of root and SchedUser
}

func (t *TokenRegister) Walk(w *ipc.Walker) {
	w.Text(maxName, &t.Cluster)
	w.Fields(&t.Size, &t.MinUID, &t.SchedUID, &t.Lifetime)
	ipc.List(w, &t.Privileged, maxPrivileged, 2, func(name *string) { w.Text(maxName, name) })
}

// RegisterMoved says that the register of gateway tokens is another file than the one
// that the keeper can append to, which it got when it started.
type RegisterMoved struct{}

func (*RegisterMoved) Walk(*ipc.Walker) {}

// NoTokenRegister says that there is no register that can be used.
type NoTokenRegister struct{}

func (*NoTokenRegister) Walk(*ipc.Walker) {}

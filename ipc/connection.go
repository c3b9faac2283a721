package ipc

// Network is the kind of listener that a connection came through.
type Network uint8

// The networks.
const (
	TCP Network = iota + 1
	Unix
	Stdio // inetd mode: standard input and output that are no connected socket
)

// String returns the name of n as package net spells it.
func (n Network) String() string { return word(n, "", "tcp", "unix", "stdio") }

// Connection hands over one accepted connection: its descriptor comes with the
// message. All of it is the parent's and the kernel's word, nothing the client's.
type Connection struct {
	ID       uint64 // given by the parent, never used twice
	Network  Network
	Listener string // as it was configured
	Addr     string // of the peer, host:port; "" for a UNIX socket
	UID, GID uint32 // SO_PEERCRED; NoID for TCP
	PID      int32  // of the peer when it connected; 0 for TCP
	Vouched  bool   // UID and GID may stand for a user (become.Ucred.Vouch)
	TLS      bool   // the listener is an https:// one

	// Refuse is an HTTP status if the connection is not served: the worker answers it with
	// that, and with Retry-After if it is not 0, closes it, and reports nothing. ID is 0.
	Refuse, RetryAfter uint16
}

// NoID is the uid and gid of a peer that the kernel does not vouch for.
const NoID = 1<<32 - 1

func (c *Connection) Walk(w *Walker) {
	w.Fields(&c.ID)
	Enum(w, &c.Network, "network", TCP, Stdio)
	w.Text(maxAddress, &c.Listener, &c.Addr)
	w.Fields(&c.UID, &c.GID, &c.PID, &c.Vouched, &c.TLS, &c.Refuse, &c.RetryAfter)
}

// Streams hands over standard input and output of an inetd run that are a pipe, a file or a
// terminal, in this order. They are one connection. Its UID and GID are the owner's of what
// is behind standard input, Vouched when nobody else may open that.
type Streams struct {
	Connection
}

// Taken says that the worker has the connection ID and will read it from here on. Until
// then the parent keeps its copy: what waits in the channel of a worker that dies is
// given to another one, and its client notices nothing.
type Taken struct{ ID uint64 }

func (t *Taken) Walk(w *Walker) { w.Fields(&t.ID) }

// Done says that the connection ID is closed. A worker may say it once, and only
// of a connection that it holds: else a captured worker could free the slots of others.
type Done struct{ ID uint64 }

func (d *Done) Walk(w *Walker) { w.Fields(&d.ID) }

package ipc

// Network is the kind of listener that a connection came through.
type Network uint8

// The networks.
const (
	TCP Network = iota + 1
	Unix
	Stdio // inetd mode: standard input and output are not a connected socket
)

// String returns the name of n as package net spells it.
func (n Network) String() string { return Word(n, "", "tcp", "unix", "stdio") }

// Connection passes an accepted connection to a worker, with its descriptor.
// Its fields come from the parent and the kernel, none from the client.
type Connection struct {
	ID       uint64 // assigned by the sender and never reused
	Network  Network
	Listener string // the listener's address, as in the configuration
	Addr     string // of the peer, host:port; "" for a UNIX socket
	UID, GID uint32 // SO_PEERCRED; NoID for TCP
	PID      int32  // the peer's pid when it connected; 0 for TCP
	Verified bool   // UID and GID can belong to a user of the cluster (become.Ucred.Verify)
	TLS      bool   // the listener is an https:// one

	// RefuseStatus is 0 if the connection is to be served. Otherwise ID is 0,
	// and the worker refuses the connection: it answers with this HTTP status
	// and closes the connection, without a message to the dispatcher. The
	// answer has the header Retry-After unless RetryAfter is 0.
	RefuseStatus, RetryAfter uint16
}

// NoID is the uid and gid of a peer that the kernel can't identify.
const NoID = 1<<32 - 1

func (c *Connection) Walk(w *Walker) {
	w.Fields(&c.ID)
	Enum(w, &c.Network, "network", TCP, Stdio)
	w.Text(MaxAddress, &c.Listener, &c.Addr)
	w.Fields(&c.UID, &c.GID, &c.PID, &c.Verified, &c.TLS, &c.RefuseStatus, &c.RetryAfter)
}

// Streams passes the standard input and the standard output of an inetd run, in
// this order, if they are pipes, files or terminals. Together they form one
// connection. UID and GID belong to the owner of standard input. Verified is
// set if no other user may open standard input.
type Streams struct {
	Connection
}

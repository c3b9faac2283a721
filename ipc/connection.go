package ipc

// Network is the way in which a client is connected: over TCP, over a UNIX
// socket, or through standard input and output.
type Network uint8

const (
	TCP Network = iota + 1
	Unix
	Stdio // inetd mode: standard input and output are not a connected socket
)

// String returns the name of n as package net spells it.
func (n Network) String() string { return Word(n, "", "tcp", "unix", "stdio") }

// Connection passes an accepted connection, with its descriptor, to a worker.
// The values in the message come from the parent and the kernel, and none of
// them from the client.
type Connection struct {
	ID       uint64 // assigned by the sender and never reused
	Network  Network
	Listener string // the listener's address, as in the configuration
	Addr     string // the peer's address, host:port; "" for a UNIX socket
	UID, GID uint32 // SO_PEERCRED; NoID for TCP
	PID      int32  // the peer's pid when it connected; 0 for TCP
	Verified bool   // UID and GID can belong to a user of the cluster (become.Ucred.Verify)
	TLS      bool   // the listener is an https:// one

	// RefuseStatus is 0 if the worker is to serve the connection. Otherwise the
	// worker answers with this HTTP status and closes the connection. If
	// RetryAfter is not 0, the answer contains the header Retry-After. ID is 0
	// for a refused connection, and the worker sends the dispatcher no message
	// about it.
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

// StdioConnection passes two descriptors, if they are pipes, files or
// terminals: the standard input and the standard output of an inetd run, in
// this order. Together they form one connection. UID and GID belong to the
// owner of standard input. Verified is set if no other user can have written
// the input, and UID and GID can belong to a user of the cluster.
type StdioConnection struct {
	Connection
}

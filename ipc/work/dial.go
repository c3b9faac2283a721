package work

import (
	"net/netip"

	"schedrestd/ipc"
)

// Upstream is a kind of daemon that the dispatcher connects to for a worker. A
// worker names a daemon by an index into a list in Setup, and never by an
// address.
type Upstream uint8

const (
	UpstreamController      Upstream = iota // Setup.Controllers[Index]
	UpstreamAccounting                      // Setup.Accounting[Index]
	UpstreamFront                           // Setup.Front[Index]
	UpstreamSocket                          // Setup.AuthSocket
	UpstreamMunge                           // Setup.Munge.Socket
	UpstreamAccountingMunge                 // Setup.Munge.Accounting
	UpstreamSack                            // Setup.Sack[Index]
)

// Dial asks for a connection to a daemon. The worker itself has access to
// neither the network nor files.
type Dial struct {
	ID       uint64 // chosen by the worker and repeated in the answer
	Upstream Upstream
	Index    uint8
	Tried    []netip.Addr // addresses of the daemon's host at which the worker could not reach it
}

func (d *Dial) Walk(w *ipc.Walker) {
	w.Fields(&d.ID)
	ipc.Enum(w, &d.Upstream, "kind of upstream", UpstreamController, UpstreamSack)
	w.Fields(&d.Index)
	walkAddrs(w, &d.Tried, MaxAddresses)
}

// MaxAddresses limits the addresses of one host. More are ignored.
const MaxAddresses = 16

// maxAddr is the maximum encoded size of an IP address with its zone.
const maxAddr = 2 + 16 + 64

func walkAddrs(w *ipc.Walker, list *[]netip.Addr, limit int) {
	ipc.List(w, list, limit, 2, func(a *netip.Addr) { w.Fields(a) })
}

// At is the address of a daemon whose host the configuration names. It is empty if
// the configuration has an address, or a UNIX socket.
type At []netip.Addr

func (a *At) Walk(w *ipc.Walker) { walkAddrs(w, (*[]netip.Addr)(a), 1) }

// Dialed answers the Dial with the same ID. For a TCP address it passes a
// socket that is connected or connecting. For a UNIX socket it passes the
// socket's inode, as an O_PATH descriptor. The worker itself connects to that
// socket, so that the daemon sees the worker's identity and not the
// dispatcher's.
type Dialed struct {
	ID    uint64
	Owner uint32 // owner of the UNIX socket's directory: only this user or root may serve the socket; NoID for TCP

	// Server identifies the daemon's user in two cases in which the worker
	// itself can't do so. For a TCP address of this machine, Server is the uid
	// of the daemon's process. For a UNIX socket, if the worker is in a user
	// namespace, Server is the owner of the socket. In all other cases Server
	// is NoID.
	Server uint32
	At     At
}

func (d *Dialed) Walk(w *ipc.Walker) { w.Fields(&d.ID, &d.Owner, &d.Server, &d.At) }

// DialFailed reports that the Dial with the same ID failed.
type DialFailed struct {
	ID         uint64
	Errno      uint16 // the kernel's error number; EAGAIN: too many requests, or the host is being looked up, try again in a moment
	Unresolved bool   // the host has no known address
	At         At
}

func (u *DialFailed) Walk(w *ipc.Walker) { w.Fields(&u.ID, &u.Errno, &u.Unresolved, &u.At) }

// DialBatch asks for several connections to a daemon. Upstream and Index name
// the daemon, as in Dial. The answer is a DialedBatch or a ConnectedBatch. If
// several connections are impossible or not permitted, the dispatcher sends no
// answer, and the worker requests each connection with a Dial.
type DialBatch struct {
	Upstream  Upstream
	Index     uint8
	Connected bool // the daemon is on this machine and logs no error when a connection ends unused
}

func (s *DialBatch) Walk(w *ipc.Walker) {
	ipc.Enum(w, &s.Upstream, "kind of upstream", UpstreamController, UpstreamSack)
	w.Fields(&s.Index, &s.Connected)
}

// DialedBatch answers a DialBatch for a daemon on another machine. It passes
// sockets on which the dispatcher has called connect(2), with the options
// TCP_FASTOPEN_CONNECT and TCP_FASTOPEN_NO_COOKIE. With these options connect
// only stores the address, and the kernel connects on the first write. So the
// daemon notices a connection only when the worker uses it, and a busy worker
// can request many connections with one message.
type DialedBatch struct {
	DialBatch
	At At
}

func (b *DialedBatch) Walk(w *ipc.Walker) {
	b.DialBatch.Walk(w)
	w.Fields(&b.At)
}

// ConnectedBatchSize is the number of sockets in one ConnectedBatch. It is
// small, because the daemon accepts these connections before they are needed,
// and may limit the number of its connections.
const ConnectedBatchSize = 8

// ConnectedBatch answers a DialBatch for a daemon on this machine. The sockets
// are already connected, because only then can the dispatcher look up the
// process at the other end.
type ConnectedBatch struct {
	DialBatch
	Server uint32 // uid of the processes that serve the connections
	At     At
}

func (c *ConnectedBatch) Walk(w *ipc.Walker) {
	c.DialBatch.Walk(w)
	w.Fields(&c.Server, &c.At)
}

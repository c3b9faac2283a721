package work

import "schedrestd/ipc"

// Way is a kind of upstream that the parent connects to for a worker. A daemon is
// chosen by its index in a list of Setup; an address never comes from a worker.
type Way uint8

// The kinds of upstream.
const (
	WayController      Way = iota // Setup.Controllers[Index]
	WayAccounting                 // Setup.Accounting[Index]
	WayFront                      // Setup.Front[Index]
	WaySocket                     // Setup.AuthSocket
	WayMunge                      // Setup.Munge.Socket
	WayAccountingMunge            // Setup.Munge.Accounting
)

// The connections to daemons that a worker may ask for: at once, and per second. It
// opens one for each question that it asks a daemon.
const (
	DialBurst = 4000
	DialRate  = 5000
)

// Dial asks for a connection to a daemon, because a worker has no access to the
// network and to files.
type Dial struct {
	ID    uint64 // chosen by the worker and repeated in the answer
	Way   Way
	Index uint8
}

func (d *Dial) Walk(w *ipc.Walker) {
	w.Fields(&d.ID)
	ipc.Enum(w, &d.Way, "way", WayController, WayAccountingMunge)
	w.Fields(&d.Index)
}

// Dialed answers the Dial with the same ID. For a TCP address it carries a socket
// that is connected or connecting. For a UNIX socket it carries the inode as an
// O_PATH descriptor, and the worker connects by itself: the daemon must see the
// identity of the worker, not that of the parent.
type Dialed struct {
	ID     uint64
	Owner  uint32 // of the UNIX socket's directory: this user or root may serve it; NoID for TCP
	Server uint32 // uid of the serving process where the worker can't see it: for a TCP address of this machine, and for a UNIX socket when the worker is in a user namespace; otherwise NoID
}

func (d *Dialed) Walk(w *ipc.Walker) { w.Fields(&d.ID, &d.Owner, &d.Server) }

// Undialed reports that the Dial with the same ID failed.
type Undialed struct {
	ID    uint64
	Errno uint16 // the kernel's error number; EAGAIN: too many requests, try again in a moment
}

func (u *Undialed) Walk(w *ipc.Walker) { w.Fields(&u.ID, &u.Errno) }

// Stock asks for Spares of a daemon, which is named as in Dial.
type Stock struct {
	Way   Way
	Index uint8
}

func (s *Stock) Walk(w *ipc.Walker) {
	ipc.Enum(w, &s.Way, "way", WayController, WayAccountingMunge)
	w.Fields(&s.Index)
}

// Spares answers a Stock. The parent has called connect(2) on each socket with
// TCP_FASTOPEN_CONNECT (and without a fast-open cookie), so that the kernel connects
// on the first write. A busy worker thus sends one request for many connections, the
// daemon notices a connection only when it is used, and the parent still chooses the
// address.
type Spares struct{ Stock }

package ipc

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
	WaySack                       // Setup.Sack[Index]
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

func (d *Dial) Walk(w *Walker) {
	w.Fields(&d.ID)
	Enum(w, &d.Way, "way", WayController, WaySack)
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

func (d *Dialed) Walk(w *Walker) { w.Fields(&d.ID, &d.Owner, &d.Server) }

// Undialed reports that the Dial with the same ID failed.
type Undialed struct {
	ID    uint64
	Errno uint16 // the kernel's error number; EAGAIN: too many requests, try again in a moment
}

func (u *Undialed) Walk(w *Walker) { w.Fields(&u.ID, &u.Errno) }

// SpareCount is the number of sockets in one Spares.
const SpareCount = 32

// Stock asks for Spares of a daemon, which is named as in Dial.
type Stock struct {
	Way   Way
	Index uint8
}

func (s *Stock) Walk(w *Walker) {
	Enum(w, &s.Way, "way", WayController, WaySack)
	w.Fields(&s.Index)
}

// Spares answers a Stock. The parent has called connect(2) on each socket with
// TCP_FASTOPEN_CONNECT (and without a fast-open cookie), so that the kernel connects
// on the first write. A busy worker thus sends one request for many connections, the
// daemon notices a connection only when it is used, and the parent still chooses the
// address.
type Spares struct{ Stock }

// Who asks for the name of a user or a group, or for the number of a name. A worker
// can neither read the user database nor start a program that does.
type Who struct {
	ID     uint64 // chosen by the worker and repeated in the answer
	Group  bool
	Number uint32 // the number to find the name of, when Name is ""
	Name   string // the name to find the number of
}

func (q *Who) Walk(w *Walker) {
	w.Fields(&q.ID, &q.Group, &q.Number)
	w.Text(maxName, &q.Name)
}

// Known answers the Who with the same ID.
type Known struct {
	ID     uint64
	Sure   bool   // false: the user database is unavailable
	Name   string // for a number; "" when it is not assigned
	Number uint32 // for a name; NoID when it does not exist
}

func (k *Known) Walk(w *Walker) {
	w.Fields(&k.ID, &k.Sure)
	w.Text(maxName, &k.Name)
	w.Fields(&k.Number)
}

package ipc

// Way is what a worker may have its parent open for it. Which daemon of several is an index
// into the list of its Setup; an address never comes from a worker.
type Way uint8

// The ways.
const (
	WayController      Way = iota // Setup.Controllers[Index]
	WayAccounting                 // Setup.Accounting[Index]
	WayFront                      // Setup.Front[Index]
	WaySocket                     // Setup.AuthSocket
	WayMunge                      // Setup.Munge.Socket
	WayAccountingMunge            // Setup.Munge.Accounting
)

// Dial asks for a way to a daemon. A worker has no network and no file of its own.
type Dial struct {
	ID    uint64 // chosen by the worker; the answer has it too
	Way   Way
	Index uint8
}

func (d *Dial) Walk(w *Walker) {
	w.Fields(&d.ID)
	Enum(w, &d.Way, "way", WayController, WayAccountingMunge)
	w.Fields(&d.Index)
}

// Dialed is the answer to the Dial of the same ID. For a TCP address comes a socket that is being connected,
// or is already. For a UNIX socket comes its inode, as an O_PATH descriptor, through which the worker connects
// by itself: whom a daemon sees at the other end is who connected, and that must not be the parent.
type Dialed struct {
	ID     uint64
	Owner  uint32 // of the UNIX socket's directory, who may serve it beside root; NoID with TCP
	Server uint32 // uid of the process that serves it, where the worker can't see that: a TCP address of this machine, or a UNIX socket when the worker is in a user namespace; else NoID
}

func (d *Dialed) Walk(w *Walker) { w.Fields(&d.ID, &d.Owner, &d.Server) }

// Undialed says that the Dial of the same ID came to nothing.
type Undialed struct {
	ID    uint64
	Errno uint16 // as the kernel numbers it; EAGAIN: ask again in a moment, too many were asked for
}

func (u *Undialed) Walk(w *Walker) { w.Fields(&u.ID, &u.Errno) }

// SpareCount is how many sockets come with a Spares.
const SpareCount = 32

// Stock asks for Spares. Which daemon is said as in Dial.
type Stock struct {
	Way   Way
	Index uint8
}

func (s *Stock) Walk(w *Walker) {
	Enum(w, &s.Way, "way", WayController, WayAccountingMunge)
	w.Fields(&s.Index)
}

// Spares is the answer to a Stock. Each socket was told whom to connect to, and to wait with it for the first write
// (TCP_FASTOPEN_CONNECT, without fast open's cookie). So a busy worker asks for one connection in
// many, the daemon learns of none before it is used, and the address is the parent's word as ever.
type Spares struct{ Stock }

// Who asks for the name of a user or a group, or for the number of a name: a
// worker can open no database and start no program.
type Who struct {
	ID     uint64 // chosen by the worker; the answer has it too
	Group  bool
	Number uint32 // the number to find the name of, when Name is ""
	Name   string // the name to find the number of
}

func (q *Who) Walk(w *Walker) {
	w.Fields(&q.ID, &q.Group, &q.Number)
	w.Text(maxName, &q.Name)
}

// Known is the answer to the Who of the same ID.
type Known struct {
	ID     uint64
	Sure   bool   // false: the databases can't be asked now
	Name   string // of the number that was asked for; "" when nobody has it
	Number uint32 // of the name that was asked for; NoID when nobody has it
}

func (k *Known) Walk(w *Walker) {
	w.Fields(&k.ID, &k.Sure)
	w.Text(maxName, &k.Name)
	w.Fields(&k.Number)
}

package ipc

const (
	maxNamespaces = 16
	maxLink       = 64
)

// Attributes holds the expected process attributes that only the parent knows.
// The process compares them with what the kernel reports about it. Package self
// also checks attributes that are the same for every process.
type Attributes struct {
	UID, GID   uint32
	Groups     []uint32 // supplementary
	OwnUserns  bool     // in a user namespace of its own, which maps only UID and GID
	Bounding   string   // capability bounding set, as in /proc
	Seccomp    string   // mode, as in /proc; in a container, a process inherits the container's filter
	FileSize   uint64   // limit, in bytes
	MaxSize    uint64   // maximum to which the process may raise that limit
	Namespaces []Namespace
}

// Namespace is a namespace that a process must be in or, if MustDiffer is set,
// must not be in.
type Namespace struct {
	Type       string // name of the link in /proc/PID/ns, such as "ipc"
	ID         string // "ipc:[4026531839]"
	MustDiffer bool   // the process must be in a different namespace of this type
}

func (a *Attributes) Walk(w *Walker) {
	w.Fields(&a.UID, &a.GID)
	List(w, &a.Groups, maxGroups, 4, func(g *uint32) { w.Fields(g) })
	w.Fields(&a.OwnUserns)
	w.Text(maxLink, &a.Bounding, &a.Seccomp)
	w.Fields(&a.FileSize, &a.MaxSize)
	List(w, &a.Namespaces, maxNamespaces, 5, func(n *Namespace) {
		w.Text(maxLink, &n.Type, &n.ID)
		w.Fields(&n.MustDiffer)
	})
}

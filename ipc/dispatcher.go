package ipc

import "time"

// maxRefusal bounds the DenyReason of an Arrival, in bytes.
const maxRefusal = 255

// Dispatch tells the dispatcher how this run of the gateway serves.
type Dispatch struct {
	Run

	Name     string // name of the workers' user, for messages
	UID, GID uint32 // ids of the workers that do not run as their client

	StartLimit  time.Duration // time for a process to send Ready
	PingTimeout time.Duration // a process that answers no Ping for this time is killed

	Sandbox     Ready  // sandbox of a test process; zero in an inetd run, which starts no test
	Confinement []Part // the parts that workers inherit
}

func (d *Dispatch) Walk(w *Walker) {
	d.Run.Walk(w)
	w.Text(maxName, &d.Name)
	w.Fields(&d.UID, &d.GID, &d.StartLimit, &d.PingTimeout)
	w.Fields(&d.Sandbox)
	List(w, &d.Confinement, maxParts, 6, func(p *Part) { p.Walk(w) })
}

// Listening describes a listener of the parent.
type Listening struct {
	Network    Network
	Name       string // its address, or unix:PATH
	TLS        bool
	OtherNetns bool // in a different network namespace than the parent
}

func (l *Listening) Walk(w *Walker) {
	Enum(w, &l.Network, "network", TCP, Unix)
	w.Text(MaxAddress, &l.Name)
	w.Fields(&l.TLS, &l.OtherNetns)
}

// Arrivals gives the dispatcher two descriptors. The first is the channel on
// which the parent's acceptors send connections. The second is a netlink socket
// (NETLINK_SOCK_DIAG) of the parent's network namespace, which may differ from
// the dispatcher's.
type Arrivals struct{}

func (*Arrivals) Walk(*Walker) {}

// Arrival is an accepted connection with its descriptor. Start and Left refer
// to it by its ID.
type Arrival struct {
	Connection
	OtherNetns bool   // accepted in a different network namespace than the parent's
	DenyReason string // why the peer's user may have no worker; "" when the user may
}

func (a *Arrival) Walk(w *Walker) {
	w.Fields(&a.Connection, &a.OtherNetns)
	w.Text(maxRefusal, &a.DenyReason)
}

// Build announces a generation. Its configuration follows in SubuidRanges
// messages, and GenerationSetup ends it. The dispatcher answers with Outcome.
type Build struct {
	ID       uint32
	Keeper   bool // the generation has secret keys
	Audit    bool // the generation has an audit log
	Resolver bool // the generation has a resolver
}

func (b *Build) Walk(w *Walker) {
	w.Fields(&b.ID, &b.Keeper, &b.Audit, &b.Resolver)
}

// SubuidRanges has subordinate uids of the generation that is announced.
type SubuidRanges struct{ PlanSubuids }

// GenerationSetup has the Setup of a generation's workers and ends its
// announcement.
type GenerationSetup struct{ Setup }

// Verdict reports whether the keeper of the generation that is being built has
// accepted the secret keys. If it has, or if there is no keeper, the parent
// answers with PublicKeys. Otherwise Verdict has the keeper's reason, and the
// parent answers with Judgement. If Judgement is positive, the dispatcher
// starts another keeper, which gets the previous keys.
type Verdict struct{ Kept }

// PublicKeys has the keys that each worker of the generation gets. They are
// three open files, in this order: the certificates of the listeners and the
// certificate authorities of clients, both PEM, and the key set of RS256
// tokens, JSON. An empty file means that there are none. Workers share the file
// offsets and therefore use pread(2).
type PublicKeys struct {
	TLS         bool // there are certificates
	TLS12       bool // clients may use TLS 1.2
	Authorities bool // clients need a certificate, even if the file of authorities is empty
	Current     bool // no newer key set exists: a token that does not match it is forged
}

func (k *PublicKeys) Walk(w *Walker) { w.Fields(&k.TLS, &k.TLS12, &k.Authorities, &k.Current) }

// Outcome says whether the generation that was announced last is in force.
type Outcome struct {
	ID uint32
	OK bool
	Failure
}

func (o *Outcome) Walk(w *Walker) { w.Fields(&o.ID, &o.OK, &o.Failure) }

// Renew asks for a new generation with the same configuration, in place of the
// generation with this ID. The parent ignores Renew if that generation is no
// longer in force, or if a new generation is already being built.
type Renew struct{ ID uint32 }

func (r *Renew) Walk(w *Walker) { w.Fields(&r.ID) }

// Released reports that no process of the generation runs any longer.
type Released struct{ ID uint32 }

func (r *Released) Walk(w *Walker) { w.Fields(&r.ID) }

// Start asks for a process. Started or Unstarted answers it.
type Start struct {
	Number     uint32 // of the process; greater than all earlier ones
	Role       Role
	Generation uint32
	Client     uint64 // the ID of an Arrival; the worker runs as its user. 0: as the user in Dispatch
	Threads    uint32 // threads that run concurrently
	Requests   uint32 // requests that a worker may answer concurrently
}

func (s *Start) Walk(w *Walker) {
	w.Fields(&s.Number)
	Enum(w, &s.Role, "role", Worker, Exporter)
	w.Fields(&s.Generation, &s.Client, &s.Threads, &s.Requests)
}

// Started has the parent's end of the channel to a process, and the reading end
// of the process's log. The parent has already sent the process its setup and
// its Attributes.
type Started struct {
	Number    uint32
	PID       uint32
	UID, GID  uint32
	OwnUserns bool // it is in a user namespace of its own
}

func (s *Started) Walk(w *Walker) { w.Fields(&s.Number, &s.PID, &s.UID, &s.GID, &s.OwnUserns) }

// Unstarted says why a process was not started.
type Unstarted struct {
	Number uint32
	Failure
}

func (u *Unstarted) Walk(w *Walker) { w.Fields(&u.Number, &u.Failure) }

// Signal asks for a signal to a process.
type Signal struct {
	Number uint32
	Kill   bool // SIGKILL; otherwise SIGUSR1, which makes a process log its counters
}

func (s *Signal) Walk(w *Walker) { w.Fields(&s.Number, &s.Kill) }

// Ended reports the exit of a process. Status is as wait(2) returns it.
type Ended struct {
	Number uint32
	Status uint32
}

func (e *Ended) Walk(w *Walker) { w.Fields(&e.Number, &e.Status) }

// Left reports that a connection is closed. ID is that of its Arrival.
type Left struct{ ID uint64 }

func (l *Left) Walk(w *Walker) { w.Fields(&l.ID) }

// Finish asks the dispatcher to wait for the requests in progress, and to exit.
type Finish struct{}

func (*Finish) Walk(*Walker) {}

// Show asks all processes to log their counters.
type Show struct{}

func (*Show) Walk(*Walker) {}

// Served reports how an inetd run ended.
type Served struct {
	OK bool
	Failure
}

func (s *Served) Walk(w *Walker) { w.Fields(&s.OK, &s.Failure) }

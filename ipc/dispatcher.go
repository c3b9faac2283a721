package ipc

import "time"

// Bounds of the messages between the parent and the dispatcher.
const maxRefusal = 255 // bytes of a reason

// Dispatch tells the dispatcher how this run of the gateway serves. A change of it
// needs a restart.
type Dispatch struct {
	Switches Switches

	Name     string // of the workers' user, for messages
	UID, GID uint32 // of the workers that serve no user of their own

	Connections, PerSource, Identities, Workers, Threads uint32

	LogLevel int8   // as slog.Level, until a generation is in force
	Waiting  uint32 // connections that may wait for a slot

	StartLimit time.Duration // for a process to send Ready
	Silence    time.Duration // a process that answers no Ping for this time is killed

	// For the log.
	Audit                  Audit
	Netns, ControllerNetns string // network namespaces: of listeners, of connections to daemons
}

func (d *Dispatch) Walk(w *Walker) {
	w.Fields(&d.Switches)
	w.Text(maxName, &d.Name)
	w.Fields(&d.UID, &d.GID, &d.Connections, &d.PerSource, &d.Identities, &d.Workers, &d.Threads, &d.LogLevel, &d.Waiting,
		&d.StartLimit, &d.Silence, &d.Audit)
	w.Text(maxPath, &d.Netns, &d.ControllerNetns)
}

// Arrivals gives the dispatcher the channel on which the parent's acceptors send
// connections, and a netlink socket (NETLINK_SOCK_DIAG) of the parent's network
// namespace, which may be another than the dispatcher's.
type Arrivals struct{}

func (*Arrivals) Walk(*Walker) {}

// Arrival is an accepted connection with its descriptor. ID names it in Start and in
// Gone.
type Arrival struct {
	Connection
	Elsewhere bool   // it was accepted in another network namespace than the parent's
	Forbidden string // why its user may have no worker; "" when it may
}

func (a *Arrival) Walk(w *Walker) {
	w.Fields(&a.Connection, &a.Elsewhere)
	w.Text(maxRefusal, &a.Forbidden)
}

// Build announces a generation: its configuration follows as SubuidRanges, and
// GenerationSetup ends it. The dispatcher answers with Outcome.
type Build struct {
	ID       uint32
	Keeper   bool // it has secret keys
	Audit    bool // it has an audit log
	Resolver bool // it has a resolver
}

func (b *Build) Walk(w *Walker) {
	w.Fields(&b.ID, &b.Keeper, &b.Audit, &b.Resolver)
}

// SubuidRanges has ranges of subordinate uids of the generation that is announced.
type SubuidRanges struct{ PlanSubuids }

// GenerationSetup has the Setup of a generation's workers and ends its announcement.
type GenerationSetup struct{ Setup }

// Verdict asks for the public keys of the generation that is being built, when its
// keeper has accepted the secret ones or there is none. PublicKeys answers it. Otherwise
// it has the keeper's reason, and Judgement answers whether another keeper may be
// started, which gets the keys of before.
type Verdict struct{ Kept }

// PublicKeys has the keys that each worker of the generation gets.
type PublicKeys struct{ Keys }

// Outcome says whether the generation that was announced last is in force.
type Outcome struct {
	ID     uint32
	OK     bool
	Sealed Ready // inetd: how the worker has closed its sandbox
	Failure
}

func (o *Outcome) Walk(w *Walker) { w.Fields(&o.ID, &o.OK, &o.Sealed, &o.Failure) }

// Renew asks for a generation that replaces the one with that ID, of the same
// configuration. It is ignored when another one is being built or in force.
type Renew struct{ ID uint32 }

func (r *Renew) Walk(w *Walker) { w.Fields(&r.ID) }

// Released reports that no process of the generation runs any longer.
type Released struct{ ID uint32 }

func (r *Released) Walk(w *Walker) { w.Fields(&r.ID) }

// Start asks for a process. Started or Unstarted answers it.
type Start struct {
	Number     uint32 // of the process; each is greater than the last
	Role       Role
	Generation uint32
	Client     uint64 // the ID of an Arrival whose user the worker runs as; 0: the one of Dispatch
	Threads    uint32 // that run concurrently
	Requests   uint32 // that a worker may answer concurrently
}

func (s *Start) Walk(w *Walker) {
	w.Fields(&s.Number)
	Enum(w, &s.Role, "role", Worker, Exporter)
	w.Fields(&s.Generation, &s.Client, &s.Threads, &s.Requests)
}

// Started has the parent's end of the channel to a process, and the reading end of
// its log. The parent has sent the process its setup and the attributes that it must
// find.
type Started struct {
	Number   uint32
	PID      uint32
	UID, GID uint32
	Foreign  bool // it is in a user namespace of its own
}

func (s *Started) Walk(w *Walker) { w.Fields(&s.Number, &s.PID, &s.UID, &s.GID, &s.Foreign) }

// Unstarted says why a process was not started.
type Unstarted struct {
	Number uint32
	Failure
}

func (u *Unstarted) Walk(w *Walker) { w.Fields(&u.Number, &u.Failure) }

// Signal asks for a signal to a process.
type Signal struct {
	Number uint32
	Kill   bool // SIGKILL; otherwise SIGUSR1, on which a process logs its counters
}

func (s *Signal) Walk(w *Walker) { w.Fields(&s.Number, &s.Kill) }

// Ended reports the exit of a process. Status is as wait(2) returns it.
type Ended struct {
	Number uint32
	Status uint32
}

func (e *Ended) Walk(w *Walker) { w.Fields(&e.Number, &e.Status) }

// Left reports that the connection of that Arrival is closed.
type Left struct{ ID uint64 }

func (l *Left) Walk(w *Walker) { w.Fields(&l.ID) }

// Finish asks the dispatcher to let all requests in progress end, and to exit.
type Finish struct{}

func (*Finish) Walk(*Walker) {}

// Show asks all processes to log their counters.
type Show struct{}

func (*Show) Walk(*Walker) {}

// Served ends an inetd run.
type Served struct {
	OK bool
	Failure
}

func (s *Served) Walk(w *Walker) { w.Fields(&s.OK, &s.Failure) }

package ipc

import "time"

// maxRefusal bounds the DenyReason of an Arrival, in bytes.
const maxRefusal = 255

// DispatcherSetup passes the dispatcher the settings for this run of the
// gateway.
type DispatcherSetup struct {
	Run

	Name     string // name of the workers' user, for messages
	UID, GID uint32 // ids of the workers that do not run as their client

	StartLimit  time.Duration // time for a process to send Ready
	PingTimeout time.Duration // a process that answers no Ping for this long is killed

	Sandbox     Ready  // sandbox of a test process; zero in an inetd run, which starts no such process
	Confinement []Part // the parts that workers inherit
}

func (d *DispatcherSetup) Walk(w *Walker) {
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
	OtherNetns bool // the listener's network namespace is not the parent's
}

func (l *Listening) Walk(w *Walker) {
	Enum(w, &l.Network, "network", TCP, Unix)
	w.Text(MaxAddress, &l.Name)
	w.Fields(&l.TLS, &l.OtherNetns)
}

// ArrivalChannel gives the dispatcher two descriptors: the channel on which the
// parent's acceptors send connections, and a netlink socket
// (NETLINK_SOCK_DIAG). The socket belongs to the parent's network namespace,
// which may differ from the dispatcher's.
type ArrivalChannel struct{ NoFields }

// Arrival passes an accepted connection, with its descriptor, to the
// dispatcher. The message StartProcess refers to the connection by its ID.
type Arrival struct {
	Connection
	OtherNetns bool   // the listener's network namespace is not the parent's
	DenyReason string // why the gateway denies the peer's user a worker; "" if it does not
}

func (a *Arrival) Walk(w *Walker) {
	w.Fields(&a.Connection, &a.OtherNetns)
	w.Text(maxRefusal, &a.DenyReason)
}

// BuildGeneration announces a new generation of workers and services. The
// generation's configuration follows in SubuidRanges messages and one
// GenerationSetup. The dispatcher answers with GenerationResult.
type BuildGeneration struct {
	ID       uint32
	Keeper   bool // the generation has secret keys
	Audit    bool // the generation has an audit log
	Resolver bool // the generation has a resolver
}

func (b *BuildGeneration) Walk(w *Walker) { w.Fields(&b.ID, &b.Keeper, &b.Audit, &b.Resolver) }

// SubuidRanges carries subordinate uids for the generation of workers that
// BuildGeneration announced.
type SubuidRanges struct{ PlanSubuids }

// GenerationSetup carries the workers' Setup for the generation that
// BuildGeneration announced. It is the last message with this generation's
// configuration.
type GenerationSetup struct{ Setup }

// SecretKeysResult reports whether the keeper of the new generation has
// accepted the secret keys. If the keeper has accepted them, or if the
// generation has no keeper, the parent answers with PublicKeys.
//
// If the keeper has refused a key, SecretKeysResult contains the reason, and
// the parent answers with CheckResult. If OK is set in the CheckResult, the
// dispatcher starts another keeper. This keeper gets the previous key, or no
// key, in place of the refused one.
type SecretKeysResult struct{ KeysResult }

// PublicKeys passes the keys that each worker of the generation gets, as three
// open files in this order:
//
//   - the certificates of the listeners, in PEM
//   - the certificate authorities of clients, in PEM
//   - the key set for RS256 tokens, in JSON
//
// An empty file means that there are no such certificates or keys. Workers
// share the file offsets and therefore use pread(2).
type PublicKeys struct {
	TLS         bool // there are certificates
	TLS12       bool // clients may use TLS 1.2
	Authorities bool // clients need a certificate, even if the file of authorities is empty
	Current     bool // no newer key set exists: a token that does not match this one is forged
}

func (k *PublicKeys) Walk(w *Walker) { w.Fields(&k.TLS, &k.TLS12, &k.Authorities, &k.Current) }

// GenerationResult reports whether the generation of workers and services that
// BuildGeneration announced is now in use.
type GenerationResult struct {
	ID uint32
	Result
}

func (o *GenerationResult) Walk(w *Walker) { w.Fields(&o.ID, &o.Result) }

// RenewGeneration asks the parent for a new generation of workers and services
// with the same configuration. ID is the generation to replace. The parent
// ignores RenewGeneration if that generation is no longer in use, or if a new
// generation is already being built.
type RenewGeneration struct{ ID uint32 }

func (r *RenewGeneration) Walk(w *Walker) { w.Fields(&r.ID) }

// GenerationReleased reports that all workers and services of the generation
// with this ID have exited.
type GenerationReleased struct{ ID uint32 }

func (r *GenerationReleased) Walk(w *Walker) { w.Fields(&r.ID) }

// StartProcess asks the parent to start a process. The answer is ProcessStarted
// or StartFailed.
type StartProcess struct {
	Number     uint32 // number of the process; greater than all earlier numbers
	Role       Role
	Generation uint32
	Client     uint64 // the worker, or the process that reads output, runs as the user of the Arrival or of the Vouched with this number; 0: as the user in DispatcherSetup
	Threads    uint32 // threads that run concurrently
	Requests   uint32 // requests that a worker may answer concurrently
}

func (s *StartProcess) Walk(w *Walker) {
	w.Fields(&s.Number)
	Enum(w, &s.Role, "role", Worker, Credential)
	w.Fields(&s.Generation, &s.Client, &s.Threads, &s.Requests)
}

// ProcessStarted passes two descriptors to the dispatcher: the parent's end of
// the channel to the new process, and the descriptor from which the dispatcher
// reads the process's log. The parent has already sent the process its setup
// and its Attributes.
type ProcessStarted struct {
	Number    uint32
	PID       uint32
	UID, GID  uint32
	OwnUserns bool // the process is in a user namespace of its own
}

func (s *ProcessStarted) Walk(w *Walker) { w.Fields(&s.Number, &s.PID, &s.UID, &s.GID, &s.OwnUserns) }

// StartFailed reports that a process was not started, and why.
type StartFailed struct {
	Number uint32
	Failure
}

func (u *StartFailed) Walk(w *Walker) { w.Fields(&u.Number, &u.Failure) }

// SignalProcess asks the parent to send a signal to a process.
type SignalProcess struct {
	Number uint32
	Kill   bool // SIGKILL; otherwise SIGUSR1, which makes a process log its counters
}

func (s *SignalProcess) Walk(w *Walker) { w.Fields(&s.Number, &s.Kill) }

// ProcessExited reports the exit of a process. Status is the wait status, as
// returned by wait(2).
type ProcessExited struct {
	Number uint32
	Status uint32
}

func (e *ProcessExited) Walk(w *Walker) { w.Fields(&e.Number, &e.Status) }

// Shutdown asks the dispatcher to wait for the requests in progress, and to
// exit.
type Shutdown struct{ NoFields }

// LogCounters asks all processes to log their counters.
type LogCounters struct{ NoFields }

// ReloadResult reports that a reload is complete.
type ReloadResult struct{ Rejected bool }

func (r *ReloadResult) Walk(w *Walker) { w.Fields(&r.Rejected) }

// InetdResult reports how an inetd run ended.
type InetdResult struct{ Result }

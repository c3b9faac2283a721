package work

import "schedrestd/ipc"

// WorkerChannel gives a service its end of a channel to the worker with this
// Number, and tells it what the dispatcher knows about that worker.
type WorkerChannel struct {
	Number   uint32
	PID      uint32
	UID      uint32
	Requests uint32 // requests that the worker may answer concurrently
}

func (c *WorkerChannel) Walk(w *ipc.Walker) { w.Fields(&c.Number, &c.PID, &c.UID, &c.Requests) }

// WorkerViolation reports that the worker with this Number violated the
// protocol on its channel to the service. The service has closed that channel,
// and the dispatcher kills the worker.
type WorkerViolation struct {
	Number uint32
	Reason string
}

func (b *WorkerViolation) Walk(w *ipc.Walker) {
	w.Fields(&b.Number)
	w.Text(ipc.MaxReason, &b.Reason)
}

// ServiceChannel gives a worker its end of a channel to a service, in place of
// the channel that the worker had before.
type ServiceChannel struct {
	Service ipc.Role
	Client  uint64 // of the AskOutput that this answers; 0 for other services
}

func (s *ServiceChannel) Walk(w *ipc.Walker) {
	ipc.Enum(w, &s.Service, "service", ipc.Keeper, ipc.Output)
	w.Fields(&s.Client)
}

// AskOutput asks for a channel to a process that reads the output files of a user.
// The answer is a ServiceChannel or a NoOutput.
type AskOutput struct {
	Client uint64 // stands for the user, for whom the keeper has vouched; 0: the worker's user
	UID    uint32 // of the user, for the limit on processes; only with a Client
}

func (a *AskOutput) Walk(w *ipc.Walker) { w.Fields(&a.Client, &a.UID) }

// NoOutput reports why there is no process that reads output files.
type NoOutput struct {
	Client uint64 // of the AskOutput
	Reason string
}

func (n *NoOutput) Walk(w *ipc.Walker) {
	w.Fields(&n.Client)
	w.Text(ipc.MaxReason, &n.Reason)
}

// AskCredential asks for a process that gets the credentials of a user.
type AskCredential struct {
	Client uint64 // stands for the user, for whom the keeper has vouched
	UID    uint32 // of the user, for the limit on processes
}

func (a *AskCredential) Walk(w *ipc.Walker) { w.Fields(&a.Client, &a.UID) }

// NoCredential reports why there is no process that gets the credentials of a user.
type NoCredential struct {
	Client uint64 // of the AskCredential
	Reason string
}

func (n *NoCredential) Walk(w *ipc.Walker) {
	w.Fields(&n.Client)
	w.Text(ipc.MaxReason, &n.Reason)
}

// CredentialSetup tells a process where it gets the credentials of its user.
type CredentialSetup struct{ Credentials }

const (
	maxPath    = 108 // of a UNIX socket
	maxSockets = 8
)

func (c *CredentialSetup) Walk(w *ipc.Walker) {
	w.Text(maxPath, &c.Munge.Socket, &c.Munge.Accounting)
	w.Fields(&c.Munge.TTL, &c.SchedUID)
	ipc.List(w, &c.Sack, maxSockets, 2, func(t *string) { w.Text(maxPath, t) })
}

package work

import "schedrestd/ipc"

// Client gives a service its end of a channel to the worker with this Number,
// and tells it what the dispatcher knows about that worker.
type Client struct {
	Number   uint32
	PID      uint32
	UID      uint32
	Requests uint32 // requests that the worker may answer concurrently
}

func (c *Client) Walk(w *ipc.Walker) { w.Fields(&c.Number, &c.PID, &c.UID, &c.Requests) }

// Breach reports that the worker with this Number violated the protocol on its
// channel to the service. The service has closed that channel, and the
// dispatcher kills the worker.
type Breach struct {
	Number uint32
	Reason string
}

func (b *Breach) Walk(w *ipc.Walker) {
	w.Fields(&b.Number)
	w.Text(ipc.MaxReason, &b.Reason)
}

// ServiceFD gives a worker its end of a channel to a service, in place of the
// channel that the worker had before.
type ServiceFD struct{ Service ipc.Role }

func (s *ServiceFD) Walk(w *ipc.Walker) { ipc.Enum(w, &s.Service, "service", ipc.Keeper, ipc.Auditor) }

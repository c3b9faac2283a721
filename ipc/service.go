package ipc

// ServiceChannelFD is the descriptor on which a service finds its channel to the parent: the
// same as a worker's.
const ServiceChannelFD = WorkerFD

// ServiceSetup is what a service needs to know.
type ServiceSetup struct {
	Files    uint32 // its limit of open descriptors
	Tasks    uint32 // its user's limit of processes and threads
	LogLevel int8   // as slog.Level
	Seal     Seal
}

func (s *ServiceSetup) Walk(w *Walker) {
	w.Version()
	w.Fields(&s.Files, &s.Tasks, &s.LogLevel, &s.Seal)
}

// Client gives a service its end of a channel to the worker Number, with what the parent knows of it.
type Client struct {
	Number   uint32
	PID      uint32
	UID      uint32
	Requests uint32 // that it may answer at a time
}

func (c *Client) Walk(w *Walker) { w.Fields(&c.Number, &c.PID, &c.UID, &c.Requests) }

// Breach reports to the parent that the worker Number broke the protocol on its channel to the
// service. The service no longer serves it; the parent kills it.
type Breach struct {
	Number uint32
	Reason string
}

func (b *Breach) Walk(w *Walker) {
	w.Fields(&b.Number)
	w.Text(maxReason, &b.Reason)
}

// ServiceFD gives a worker its end of a channel to the service of that role, which replaces the
// one that it had.
type ServiceFD struct{ Service Role }

func (s *ServiceFD) Walk(w *Walker) { Enum(w, &s.Service, "service", Keeper, Auditor) }

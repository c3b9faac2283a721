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

// Kind is KindServiceSetup.
func (*ServiceSetup) Kind() Kind { return KindServiceSetup }

func (s *ServiceSetup) walk(w *walker) {
	w.version()
	w.u32(&s.Files)
	w.u32(&s.Tasks)
	w.i8(&s.LogLevel)
	s.Seal.walk(w)
}

// Client gives a service its end of a channel to the worker Number, with what the parent knows of it.
type Client struct {
	Number   uint32
	PID      uint32
	UID      uint32
	Requests uint32 // that it may answer at a time
}

// Kind is KindClient.
func (*Client) Kind() Kind { return KindClient }

func (c *Client) walk(w *walker) {
	w.u32(&c.Number)
	w.u32(&c.PID)
	w.u32(&c.UID)
	w.u32(&c.Requests)
}

// Breach reports to the parent that the worker Number broke the protocol on its channel to the
// service. The service no longer serves it; the parent kills it.
type Breach struct {
	Number uint32
	Reason string
}

// Kind is KindBreach.
func (*Breach) Kind() Kind { return KindBreach }

func (b *Breach) walk(w *walker) {
	w.u32(&b.Number)
	w.text(&b.Reason, maxReason)
}

// ServiceFD gives a worker its end of a channel to the service of that role, which replaces the
// one that it had.
type ServiceFD struct {
	Service Role
}

// Kind is KindServiceFD.
func (*ServiceFD) Kind() Kind { return KindServiceFD }

func (s *ServiceFD) walk(w *walker) { enum(w, &s.Service, "service", Keeper, Auditor) }

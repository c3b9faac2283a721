package ipc

// ServiceChannelFD is the descriptor of a service's channel to the parent.
const ServiceChannelFD = WorkerFD

// ServiceSetup configures a service.
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

// MetricsFD gives the exporter a listening socket.
type MetricsFD struct{}

func (*MetricsFD) Walk(*Walker) {}

// Client gives a service its end of a channel to the worker Number, with what the
// parent knows about that worker.
type Client struct {
	Number   uint32
	PID      uint32
	UID      uint32
	Requests uint32 // that it may answer concurrently
}

func (c *Client) Walk(w *Walker) { w.Fields(&c.Number, &c.PID, &c.UID, &c.Requests) }

// Breach reports that the worker Number violated the protocol on its channel to the
// service. The service has closed that channel, and the parent kills the worker.
type Breach struct {
	Number uint32
	Reason string
}

func (b *Breach) Walk(w *Walker) {
	w.Fields(&b.Number)
	w.Text(maxReason, &b.Reason)
}

// ServiceFD gives a worker its end of a channel to a service. It replaces the channel
// that the worker had before.
type ServiceFD struct{ Service Role }

func (s *ServiceFD) Walk(w *Walker) { Enum(w, &s.Service, "service", Keeper, Auditor) }

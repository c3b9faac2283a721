package ipc

// ServiceChannelFD is the descriptor of a service's channel to the parent.
const ServiceChannelFD = WorkerFD

type ServiceSetup struct {
	Files    uint32 // the service's limit of open descriptors
	Tasks    uint32 // its user's limit of processes and threads
	LogLevel int8   // as slog.Level
	Log      string // where to log and in which format, as in SCHEDRESTD_LOG; "" means text
	Sandbox  SandboxOptions
}

func (s *ServiceSetup) Walk(w *Walker) {
	w.version()
	w.Fields(&s.Files, &s.Tasks, &s.LogLevel, &s.Sandbox)
	w.Text(maxLog, &s.Log)
}

// MetricsFD gives the exporter a listening socket.
type MetricsFD struct{ NoFields }

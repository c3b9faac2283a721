package ipc

// Bounds of texts and lists.
const (
	maxName    = 255
	MaxAddress = 255
	maxNames   = 32
	maxParts   = 16
	maxLog     = 128 // the value of SCHEDRESTD_LOG
)

// Setup is the configuration that a worker gets before it serves. It contains
// no keys, tokens or other secrets. Package privsep, in the parent, sets the
// fields marked "set by privsep". The parent passes Settings on unchanged.
type Setup struct {
	Files    uint32 // the worker's limit of open descriptors
	Watching uint32 // maximum number of connections of all workers that wait for a change, without a slot
	Tasks    uint32 // limit on the processes and threads of the worker's user; set by privsep

	JWT      bool   // rest_auth/jwt is served
	Local    bool   // rest_auth/local is served
	Reach    Reach  // how daemons are reached
	LogLevel int8   // as slog.Level
	Log      string // as in ServiceSetup; workers don't read it
	Settings []byte // the rest of the configuration (package work)

	SchedUID     uint32         // uid of SchedUser; set by privsep
	Privileged   []string       // every name of root and SchedUser; set by privsep
	Requests     uint32         // maximum number of concurrent requests in this worker; set by privsep
	Sockets      bool           // workers connect to UNIX sockets that authenticate a client by its user; set by privsep
	Inetd        bool           // serve one connection and exit
	LongTimeouts bool           // the client uses a pipe or a terminal, so it may be slow without affecting other clients; set by privsep
	Sandbox      SandboxOptions // the parent sets SandboxUnix
	Audit        bool           // each change needs the auditor's permission first
	Claims       bool           // the auditor keeps Idempotency-Keys
}

// Reach is the set of ways in which workers reach daemons.
type Reach uint8

// The ways, which may be joined with |.
const (
	ReachTCP   Reach = 1 << iota
	ReachUnix        // over the daemons' UNIX sockets
	ReachMunge       // with credentials that workers get from munged or auth/slurm over UNIX sockets
)

// SandboxOptions is a set of options of the sandbox of a worker or a service.
type SandboxOptions uint8

// The options, which may be joined with |.
const (
	SandboxRequire SandboxOptions = 1 << iota // refuse to serve if the kernel lacks a part of the sandbox
	SandboxAudit                              // log violations instead of killing
	SandboxUnix                               // permit connections to UNIX sockets whose inodes the dispatcher passes
	SandboxFile                               // permit reading and writing the file of Idempotency-Keys, or appending to the register of gateway tokens
)

func (s *Setup) Walk(w *Walker) {
	w.version()
	w.Fields(&s.Files, &s.Watching, &s.Tasks, &s.JWT, &s.Local)
	Enum(w, &s.Reach, "reach", 0, ReachTCP|ReachUnix|ReachMunge)
	w.Fields(&s.LogLevel)
	w.Text(maxLog, &s.Log)
	w.Blob(&s.Settings, MaxMessage)
	w.Fields(&s.SchedUID)
	List(w, &s.Privileged, maxNames, 2, func(t *string) { w.Text(maxName, t) })
	w.Fields(&s.Requests, &s.Sockets, &s.Inetd, &s.LongTimeouts, &s.Sandbox, &s.Audit, &s.Claims)
}

func (s *SandboxOptions) Walk(w *Walker) {
	Enum(w, s, "sandbox", 0, SandboxRequire|SandboxAudit|SandboxUnix|SandboxFile)
}

package ipc

import (
	"fmt"
	"time"
)

// Bounds of the texts and lists of Setup. A Setup that reaches all of them exceeds
// MaxMessage, which encode checks.
const (
	maxName      = 255
	maxAddress   = 255
	maxAddresses = 32
	maxParsers   = 16
	maxStatuses  = 64
	maxNames     = 32
)

// Setup is the part of the options and the configuration that a worker gets. It has
// no secrets: no key and no token. schedrestd-config makes it (plan/setup.go), and
// package privsep fills in the fields marked so. A worker has no defaults of its own.
type Setup struct {
	Files uint32 // the worker's limit of open descriptors; privsep's
	Tasks uint32 // its user's limit of processes and threads; privsep's

	Cluster     string
	Controllers []Address // primary first
	Front       []Address // a common address of all controllers; empty: each has its own
	MorePorts   uint16    // consecutive further ports of Controllers and Front; privsep assigns one to each worker
	Accounting  []Address // empty: no accounting daemon
	AuthSocket  string    // of the bundled controller, which identifies peers by SO_PEERCRED; "": none
	Munge       Munge     // authentication to daemons of Slurm

	JWT             bool     // rest_auth/jwt is served
	Local           bool     // rest_auth/local is served
	RequireUserName bool     // refuse a root token that names no user
	StrictBodies    bool     // refuse a body with an unknown field
	SchedUID        uint32   // uid of SchedUser; privsep's
	Privileged      []string // every name of root and SchedUser; privsep's
	UserClaim       string   // the claim with the user's name; "": the standard ones
	Names           Names

	Parsers  []Parser // API versions that are served, oldest first
	Content  Content  // which paths are served
	Statuses []string // responses that the OpenAPI document lists, "200" or "default"
	JSON     Layout
	YAML     Layout
	Requests uint32 // concurrent requests in this worker; privsep's
	Inetd    bool   // serve one connection and exit; privsep's
	Seal     Seal   // privsep's
	Audit    bool   // each change needs the auditor's permission first; privsep's
	Claims   bool   // the auditor keeps Idempotency-Keys; privsep's
	Metrics  bool   // what happens is counted for the exporter

	LogLevel int8 // as slog.Level
	Limits   Limits

	Admission Admission
}

// Address is the address of one daemon.
type Address struct {
	Name    string // from the configuration
	Network string // "tcp" or "unix"
	Address string // host:port, or a path
}

// Munge configures MUNGE credentials for the worker's user. Without a Socket there
// are none.
type Munge struct {
	Socket     string
	Accounting string        // socket of the munged for the accounting daemon; "": the same one
	TTL        time.Duration // lifetime of a credential; 0: the default of munged
}

// Names is the set of served spellings of paths, headers and fields.
type Names uint8

// The spellings, which may be joined with |.
const (
	NamesSched Names = 1 << iota // /sched/…, X-SCHED-USER-TOKEN
	NamesSlurm                   // /slurm/…, X-SLURM-USER-TOKEN
)

// Parser is one served API version, v0.0.Version, with its flags as package feature
// defines them.
type Parser struct {
	Version uint8
	Flags   uint8
}

// Seal is a set of options of the sandbox of a worker or a service.
type Seal uint8

// The options, which may be joined with |.
const (
	SealRequire Seal = 1 << iota // refuse to serve when the kernel lacks a part of it
	SealAudit                    // log violations instead of killing
	SealUnix                     // permit connecting to UNIX sockets, whose inodes the parent passes
	SealClaims                   // permit reading and writing the file of Idempotency-Keys
)

// Content is the set of served content plugins.
type Content uint8

// The content plugins, which may be joined with |.
const (
	ContentController Content = 1 << iota // openapi/schedctld
	ContentAccounting                     // openapi/scheddb
)

// Layout is the formatting of a body.
type Layout uint8

// The layouts. Not every format has all of them.
const (
	Compact Layout = iota
	Pretty
	NoTag // YAML without the types' tags
)

// Limits bounds the cost of one client. Every field is set; none means "no limit".
type Limits struct {
	ReadHeader time.Duration // to receive a request line and header
	ReadBody   time.Duration // without progress of a request body, after which it is aborted
	Idle       time.Duration // between two requests
	Stall      time.Duration // without progress of an answer, after which it is aborted
	Call       time.Duration // for one call to a daemon
	Connect    time.Duration // to connect to a daemon
	Drain      time.Duration // to finish requests in progress when the worker must exit
	Header     uint32        // bytes of a request's header
	Body       uint32        // bytes of a request's body
	Answers    uint32        // bytes of all daemons' answers that wait for slow clients
}

// Check returns an error if a limit is not set: a connection could last indefinitely.
func (l Limits) Check() error {
	for name, set := range map[string]bool{
		"ReadHeader": l.ReadHeader > 0, "ReadBody": l.ReadBody > 0, "Idle": l.Idle > 0, "Stall": l.Stall > 0, "Call": l.Call > 0,
		"Connect": l.Connect > 0, "Drain": l.Drain > 0, "Header": l.Header > 0, "Body": l.Body > 0, "Answers": l.Answers > 0,
	} {
		if !set {
			return fmt.Errorf("the limit %s is not set", name)
		}
	}
	return nil
}

func (s *Setup) Walk(w *Walker) {
	w.Version()
	w.Fields(&s.Files, &s.Tasks)
	w.Text(maxName, &s.Cluster)
	List(w, &s.Controllers, maxAddresses, 6, func(a *Address) { a.Walk(w) })
	List(w, &s.Front, maxAddresses, 6, func(a *Address) { a.Walk(w) })
	w.Fields(&s.MorePorts)
	List(w, &s.Accounting, maxAddresses, 6, func(a *Address) { a.Walk(w) })
	w.Text(maxAddress, &s.AuthSocket)
	s.Munge.Walk(w)
	w.Fields(&s.JWT, &s.Local, &s.RequireUserName, &s.StrictBodies, &s.SchedUID)
	List(w, &s.Privileged, maxNames, 2, func(t *string) { w.Text(maxName, t) })
	w.Text(maxName, &s.UserClaim)
	Enum(w, &s.Names, "spelling", 0, NamesSched|NamesSlurm)
	List(w, &s.Parsers, maxParsers, 2, func(p *Parser) { w.Fields(&p.Version, &p.Flags) })
	Enum(w, &s.Content, "content", 0, ContentController|ContentAccounting)
	List(w, &s.Statuses, maxStatuses, 2, func(t *string) { w.Text(8, t) })
	Enum(w, &s.JSON, "layout", Compact, NoTag)
	Enum(w, &s.YAML, "layout", Compact, NoTag)
	w.Fields(&s.Requests, &s.Inetd, &s.Seal, &s.Audit, &s.Claims, &s.Metrics, &s.LogLevel, &s.Limits, &s.Admission)
}

func (s *Seal) Walk(w *Walker) { Enum(w, s, "seal", 0, SealRequire|SealAudit|SealUnix|SealClaims) }

func (a *Address) Walk(w *Walker) {
	w.Text(maxName, &a.Name)
	w.Text(8, &a.Network)
	w.Text(maxAddress, &a.Address)
}

func (m *Munge) Walk(w *Walker) {
	w.Text(maxAddress, &m.Socket, &m.Accounting)
	w.Fields(&m.TTL)
}

func (l *Limits) Walk(w *Walker) {
	w.Fields(&l.ReadHeader, &l.ReadBody, &l.Idle, &l.Stall, &l.Call, &l.Connect, &l.Drain, &l.Header, &l.Body, &l.Answers)
}

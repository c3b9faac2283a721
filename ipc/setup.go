package ipc

import (
	"fmt"
	"time"
)

// Bounds of Setup's texts and lists. The largest Setup that they allow is longer
// than a message may be, so encode has the last word.
const (
	maxName      = 255
	maxAddress   = 255
	maxAddresses = 32
	maxParsers   = 16
	maxStatuses  = 64
	maxNames     = 32
)

// Setup is what a worker needs of the flags and the configuration, and all that it
// ever sees of them. It has no secret: no key, no token. The command makes it of flags,
// environment and configuration (plan/setup.go); what the parent alone knows is
// filled in by privsep (Config.setup). Whoever gets it has no defaults of his own.
type Setup struct {
	Files uint32 // the worker's limit of open descriptors; privsep's
	Tasks uint32 // its user's limit of processes and threads; privsep's

	Cluster     string
	Controllers []Address // primary first
	Front       []Address // where whichever controller is in charge is asked; empty: each at its own
	MorePorts   uint16    // ports after those of Controllers and Front at which they listen as well; privsep gives each worker one of them
	Accounting  []Address // empty: no accounting daemon
	AuthSocket  string    // of a controller of ours, whom the kernel vouches to; "" when there is none
	Munge       Munge     // who vouches where the kernel's word does not reach

	JWT             bool     // rest_auth/jwt is served
	Local           bool     // rest_auth/local is served
	RequireUserName bool     // refuse a root token that names no user
	StrictBodies    bool     // refuse a body with an unknown field
	SchedUID        uint32   // uid of SchedUser; privsep's
	Privileged      []string // each name of root and SchedUser; privsep's
	UserClaim       string   // claim with the user's name; "" means the standard ones
	Names           Names

	Parsers  []Parser // API versions that are served, oldest first
	Content  Content  // which paths are served
	Statuses []string // responses that the OpenAPI document lists, "200" or "default"
	JSON     Layout
	YAML     Layout
	Requests uint32 // requests in progress at one time in this worker; privsep's
	Inetd    bool   // one connection, and then the end; privsep's
	Seal     Seal   // privsep's
	Audit    bool   // each change needs leave first; privsep's

	LogLevel int8 // as slog.Level
	Limits   Limits

	Admission Admission
}

// Address is one daemon to call.
type Address struct {
	Name    string // as the configuration calls it
	Network string // "tcp" or "unix"
	Address string // host:port, or a path
}

// Munge is where munged vouches for the worker's user. Without a Socket it does not.
type Munge struct {
	Socket     string
	Accounting string        // of the munged for the accounting daemon; "": the same
	TTL        time.Duration // how long its word is good; 0: as munged says
}

// Names is which spellings of paths, headers and fields are served.
type Names uint8

// The spellings; they may be joined with |.
const (
	NamesSched Names = 1 << iota // /sched/…, X-SCHED-USER-TOKEN
	NamesSlurm                   // /slurm/…, X-SLURM-USER-TOKEN
)

// Parser is one API version that is served, v0.0.Version, and its flags as package plugin has
// them.
type Parser struct {
	Version uint8
	Flags   uint8
}

// Seal is how a worker or the keeper closes its cage.
type Seal uint8

// How; they may be joined with |.
const (
	SealRequire Seal = 1 << iota // refuse to serve where the kernel has not got all of it
	SealAudit                    // log what would kill
	SealUnix                     // let it connect UNIX sockets, of which it is given the inode
)

// Content is which content plugins are served.
type Content uint8

// The content plugins; they may be joined with |.
const (
	ContentController Content = 1 << iota // openapi/schedctld
	ContentAccounting                     // openapi/scheddb
)

// Layout is how a body is written.
type Layout uint8

// The layouts. Not every format has each.
const (
	Compact Layout = iota
	Pretty
	NoTag // YAML without the types' tags
)

// Limits bound what one client can cost. Each is set: none is "no limit".
type Limits struct {
	ReadHeader time.Duration // for a request's line and header
	ReadBody   time.Duration // a request's body that makes no progress for so long is given up
	Idle       time.Duration // between two requests
	Stall      time.Duration // an answer that makes no progress for so long is given up
	Call       time.Duration // for one call to a daemon
	Connect    time.Duration // for one connection to it
	Drain      time.Duration // for what is being answered when the worker must go
	Header     uint32        // bytes of a request's header
	Body       uint32        // bytes of a request's body
	Answers    uint32        // bytes of daemons' answers, in all, that wait for clients to take them
}

// Check refuses limits of which one is missing: a connection would have no end there.
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
	w.Fields(&s.Requests, &s.Inetd, &s.Seal, &s.Audit, &s.LogLevel, &s.Limits, &s.Admission)
}

func (s *Seal) Walk(w *Walker) { Enum(w, s, "seal", 0, SealRequire|SealAudit|SealUnix) }

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

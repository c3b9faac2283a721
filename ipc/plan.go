package ipc

import "net/netip"

// Bounds of the Plan's parts. A Plan that uses all of them is longer than a
// message may be, so encode has the last word.
const (
	maxListen     = 512 // bytes of one LISTEN argument
	maxSocketPath = 108
	maxBound      = 64 // addresses of one name
)

// SubuidsAtOnce is how many ranges one PlanSubuids carries at most.
const SubuidsAtOnce = 1024

// MaxConnections is how many connections at one time can be asked for.
const MaxConnections = 100_000

// MaxListen is how many addresses a gateway listens on at most.
const MaxListen = 1024

// MaxSubuids is how many ranges of subordinate uids count at most.
const MaxSubuids = 1 << 18

// Mode is what the parent does with a Plan.
type Mode uint8

// The modes.
const (
	ModeServe Mode = iota + 1 // listen
	ModeInetd                 // serve the one client at standard input and output
	ModeCheck                 // --check-confinement
)

// Plan is what the parent needs of command line, environment and configuration.
// PlanListen and PlanSubuid follow it, and PlanSetup ends it. Nothing in it is
// secret: it has the paths of keys.
type Plan struct {
	Mode     Mode
	Path     string // of the configuration
	LogLevel int8   // as slog.Level

	Service  Service
	Switches Switches

	Netns, Outlet string // network namespaces: of listeners, of connections to daemons

	Connections, PerSource, Identities, Threads uint32 // 0 is the default

	SocketMode     uint16 // of UNIX sockets; 0: by who may connect
	HasSocketGroup bool   // SocketGID is their group; else the serving one is
	SocketGID      uint32

	Audit   Audit
	Secrets Secrets

	Subuids bool // the ranges that follow replace those of the Plan before
}

func (p *Plan) Walk(w *Walker) {
	Enum(w, &p.Mode, "mode", ModeServe, ModeCheck)
	w.Text(maxPath, &p.Path)
	w.Fields(&p.LogLevel, &p.Service, &p.Switches)
	w.Text(maxPath, &p.Netns, &p.Outlet)
	w.Fields(&p.Connections, &p.PerSource, &p.Identities, &p.Threads, &p.SocketMode, &p.HasSocketGroup, &p.SocketGID, &p.Audit, &p.Secrets, &p.Subuids)
}

// Service is the identity that is to serve, and the accounts whose authority it must not
// have. Names are for messages and for tokens; the parent judges the numbers.
type Service struct {
	HasUser  bool // -u: Name and UID, otherwise the starter's
	HasGroup bool // -g, or the user's own: GID, otherwise the starter's
	Name     string
	UID, GID uint32
	Given    string // -u and -g as they were written

	RootGroups  []uint32 // of root
	SchedUser   string   // as the configuration calls it; "" is root
	SchedUID    uint32
	SchedGroups []uint32
	Privileged  []string // each name of root and SchedUser
}

// maxGroups is how many groups of root or SchedUser are protected.
const maxGroups = 1024

func (s *Service) Walk(w *Walker) {
	w.Fields(&s.HasUser, &s.HasGroup)
	w.Text(maxName, &s.Name)
	w.Fields(&s.UID, &s.GID)
	w.Text(3*maxName, &s.Given)
	List(w, &s.RootGroups, maxGroups, 4, func(gid *uint32) { w.Fields(gid) })
	w.Text(maxName, &s.SchedUser)
	w.Fields(&s.SchedUID)
	List(w, &s.SchedGroups, maxGroups, 4, func(gid *uint32) { w.Fields(gid) })
	List(w, &s.Privileged, maxNames, 2, func(t *string) { w.Text(maxName, t) })
}

// Switches is what SCHEDRESTD_SECURITY turns on or off in the parent.
type Switches struct {
	DisableUserCheck    bool // serve as root or SchedUser all the same
	DisableUnshareFiles bool // share the descriptor table with the parent until exec
	DisableUnshareSysV  bool // no semaphore undo list and no IPC namespace of the worker's own
	BecomeUser          bool // each local peer is served by a worker of its own uid and gid
	WorkerPerConnection bool // each connection has a worker of its own, which ends with it
	RequireConfinement  bool // don't start when a part of the confinement is unavailable
	AuditConfinement    bool // log what the confinement would kill for, and kill no process
}

func (s *Switches) Walk(w *Walker) {
	w.Fields(&s.DisableUserCheck, &s.DisableUnshareFiles, &s.DisableUnshareSysV, &s.BecomeUser,
		&s.WorkerPerConnection, &s.RequireConfinement, &s.AuditConfinement)
}

// Audit says where the audit log is, and what holds when it can't be written.
type Audit struct {
	Path     string // of a file, or AuditStderr; "": there is none
	FailOpen bool   // changes are made all the same while it can't be written; else they are refused
	Sync     bool   // a change waits until its line is on the disk, not only in the kernel
}

// AuditStderr is the Path of an audit log that goes where the log goes.
const AuditStderr = "stderr"

func (a *Audit) Walk(w *Walker) {
	w.Text(maxPath, &a.Path)
	w.Fields(&a.FailOpen, &a.Sync)
}

// Secrets is where the keys are that the gateway works with. The parent opens the files, and reads
// none of them: what is secret goes to the keeper as an open file, and what is not is copied as it
// is, for the workers.
type Secrets struct {
	TLS    TLS
	Tokens Tokens
}

// TLS is where the secrets of https:// listeners are.
type TLS struct {
	Certificate string // certificates, PEM, the server's own first
	Key         string // its private key, PEM
	ClientCA    string // authorities of clients, PEM; "" lets clients in without a certificate
	TLS12       bool   // TLS 1.2 is served as well
}

// Tokens is where the keys are that tokens are verified with, where rest_auth/jwt is served. Files that are not
// there, or that the parent can't read, are as good as none: then the daemons vouch for tokens.
type Tokens struct {
	Key  string // of HS256 tokens, for the keeper; "": none
	JWKS string // a key set, of RS256 tokens, for the workers; "": none
}

func (s *Secrets) Walk(w *Walker) {
	w.Text(maxPath, &s.TLS.Certificate, &s.TLS.Key, &s.TLS.ClientCA)
	w.Fields(&s.TLS.TLS12)
	w.Text(maxPath, &s.Tokens.Key, &s.Tokens.JWKS)
}

// Listen is one LISTEN argument, its name resolved.
type Listen struct {
	Text      string // as it was given
	Network   Network
	TLS       bool
	Path      string           // of a UNIX socket
	Addresses []netip.AddrPort // of TCP
}

// PlanListen is one address to listen on.
type PlanListen struct{ Listen }

func (l *PlanListen) Walk(w *Walker) {
	w.Text(maxListen, &l.Text)
	Enum(w, &l.Network, "network", TCP, Unix)
	w.Fields(&l.TLS)
	w.Text(maxSocketPath, &l.Path)
	List(w, &l.Addresses, maxBound, 2, func(a *netip.AddrPort) { w.Fields(a) })
}

// PlanSubuids are ranges of subordinate uids with the users that they belong to, in ascending order
// over all messages of a Plan.
type PlanSubuids struct{ Ranges []Subuids }

// Subuids is one range.
type Subuids struct{ First, Last, Owner uint32 }

func (s *PlanSubuids) Walk(w *Walker) {
	List(w, &s.Ranges, SubuidsAtOnce, 12, func(r *Subuids) {
		w.Fields(&r.First, &r.Last, &r.Owner)
	})
}

// PlanSetup ends a Plan: what its workers are to know.
type PlanSetup struct{ Setup }

// WholePlan is a Plan with its parts.
type WholePlan struct {
	Plan
	Listen []Listen
	Ranges []Subuids
	Setup  Setup
}

// Add adds a part that was received. It reports whether the Plan is complete.
func (p *WholePlan) Add(m Message) (complete bool, err error) {
	switch m := m.(type) {
	case *PlanListen:
		if len(p.Listen) >= MaxListen {
			return false, violation(Config, KindOf(m), "is one more than %d", MaxListen)
		}
		p.Listen = append(p.Listen, m.Listen)
	case *PlanSubuids:
		for _, r := range m.Ranges {
			switch n := len(p.Ranges); {
			case n >= MaxSubuids:
				return false, violation(Config, KindOf(m), "has one more than %d", MaxSubuids)
			case r.Last < r.First || n > 0 && r.First <= p.Ranges[n-1].Last:
				return false, violation(Config, KindOf(m), "has ranges out of order")
			}
			p.Ranges = append(p.Ranges, r)
		}
	case *PlanSetup:
		p.Setup = m.Setup
		return true, nil
	}
	return false, nil
}

// OwnerOf returns the user that uid belongs to, or uid.
func (p *WholePlan) OwnerOf(uid uint32) uint32 {
	i, j := 0, len(p.Ranges)
	for i < j {
		switch h := int(uint(i+j) >> 1); {
		case p.Ranges[h].Last < uid:
			i = h + 1
		case p.Ranges[h].First > uid:
			j = h
		default:
			return p.Ranges[h].Owner
		}
	}
	return uid
}

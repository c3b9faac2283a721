package ipc

import "net/netip"

// Bounds of the parts of a PlanListen. The parts of a Plan also have bounds,
// but a Plan that reached all of them would exceed MaxMessage. encode returns
// an error for such a Plan.
const (
	maxListen     = 512 // bytes of one LISTEN argument
	maxSocketPath = 108
	maxBound      = 64 // addresses of one name
)

// SubuidBatchSize is the largest number of ranges in one PlanSubuids.
const SubuidBatchSize = 1024

// MaxConnections is the largest limit of concurrent connections.
const MaxConnections = 100_000

// maxListeners is the largest number of LISTEN arguments. It also limits the
// number of listeners for scrapes.
const maxListeners = 1024

// MaxSubuids is the largest number of ranges of subordinate uids.
const MaxSubuids = 1 << 18

// Mode is the mode in which the parent runs.
type Mode uint8

const (
	ModeServe Mode = iota + 1 // listen
	ModeInetd                 // serve one client on standard input and output
	ModeCheck                 // --check-confinement
	ModeRead                  // --check
)

// Plan contains what the parent needs from the command line, environment and
// configuration. It contains no secrets, only the paths of keys. The messages
// PlanListen and PlanSubuids follow a Plan, and PlanSetup is the last message.
type Plan struct {
	Mode Mode
	Path string // path of the configuration

	Run
	Service Service
	PIDs    uint32 // limit on the processes and threads in the PID namespace of workers and keeper

	SocketMode     uint16 // of UNIX sockets
	HasSocketGroup bool   // the sockets' group is SocketGID; otherwise the parent chooses it
	SocketGID      uint32

	Secrets Secrets

	ReplaceSubuids bool // the ranges that follow replace those of the previous Plan

	Users []RoleUser // if root starts the gateway: the users of the processes that do not run as a client's or the service's user, one for each role

	Facts []string // facts for the page of ModeCheck
}

// RoleUser is the user of the processes of a role. The user of the role Worker
// runs the workers that serve no particular user (become_user).
type RoleUser struct {
	Role     Role
	Name     string
	UID, GID uint32
}

func (u *RoleUser) Walk(w *Walker) {
	Enum(w, &u.Role, "role", Worker, Exporter)
	w.Text(maxName, &u.Name)
	w.Fields(&u.UID, &u.GID)
}

// maxRoles is the largest number of users in a Plan.
const maxRoles = 8

const (
	maxPageFacts = 16 // facts in a Plan
	maxPageFact  = 64 // bytes of a fact
)

func (p *Plan) Walk(w *Walker) {
	Enum(w, &p.Mode, "mode", ModeServe, ModeRead)
	w.Text(maxPath, &p.Path)
	w.Fields(&p.Run, &p.Service, &p.PIDs, &p.SocketMode, &p.HasSocketGroup, &p.SocketGID, &p.Secrets, &p.ReplaceSubuids)
	List(w, &p.Users, maxRoles, 11, func(u *RoleUser) { w.Fields(u) })
	List(w, &p.Facts, maxPageFacts, 2, func(t *string) { w.Text(maxPageFact, t) })
}

// Run is the part of a Plan that the dispatcher also gets. A change to one of
// these settings, except LogLevel, takes effect only after a restart.
type Run struct {
	Switches Switches
	Numbers
	LogLevel int8 // as slog.Level; used until the first generation is in use
	Audit    Audit

	Netns, ControllerNetns string // network namespaces of the listeners and of the connections to daemons
}

func (r *Run) Walk(w *Walker) {
	w.Fields(&r.Switches, &r.Numbers, &r.LogLevel, &r.Audit)
	w.Text(maxPath, &r.Netns, &r.ControllerNetns)
}

// Numbers holds limits on concurrent connections, users, workers and threads.
// schedrestd-config fills in the defaults.
type Numbers struct {
	Connections uint32 // connections of all workers together
	PerSource   uint32 // connections from one source; 0: no limit
	Identities  uint32 // become_user: users who have a worker
	Workers     uint32 // without become_user: workers
	Threads     uint32 // threads of all workers together
	Waiting     uint32 // connections that wait for a worker
}

func (n *Numbers) Walk(w *Walker) {
	w.Fields(&n.Connections, &n.PerSource, &n.Identities, &n.Workers, &n.Threads, &n.Waiting)
}

// Service holds the service identity, and the accounts whose privileges this
// identity must not have. The names are only for log messages and tokens. The
// parent checks uids and gids.
type Service struct {
	HasUser  bool // Name and UID come from -u; otherwise from the user who starts the gateway
	HasGroup bool // GID comes from -g or from the user given with -u; otherwise from the user who starts the gateway
	Name     string
	UID, GID uint32
	Options  string // -u and -g as they were written

	RootGroups  []uint32 // groups of root
	SchedUser   string   // from the configuration; "" means root
	SchedUID    uint32
	SchedGroups []uint32
	MinUID      uint32   // lowest uid of a user for whom the keeper can vouch
	Privileged  []string // every name of root and SchedUser
}

// maxGroups is the largest number of groups of an account.
const maxGroups = 1024

func (s *Service) Walk(w *Walker) {
	w.Fields(&s.HasUser, &s.HasGroup)
	w.Text(maxName, &s.Name)
	w.Fields(&s.UID, &s.GID)
	w.Text(3*maxName, &s.Options)
	List(w, &s.RootGroups, maxGroups, 4, func(gid *uint32) { w.Fields(gid) })
	w.Text(maxName, &s.SchedUser)
	w.Fields(&s.SchedUID, &s.MinUID)
	List(w, &s.SchedGroups, maxGroups, 4, func(gid *uint32) { w.Fields(gid) })
	List(w, &s.Privileged, maxNames, 2, func(t *string) { w.Text(maxName, t) })
}

// Switches holds the settings of SCHEDRESTD_SECURITY that concern the parent.
type Switches struct {
	DisableUserCheck    bool // serve even as root or SchedUser
	DisableUnshareFiles bool // share the descriptor table with the parent until exec
	DisableUnshareSysV  bool // no semaphore undo list and no IPC namespace of the worker's own
	BecomeUser          bool // a local peer is served by a worker with the peer's uid and gid
	WorkerPerConnection bool // each connection has its own worker, which exits when the connection ends
	RequireConfinement  bool // refuse to start if a part of the confinement is unavailable
	AuditConfinement    bool // log violations of the confinement instead of killing the process
	Output              bool // a process of the user reads the output files of the user's jobs
	Credentials         bool // a process of a token's user gets the credentials of this user's messages
}

func (s *Switches) Walk(w *Walker) {
	w.Fields(&s.DisableUserCheck, &s.DisableUnshareFiles, &s.DisableUnshareSysV, &s.BecomeUser,
		&s.WorkerPerConnection, &s.RequireConfinement, &s.AuditConfinement, &s.Output, &s.Credentials)
}

// Audit configures the auditor: the path of the audit log, what happens when
// the log can't be written, and the path of the file of Idempotency-Keys.
type Audit struct {
	Path     string // path of the log file, or AuditStderr; "": there is no audit log
	FailOpen bool   // permit changes while the log can't be written, instead of refusing them
	Sync     bool   // a change waits until its line is on the disk, not only in the kernel
	Claims   string // path of the file of Idempotency-Keys; "": none
}

// AuditStderr is the Path of an audit log that is written to standard error.
const AuditStderr = "stderr"

func (a *Audit) Walk(w *Walker) {
	w.Text(maxPath, &a.Path)
	w.Fields(&a.FailOpen, &a.Sync)
	w.Text(maxPath, &a.Claims)
}

// Secrets holds the paths of the keys. The parent opens the files of the secret
// keys for the keeper, without reading them. It copies the files with
// certificates and public keys for the workers.
type Secrets struct {
	TLS    TLS
	Tokens Tokens
}

// TLS holds the paths of the files for https:// listeners.
type TLS struct {
	Certificate string // certificate chain, PEM, the server's certificate first
	Key         string // its private key, PEM
	ClientCA    string // certificate authorities of clients, PEM; "": clients need no certificate
	TLS12       bool   // TLS 1.2 is served as well
}

// Tokens holds the paths of the keys that verify tokens for rest_auth/jwt. If
// the file of a key does not exist or the parent can't read it, the daemons
// verify the tokens that need this key.
type Tokens struct {
	Key          string // path of the key of HS256 tokens, for the keeper; "": none
	Signing      string // path of the key with which the keeper signs credentials of auth/slurm; "": none
	JWKS         string // path of the key set of RS256 tokens, for the workers; "": none
	Provider     string // for the keeper, if it gets the key set, too: for which RS256 tokens it vouches (work.ProviderRules)
	ShareCommand string // the command that makes Key readable for SchedUser, and for root if possible, but for no worker
	RootCanRead  bool   // after ShareCommand has run, root without capabilities can read Key
	Register     string // path of the register of gateway tokens, for the keeper; "": none
}

func (s *Secrets) Walk(w *Walker) {
	w.Text(maxPath, &s.TLS.Certificate, &s.TLS.Key, &s.TLS.ClientCA)
	w.Fields(&s.TLS.TLS12)
	w.Text(maxPath, &s.Tokens.Key, &s.Tokens.Signing, &s.Tokens.JWKS, &s.Tokens.Provider, &s.Tokens.ShareCommand, &s.Tokens.Register)
	w.Fields(&s.Tokens.RootCanRead)
}

// Listen is one LISTEN argument, with the addresses of its host name.
type Listen struct {
	Text      string // the argument itself
	Network   Network
	TLS       bool
	Metrics   bool             // for scrapes of the metrics
	Path      string           // path of a UNIX socket
	Addresses []netip.AddrPort // TCP addresses
}

// PlanListen is one address to listen on.
type PlanListen struct{ Listen }

func (l *PlanListen) Walk(w *Walker) {
	w.Text(maxListen, &l.Text)
	Enum(w, &l.Network, "network", TCP, Unix)
	w.Fields(&l.TLS, &l.Metrics)
	w.Text(maxSocketPath, &l.Path)
	List(w, &l.Addresses, maxBound, 2, func(a *netip.AddrPort) { w.Fields(a) })
}

// PlanSubuids carries some of the ranges of subordinate uids. Together, all
// PlanSubuids messages of a Plan carry the ranges in ascending order.
type PlanSubuids struct{ Ranges []Subuids }

// Subuids is a range of subordinate uids that belong to the user Owner.
type Subuids struct{ First, Last, Owner uint32 }

func (s *PlanSubuids) Walk(w *Walker) {
	List(w, &s.Ranges, SubuidBatchSize, 12, func(r *Subuids) {
		w.Fields(&r.First, &r.Last, &r.Owner)
	})
}

// PlanSetup carries the Setup of the workers. It is the last message of a Plan.
type PlanSetup struct{ Setup }

// PackedPlan is a Plan with all its parts, as the parent receives it. Its Setup
// contains the workers' settings in encoded form.
type PackedPlan struct {
	Plan
	Listen  []Listen
	Metrics []Listen // listeners for scrapes
	Ranges  []Subuids
	Setup   Setup
}

// Add adds m to the plan if m is one of the messages that follow a Plan. It
// ignores other messages.
func (p *PackedPlan) Add(m Message) error {
	switch m := m.(type) {
	case *PlanListen:
		list := &p.Listen
		if m.Metrics {
			list = &p.Metrics
		}
		if len(*list) >= maxListeners {
			return violation(Config, KindOf(m), "is one more than %d", maxListeners)
		}
		*list = append(*list, m.Listen)
	case *PlanSubuids:
		for _, r := range m.Ranges {
			switch n := len(p.Ranges); {
			case n >= MaxSubuids:
				return violation(Config, KindOf(m), "has one more than %d", MaxSubuids)
			case r.Last < r.First || n > 0 && r.First <= p.Ranges[n-1].Last:
				return violation(Config, KindOf(m), "has ranges out of order")
			}
			p.Ranges = append(p.Ranges, r)
		}
	case *PlanSetup:
		p.Setup = m.Setup
	}
	return nil
}

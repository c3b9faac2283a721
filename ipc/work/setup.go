package work

import (
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"schedrestd/internal/setting"
	"schedrestd/ipc"
)

// Limits on the numbers of origins, host names and listeners with scopes that the
// administrator lists. The machine's own host names may be as many again as
// MaxHosts.
const (
	MaxOrigins = 32
	MaxScopes  = 32
	MaxHosts   = 32
)

// Setup is the part of the options and the configuration that a worker gets. It
// contains no secrets such as keys or tokens. schedrestd-config creates it
// (gateway/plan/setup.go). The parent decodes only the embedded ipc.Setup. It
// passes on the rest, which is encoded in ipc.Setup.Settings.
type Setup struct {
	ipc.Setup
	setting.REST
	setting.Pages
	setting.Tokens

	Cluster     string
	Controllers []Address // the primary controller first
	Front       []Address // shared address of all controllers; empty: each controller has only its own
	MorePorts   uint16    // number of additional ports after each port in Controllers and Front; the dispatcher selects one port for each worker
	Accounting  []Address // empty: no accounting daemon
	AuthSocket  string    // socket of the bundled controller, which identifies peers by SO_PEERCRED; "": none
	Munge       Munge     // authentication to daemons of Slurm
	TLS         TLS
	Sack        []string // sockets that issue auth/slurm credentials, which replace MUNGE credentials; in order of preference

	RequireUserName bool        // refuse the token of root or SchedUser if the request names no user
	Hosts           []string    // host names of the gateway, in lower case
	Output          bool        // a process reads the output files of the worker's user
	TokenOutput     bool        // … or rather, for each user whose token the keeper verifies, a process reads this user's
	Credentials     Credentials // where processes of the tokens' users get credentials; zero: gateway tokens are exchanged for tokens of the cluster
	Metrics         bool        // events are counted for the exporter
	Zone            []byte      // the local time zone, in the format TZif; empty: UTC
	UserClaim       string      // additional claim that may contain the user's name; "": only the standard claims
	ClientIDs       bool        // the daemons take the identity from a token's claims uid, gid and id (use_jwt_client_ids)
	ClientIDsOnly   bool        // they refuse a token without these claims
	PassUnknown     bool        // the daemons decide about users that this machine does not know
	Names           Names

	Parsers    []Parser      // API versions that are served, oldest first
	Deprecated []Deprecation // API versions that clients should no longer use
	Content    Content       // which paths are served
	JSON       Layout
	YAML       Layout

	Limits    Limits
	Admission Admission
}

// settings is a Setup whose Walk encodes or decodes only the fields that the
// parent does not decode.
type settings Setup

func (s *settings) Walk(w *ipc.Walker) { walk(w, reflect.ValueOf(s).Elem()) }

// Opaque returns the part of s that the parent does not decode, as a message.
func (s *Setup) Opaque() ipc.Message { return (*settings)(s) }

// Pack converts s to the form that the parent receives: Settings contains the
// part that the parent does not decode.
func (s Setup) Pack() (ipc.Setup, error) {
	p := s.Setup
	isUnix := func(a Address) bool { return a.Network == "unix" }
	isTCP := func(a Address) bool { return a.Network == "tcp" }
	p.Reach = 0
	if slices.ContainsFunc(slices.Concat(s.Controllers, s.Accounting, s.Front), isTCP) {
		p.Reach |= ipc.ReachTCP
	}
	if s.AuthSocket != "" || slices.ContainsFunc(s.Accounting, isUnix) {
		p.Reach |= ipc.ReachUnix
	}
	if s.Munge.Socket != "" || len(s.Sack) > 0 {
		p.Reach |= ipc.ReachMunge
	}
	frame, err := ipc.Encode(s.Opaque())
	p.Settings = frame[1:] // a Setup carries the fields without the kind
	return p, err
}

// Unpack returns the whole Setup: it decodes p.Settings, adapts the settings to
// this worker, and checks that every limit is set.
func Unpack(p ipc.Setup) (s Setup, err error) {
	if err := ipc.Unmarshal(p.Settings, s.Opaque()); err != nil {
		return s, fmt.Errorf("settings: %w", err)
	}
	s.Setup = p
	if !s.Sockets {
		s.AuthSocket, s.Munge, s.Sack = "", Munge{}, nil
		s.Accounting = slices.DeleteFunc(s.Accounting, func(a Address) bool { return a.Network == "unix" })
	}
	if s.Inetd {
		s.Admission = Admission{} // the worker serves one client and then exits, so penalties and rate limits would be useless
	}
	if s.LongTimeouts {
		l := &s.Limits
		l.ReadHeader, l.ReadBody, l.Idle, l.Stall = longTimeout, longTimeout, longTimeout, longTimeout
	}
	return s, s.Limits.Check()
}

// longTimeout replaces the usual timeouts if the gateway's input is a pipe or a
// terminal. Such a client may be slow, because it holds nothing that other
// clients need.
const longTimeout = 24 * time.Hour

// Address is the address of one daemon.
type Address struct {
	Name    string // from the configuration
	Host    string // another name or the address of the machine in the configuration; "" for none
	Network string // "tcp" or "unix"
	Address string // host:port, or a path

	// Resolved has the addresses of the host, if the configuration names it, at the
	// time when the configuration was read. It is empty if the name could not be
	// resolved. The dispatcher looks the name up again (gateway/dispatcher/dial).
	Resolved []netip.Addr
}

// Named returns the name and the port of a's host. It returns false if a has an IP
// address or the path of a UNIX socket.
func (a Address) Named() (host, port string, ok bool) {
	host, port, err := net.SplitHostPort(a.Address)
	if a.Network != "tcp" || err != nil {
		return "", "", false
	}
	_, err = netip.ParseAddr(host)
	return host, port, err != nil
}

// Known reports whether a had an IP address or a path when the configuration was
// read.
func (a Address) Known() bool {
	_, _, named := a.Named()
	return !named || len(a.Resolved) > 0
}

// TLS configures the TLS on the TCP connections to the daemons.
type TLS struct {
	CA         []byte // certificates of the CAs that sign those of the daemons, concatenated DER; empty: the connections are plain
	CheckNames bool   // a certificate must contain a name of the daemon
}

// Munge configures MUNGE credentials for the worker's user. If Socket is empty,
// the worker uses no MUNGE credentials.
type Munge struct {
	Socket     string
	Accounting string        // socket of the munged for the accounting daemon; "": the same as Socket
	TTL        time.Duration // lifetime of a credential; 0: munged's default
}

// Credentials is who issues the credentials of messages that the users of gateway tokens
// send: the keeper, sockets of auth/slurm, or MUNGE.
type Credentials struct {
	Signed   bool // the keeper signs them, as auth/slurm
	Munge    Munge
	Sack     []string // in order of preference
	SchedUID uint32   // of the daemons, who alone can use the credentials
}

// IsZero reports whether there is none.
func (c Credentials) IsZero() bool { return !c.Signed && c.Munge.Socket == "" && len(c.Sack) == 0 }

// Slurm reports whether they are credentials of auth/slurm.
func (c Credentials) Slurm() bool { return c.Signed || len(c.Sack) > 0 }

// Names is the set of spellings (sched, slurm) in which paths, headers and
// fields are served.
type Names uint8

// The spellings, which may be joined with |.
const (
	NamesSched Names = 1 << iota // /sched/…, X-SCHED-USER-TOKEN
	NamesSlurm                   // /slurm/…, X-SLURM-USER-TOKEN
)

func (n *Names) Walk(w *ipc.Walker) { ipc.Enum(w, n, "spelling", 0, NamesSched|NamesSlurm) }

// Parser describes one API version that is served: v0.0.42 if Version is 42.
// Package feature defines the bits of Flags.
type Parser struct {
	Version uint8
	Flags   uint8
}

// Deprecation describes an API version that clients should no longer use: v0.0.42
// if Version is 42.
type Deprecation struct {
	Version uint8
	Since   uint64 // Unix time at which the version is deprecated
	Sunset  uint64 // Unix time from which the version may be gone; 0 for none
}

// Content is the set of served content plugins.
type Content uint8

// The content plugins, which may be joined with |.
const (
	ContentController Content = 1 << iota // openapi/schedctld
	ContentAccounting                     // openapi/scheddb
	ContentUtil                           // openapi/util
)

func (c *Content) Walk(w *ipc.Walker) {
	ipc.Enum(w, c, "content", 0, ContentController|ContentAccounting|ContentUtil)
}

// Layout is the formatting of a body.
type Layout uint8

// The layouts. Not every format has all of them.
const (
	Compact Layout = 0
	Pretty  Layout = 1
	NoTag   Layout = 2 // combined with one of the others: YAML without the types' tags
)

func (l *Layout) Walk(w *ipc.Walker) { ipc.Enum(w, l, "layout", Compact, Pretty|NoTag) }

// Limits bounds the time and the memory that one client can take. Every field
// must be set.
type Limits struct {
	ReadHeader time.Duration // time to receive a request line and header
	ReadBody   time.Duration // a request is aborted if no part of its body arrives for this long
	Idle       time.Duration // time between two requests
	Stall      time.Duration // an answer is aborted if it makes no progress for this long
	Call       time.Duration // time for one call to a controller, and to begin a session with an accounting daemon
	Accounting time.Duration // time for one message to an accounting daemon and its answer; three times as much for a transaction
	Connect    time.Duration // time to connect to a daemon
	Drain      time.Duration // time to finish requests in progress when the worker must exit
	Header     uint32        // bytes of a request's header
	Body       uint32        // bytes of a request's body
	Answers    uint32        // total size of the daemons' answers that are held for slow clients, in bytes
}

// Check returns an error if a limit is not set.
func (l Limits) Check() error {
	for v, i := reflect.ValueOf(l), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			return fmt.Errorf("the limit %s is not set", v.Type().Field(i).Name)
		}
	}
	return nil
}

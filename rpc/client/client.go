// Package client asks the controller and the accounting daemon: Slurm's RPC, spoken
// to the shipped daemons and to a site's Slurm alike.
//
// Read it from the top: a method (node.go, submit.go, …) says which request it sends and
// how the answer is read; do (failover.go) finds a controller that answers; speak
// (version.go) finds out which protocol version it speaks; exchange (exchange.go) is one
// connection, one request, one answer. Accounting (accounting.go) is the same for the
// accounting daemon, whose connections stay (sessions.go) and belong to one token each.
//
// What was sent and not answered may have been carried out. Such a request is
// sent again only when its kind says that doing it twice does no harm; a
// job is never submitted twice, and the error's code is then outcome_unknown.
//
// An answer is read whole, at the controller's speed, before any of it is handed on: a slow reader
// at the other end must not hold a controller's connection. What that takes is bounded (Budget), and shared out: past
// it requests wait for their turn before they ask. Few long answers are asked for at a time (gate). One answer longer
// than any room there is handed on as it comes.
//
// Errors are *errs.Error, with Number set when a daemon gave one. They never hold a token.
package client

import (
	"context"
	"log/slog"
	"net"
	"os"
	"time"

	"schedrestd/rpc/message"
	"schedrestd/rpc/munge"
)

// Config says where the daemons are.
type Config struct {
	Controllers []Address // for New, primary first; the same Name again: another way to the same controller
	Accounting  []Address // for NewAccounting, likewise
	Cluster     string    // told to the accounting daemon; may be empty

	Timeout        time.Duration // for a whole call; 0: 10 s. An earlier end of its context counts too
	ConnectTimeout time.Duration // for one connection; 0: 2 s
	Stall          time.Duration // for each next piece of an answer longer than Answers; 0: 60 s
	MaxAnswer      int           // bytes of one answer; 0: 1 GiB, Slurm's own limit
	Answers        *Budget       // for answers; nil: one of 256 MiB, shared with nobody

	// Trusted reports whether a daemon of that user may be at the other end of a UNIX
	// socket, or of a TCP port of this machine; nil: root's and this process's own user's.
	// Another user could bind the port or the path while the daemon is away, and would
	// be sent tokens.
	Trusted func(uid uint32) bool

	// Munge has munged vouch for this process, where the kernel's word does not reach: a local
	// credential then travels over TCP too, and means who this process is. nil: it does not.
	Munge    *munge.Client
	MungeUID uint32 // of the scheduler's user, as whom the daemons run: he alone may decode

	// Dial opens a connection; nil: by itself. A worker in an empty network
	// namespace gets its connections from its parent.
	Dial func(ctx context.Context, a Address) (net.Conn, error)

	Log *slog.Logger // hears at level debug of each connection to a daemon; nil: nobody does
}

// Client asks the controllers of one cluster. It is safe for concurrent use and keeps
// no connection open.
type Client struct {
	caller
	gate     gate
	releases releases
}

// caller is what asking any daemon takes.
type caller struct {
	cfg Config
	*daemons
	usual *sizes
}

// Defaults of Config.
const (
	defaultTimeout        = 10 * time.Second
	defaultConnectTimeout = 2 * time.Second
	defaultStall          = 60 * time.Second
)

// New makes a Client of cfg's controllers; nothing is dialled yet.
func New(cfg Config) *Client {
	return &Client{caller: newCaller(cfg, "controller", cfg.Controllers)}
}

func newCaller(cfg Config, what string, addresses []Address) caller {
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.ConnectTimeout <= 0 {
		cfg.ConnectTimeout = defaultConnectTimeout
	}
	if cfg.Stall <= 0 {
		cfg.Stall = defaultStall
	}
	if cfg.Answers == nil {
		cfg.Answers = NewBudget(defaultAnswers)
	}
	if cfg.MaxAnswer <= 0 {
		cfg.MaxAnswer = message.MaxLength
	}
	if cfg.Trusted == nil {
		cfg.Trusted = func(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context, a Address) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, a.Network, a.Address)
		}
	}
	return caller{cfg, group(what, addresses), &sizes{}}
}

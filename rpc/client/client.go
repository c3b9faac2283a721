// Package client sends requests to the controller and the accounting daemon in
// Slurm's RPC, both to the bundled daemons and to a site's Slurm.
//
// Read it from the top: a method (node.go, submit.go, …) names the request and
// decodes the answer; do (failover.go) finds a controller that answers; speak
// (version.go) finds the protocol version that it speaks; exchange
// (exchange.go) opens one connection for one request and one answer. Accounting
// (accounting.go) does the same for the accounting daemon, whose connections
// stay open (sessions.go) and belong to one token each.
//
// A request that was sent and not answered may have been carried out. It is
// sent again only when its kind says that repeating it is harmless. A job is
// never submitted twice: the error's code is then outcome_unknown.
//
// An answer is read completely, at the controller's speed, before any of it is
// passed on: a slow client must not hold a controller's connection. A Budget
// bounds the memory and shares it among credentials; when it is used up,
// requests wait before they are sent. Few long answers are requested at a time
// (gate). An answer longer than the budget is passed on while it is read.
//
// Errors are *errs.Error, with Number set when a daemon sent one. They never
// hold a token.
package client

import (
	"context"
	"log/slog"
	"net"
	"os"
	"time"

	"schedrestd/rpc/message"
	"schedrestd/rpc/munge"
	"schedrestd/rpc/sack"
)

// Config says where the daemons are.
type Config struct {
	Controllers []Address // for New, primary first; addresses with the same Name belong to the same controller
	Accounting  []Address // for NewAccounting, in the same way
	Cluster     string    // told to the accounting daemon; may be empty

	Timeout        time.Duration // for a whole call; 0: 10 s. An earlier end of its context counts too
	ConnectTimeout time.Duration // for one connection; 0: 2 s
	Stall          time.Duration // for each next piece of an answer longer than Answers; 0: 60 s
	MaxAnswer      int           // bytes of one answer; 0: 1 GiB, Slurm's own limit
	Answers        *Budget       // memory for answers; nil: 256 MiB of its own

	// Trusted reports whether a daemon of that user may be at the other end of a UNIX
	// socket, or of a TCP port of this machine; nil: root's and this process's own user's.
	// Another user could bind the port or the path while the daemon is away, and would
	// be sent tokens.
	Trusted func(uid uint32) bool

	// Munge has munged authenticate this process where the kernel can't: a
	// local credential then works over TCP too, and stands for this process's
	// user. nil: it does not.
	Munge    *munge.Client
	Sack     *sack.Client // with auth/slurm instead of Munge
	MungeUID uint32       // of the scheduler's user, whom the daemons run as: no other user may decode

	// Dial opens a connection; nil: by itself. A worker in an empty network
	// namespace gets its connections from its parent.
	Dial func(ctx context.Context, a Address) (net.Conn, error)

	// Observe is called for each request that is sent to a daemon, and the function that
	// it returns when the first part of the answer is there or it has failed; nil: no
	// one observes.
	Observe func(message.Type) (done func(Outcome))

	Log *slog.Logger // logs each connection to a daemon at level debug; nil: no log
}

// Client asks the controllers of one cluster. It is safe for concurrent use and keeps
// no connection open.
type Client struct {
	caller
	gate     gate
	releases releases
}

// caller holds what both clients need.
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

// Package client sends requests to controllers and accounting daemons in
// Slurm's RPC protocol. It works with the bundled daemons and with a site's
// Slurm.
//
// A request passes through these functions: a method (node.go, submit.go, …)
// creates the request and decodes the answer; ask (round.go) lets equal calls
// share one request; do (failover.go) finds a controller that answers;
// findVersion (version.go) determines the protocol version that the controller
// supports; exchange (exchange.go) opens one connection for one request and one
// answer. For the accounting daemon, the type Accounting (accounting.go) does
// the same. Its connections stay open (sessions.go), and each belongs to one
// token.
//
// If a daemon does not answer a request, it may or may not have carried out the
// request. The client sends such a request again only if a repetition is
// harmless. It never repeats a submission, and returns an error with the code
// outcome_unknown instead.
//
// Normally an answer is read completely, as fast as the controller sends it,
// before any record is passed to the caller. So a slow HTTP client does not
// keep a connection to the controller busy, and slurmctld, which sends for at
// most MessageTimeout, does not cut its answer short. A Budget limits the memory
// for answers and shares it among users. The answers in it are compressed.
//
// In two cases, records are passed on while the answer is still being read:
// where memory is short, and if the caller uses the records itself and sends
// none to a client (model.Query.Prompt). A gate limits the connections for long
// answers. Requests wait at the gate before they are sent, so no answer is
// requested in vain.
//
// Errors are *errs.Error, with Number set if a daemon sent one. They never
// contain a token.
package client

import (
	"context"
	"log/slog"
	"net"
	"os"
	"time"

	"schedrestd/internal/fdpass/unixconn"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/rpc/message"
	"schedrestd/rpc/munge"
	"schedrestd/rpc/sack"
	"schedrestd/rpc/tlsconn"
)

// Config configures a Client or an Accounting.
type Config struct {
	Controllers []Address // for New, primary first; addresses with the same Name belong to the same controller
	Accounting  []Address // for NewAccounting, in the same form
	Cluster     string    // sent to the accounting daemon; may be empty

	Timeout        time.Duration // for a whole call to a controller, and for opening sessions with accounting daemons; 0 for 10 s. The call's context may end it earlier
	LongTimeout    time.Duration // for a message to an accounting daemon, and its answer; 0 for 900 s, the limit of Slurm's own clients. A transaction of many messages may take three times as long
	ConnectTimeout time.Duration // for one connection; 0 for 2 s
	Stall          time.Duration // for each piece of an answer for which Answers has no memory; 0 for 60 s
	MaxAnswer      int           // maximum length of an answer, in bytes; 0 for 1 GiB, Slurm's own limit
	Answers        *Budget       // memory for answers; nil for a separate budget of 256 MiB

	// Trusted reports whether a user may listen on a daemon's UNIX socket, or
	// on its TCP port on this machine. While the daemon is down, an untrusted
	// user could bind that path or port, and would receive tokens. If Trusted
	// is nil, only root and the user of this process are trusted.
	Trusted func(uid uint32) bool

	// Munge is the client of munged, or nil. Over TCP, a daemon can't ask the
	// kernel which user runs this process, but munged can confirm it. So with
	// Munge, a credential without a token works over TCP as well as on UNIX
	// sockets.
	Munge    *munge.Client
	Sack     *sack.Client // for auth/slurm, instead of Munge
	MungeUID uint32       // user of the daemons; only this user may decode the credentials

	// Bearer returns the token that a daemon gets in place of a gateway token, for
	// the user actAs of the credential. It is called for each message, because the
	// gateway token can be revoked at any time. Nil if there are no gateway tokens.
	Bearer func(ctx context.Context, token, actAs string) (string, error)

	// Stamp, if it is not nil, replaces Bearer: it returns the credential of MUNGE or,
	// with StampSlurm, of auth/slurm for one message with this type number and body.
	Stamp      func(ctx context.Context, token, actAs string, number uint16, body []byte) (string, error)
	StampSlurm bool

	// TLS is for the TCP connections to the daemons. If it is nil, they are
	// plain. Connections to UNIX sockets always are.
	TLS *tlsconn.Client

	// Dial opens a connection. If it is nil, the Client opens connections
	// itself. A worker can't do that in its empty network namespace, so it sets
	// Dial to get connections from another process.
	Dial func(ctx context.Context, a Address) (net.Conn, error)

	// Park, if it is not nil, is called while a call waits for an accounting
	// daemon, so that its caller gives up what others need. The context is the
	// one of the call. When the wait is over, the function resume is called.
	// Until then, Park's caller may be asked to end the call, with the function
	// stop, which does not wait. If changing is set, a change has been sent, which
	// does not end early: Park must not fail, and stop has no effect. If Park returns
	// an error, any other call ends with this error.
	Park func(ctx context.Context, changing bool, stop func()) (resume func(), err error)

	// Observe, if it is not nil, is called at the beginning of each request to
	// a daemon. The function that it returns is called when the first part of
	// the answer has arrived or when the request has failed.
	Observe func(message.Type) (done func(Outcome))

	// Reused, if it is not nil, is called for each request that a Client does not
	// send, because it can use the answer to another one: to an earlier request,
	// if kept is true, or otherwise to one that was sent for several calls.
	Reused func(kept bool)

	Log *slog.Logger // logs each connection to a daemon at level debug; nil for no log
}

// Client sends requests to the controllers of one cluster. It is safe for
// concurrent use and keeps no connection open.
type Client struct {
	caller
	rounds    rounds
	releases  releases
	estimates *semaphore.Semaphore[string] // keys are holders
}

// caller has the fields that Client and Accounting share.
type caller struct {
	cfg Config
	*daemons
	long *longAnswers
	gate *gate
}

// Defaults of Config.
const (
	defaultTimeout        = 10 * time.Second
	defaultLongTimeout    = 900 * time.Second
	defaultConnectTimeout = 2 * time.Second
	defaultStall          = 60 * time.Second
)

// New returns a Client for the controllers in cfg. It does not connect to them.
func New(cfg Config) *Client {
	c := &Client{caller: newCaller(cfg, "controller", cfg.Controllers), estimates: semaphore.New[string](limit.Estimates)}
	c.cfg.Answers.reclaim = append(c.cfg.Answers.reclaim, c.rounds.free)
	return c
}

func newCaller(cfg Config, kind string, addresses []Address) caller {
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.LongTimeout <= 0 {
		cfg.LongTimeout = defaultLongTimeout
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
			return unixconn.DialContext(ctx, a.Network, a.Address)
		}
	}
	return caller{cfg, group(kind, addresses), &longAnswers{}, newGate()}
}

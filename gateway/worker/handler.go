package worker

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/become"
	"schedrestd/handlers"
	"schedrestd/handlers/rest"
	"schedrestd/internal/feature"
	"schedrestd/internal/release"
	"schedrestd/ipc/work"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/munge"
	"schedrestd/rpc/sack"
)

// NewHandler builds the handlers of a worker from its Setup, and the clients
// with which they call the site's daemons. If broker is nil, the process dials
// by itself and looks up no names. Benchmarks pass nil, because they run
// without a dispatcher and without a sandbox.
func NewHandler(setup work.Setup, tokens *Tokens, broker *Broker) (http.Handler, error) {
	daemons := client.Config{
		Controllers:    controllers(setup),
		Accounting:     addresses(setup.Accounting),
		Cluster:        setup.Cluster,
		Timeout:        setup.Limits.Call,
		ConnectTimeout: setup.Limits.Connect,
		Stall:          setup.Limits.Stall,
		Answers:        client.NewBudget(int(setup.Limits.Answers)),
		Trusted:        func(uid uint32) bool { return uid == 0 || uid == setup.SchedUID },
		Munge:          broker.mungeClient(setup.Munge, work.UpstreamMunge, setup.Munge.Socket),
		Sack:           broker.sackClient(setup.Sack, setup.SchedUID),
		Dial:           broker.dialer(work.UpstreamController, setup.Controllers, setup.AuthSocket),
		MungeUID:       setup.SchedUID,
		Observe:        observeCalls(false),
		Log:            slog.Default(),
	}
	cfg := handlerConfig(setup)
	ctl := controller(setup, daemons, broker)
	cfg.Controller = ctl
	cfg.Auth = auth.Options{
		JWT:            setup.JWT,
		Local:          setup.Local,
		UID:            uint32(os.Getuid()),
		User:           broker.ownName(uint32(os.Getuid())),
		UserClaimField: setup.UserClaim,
	}
	cfg.Memory = daemons.Answers
	cfg.MaxBody = min(cfg.MaxBody, rest.MaxBody(int64(setup.Limits.Answers)))
	cfg.MaxParsed = int64(setup.Limits.Answers) / 2 // a user's share of the budget
	cfg.Authenticator, tokens.singleClient = tokens.Authenticator(), setup.Inetd
	cfg.Admit, cfg.HalfClosed = admit, hasHalfClosed
	cfg.Ready = readiness(tokens, ctl.Reachable)
	if cfg.Content != 0 && cfg.Content&feature.Controller == 0 {
		cfg.Ready = readiness(tokens, nil)
	}
	users := newUsers(broker)
	cfg.Users, cfg.Resolver = users, users
	if setup.Audit && broker != nil {
		cfg.Audit = broker.audit
	}
	if setup.Claims && broker != nil {
		cfg.Keys = claims{broker.audit.remoteService}
	}
	if setup.RequireUserName {
		cfg.Auth.Privileged = func(user string) bool { return slices.Contains(setup.Privileged, user) }
	}
	if len(setup.Accounting) > 0 {
		if socket := setup.Munge.Accounting; socket != "" {
			daemons.Munge = broker.mungeClient(setup.Munge, work.UpstreamAccountingMunge, socket)
		}
		daemons.Dial = broker.dialer(work.UpstreamAccounting, setup.Accounting, "")
		daemons.Observe = observeCalls(true)
		cfg.Accounting = client.NewAccounting(daemons)
	}
	return handlers.New(cfg), nil
}

// mungeClient returns a MUNGE client, or nil if MUNGE is not configured. The
// client accepts a server that runs as root or as the owner of the MUNGE
// socket's directory.
func (b *Broker) mungeClient(m work.Munge, upstream work.Upstream, socket string) *munge.Client {
	if m.Socket == "" || b == nil {
		return nil
	}
	var owner owner
	return &munge.Client{Socket: socket, TTL: m.TTL,
		Dial: func(ctx context.Context, path string) (net.Conn, error) {
			nc, uid, err := b.open(ctx, upstream, 0, client.Address{Network: "unix", Address: path})
			return owner.record(nc, uid, err)
		},
		Trusted: owner.allows,
	}
}

// sackClient returns a client that requests auth/slurm credentials, or nil if
// auth/slurm is not configured. The client accepts a server that runs as root,
// as the owner of the socket's directory, or as the scheduler's user. sackd and
// slurmctld run as the scheduler's user, but root may own the directory.
func (b *Broker) sackClient(sockets []string, sched uint32) *sack.Client {
	if len(sockets) == 0 || b == nil {
		return nil
	}
	owners := make([]owner, len(sockets))
	return &sack.Client{Sockets: sockets,
		Dial: func(ctx context.Context, i int) (net.Conn, error) {
			nc, uid, err := b.open(ctx, work.UpstreamSack, uint8(i), client.Address{Network: "unix", Address: sockets[i]})
			return owners[i].record(nc, uid, err)
		},
		Trusted: func(i int, uid uint32) bool { return uid == sched || owners[i].allows(uid) },
	}
}

// An owner holds the uid of the owner of a socket's directory. The uid is known
// once the socket has been dialled.
type owner struct{ uid atomic.Uint32 }

func (o *owner) record(nc net.Conn, uid uint32, err error) (net.Conn, error) {
	if err == nil {
		o.uid.Store(uid)
	}
	return nc, err
}

// allows reports whether the server of the socket may run as uid.
func (o *owner) allows(uid uint32) bool {
	return uid == 0 || uid == o.uid.Load() && uid != become.Overflow
}

// handlerConfig returns the settings that do not depend on a daemon. NewHandler
// adds the clients of the daemons. If an accounting daemon is configured,
// noAccounting stands in for its client.
func handlerConfig(setup work.Setup) handlers.Config {
	cfg := handlers.Config{
		Content:  feature.Content(setup.Content),
		Statuses: setup.Statuses,
		Docs:     setup.Docs,
		Config: rest.Config{
			Names:      spellings(setup.Names),
			Parsers:    parsers(setup.Parsers),
			JSON:       schema.Layout(setup.JSON),
			YAML:       schema.Layout(setup.YAML),
			Cluster:    setup.Cluster,
			Release:    release.Version,
			ErrorText:  fault.Text,
			SendLength: setup.Inetd,
			MaxAge:     setup.MaxAge,
			Renderings: int(setup.Limits.Answers) / 8,
			MaxBody:    int64(setup.Limits.Body),
			ReadBody:   setup.Limits.ReadBody,
			Strict:     setup.StrictBodies,
			Log:        slog.Default(),
			Lines:      requestLines(),
			Observe:    observeRequest,
		},
	}
	if len(setup.Accounting) > 0 {
		cfg.Accounting = noAccounting{}
	}
	return cfg
}

// requestLines returns the limits on the log lines about requests. A process
// runs at most one worker, so all handlers of the process share them.
var requestLines = sync.OnceValue(func() *rest.Lines { return rest.NewLines(slog.Default()) })

// noAccounting is a placeholder for the client of an accounting daemon. Its
// methods are never called.
type noAccounting struct{ handlers.Accounting }

// controller returns the client for requests about jobs and nodes. Like Slurm's
// commands, the client tries the controllers in order. If the controllers share
// an address, the client uses only this address. The exception is a ping, which
// uses each controller's own address.
func controller(setup work.Setup, daemons client.Config, broker *Broker) reachableController {
	each := client.New(daemons)
	if len(setup.Front) == 0 {
		return each
	}
	daemons.Controllers = withSocket(setup, addresses(setup.Front))
	if broker != nil {
		daemons.Dial = broker.dialer(work.UpstreamFront, setup.Front, setup.AuthSocket)
	}
	return sharedController{client.New(daemons), each}
}

// A reachableController is a handlers.Controller that also reports whether a
// controller can be reached.
type reachableController interface {
	handlers.Controller
	Reachable(context.Context) bool
}

// sharedController is a set of controllers behind a shared address.
type sharedController struct {
	*client.Client
	members *client.Client
}

// Ping pings every controller.
func (f sharedController) Ping(ctx context.Context, cred model.Credential) ([]model.Ping, error) {
	return f.members.Ping(ctx, cred)
}

// controllers returns the addresses of the primary controller and of each
// backup, in the order of the configuration.
func controllers(setup work.Setup) []client.Address {
	return withSocket(setup, addresses(setup.Controllers))
}

// withSocket puts the primary controller's UNIX socket first, because over a
// UNIX socket the kernel tells each side who the other is. A request without a
// token can use only this socket.
func withSocket(setup work.Setup, list []client.Address) []client.Address {
	if setup.AuthSocket == "" || len(list) == 0 {
		return list
	}
	return slices.Insert(list, 0, client.Address{Name: list[0].Name, Network: "unix", Address: setup.AuthSocket})
}

func addresses(list []work.Address) []client.Address {
	var out []client.Address
	for _, a := range list {
		out = append(out, client.Address{Name: a.Name, Network: a.Network, Address: a.Address})
	}
	return out
}

// parsers converts the list of served API versions. Packages ipc/work and
// feature use the same bits for a version's flags.
func parsers(list []work.Parser) []feature.Parser {
	var out []feature.Parser
	for _, p := range list {
		out = append(out, feature.Parser{Version: p.Version, Flags: feature.Flags(p.Flags)})
	}
	return out
}

func spellings(n work.Names) api.Names {
	switch n {
	case work.NamesSlurm:
		return api.NamesSlurm
	case work.NamesSched | work.NamesSlurm:
		return api.NamesBoth
	}
	return api.NamesSched
}

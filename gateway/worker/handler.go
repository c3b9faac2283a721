package worker

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/gateway/worker/broker"
	"schedrestd/gateway/worker/conns"
	"schedrestd/gateway/worker/keys"
	"schedrestd/gateway/worker/limiter"
	"schedrestd/gateway/worker/meter"
	"schedrestd/handlers"
	"schedrestd/handlers/feed"
	"schedrestd/handlers/rest"
	"schedrestd/internal/feature"
	"schedrestd/internal/release"
	"schedrestd/ipc/work"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/tlsconn"
)

// NewHandler builds the handlers of a worker from its Setup, and the clients
// with which they call the site's daemons. If b is nil, the process dials
// by itself and looks up no names. Benchmarks pass nil, because they run
// without a dispatcher and without a sandbox.
func NewHandler(setup work.Setup, k *keys.Keys, b *broker.Broker) (Handler, error) {
	daemons, err := daemonConfig(setup, k, b)
	if err != nil {
		return nil, err
	}
	ctl, users := controller(setup, daemons, b), b.Users()
	cfg := handlerConfig(setup)
	cfg.Controller = ctl
	if len(setup.Accounting) > 0 {
		cfg.Levels = client.NewAccounting(accountingConfig(setup, daemons, b))
		if cfg.Content == 0 || cfg.Content.Has(feature.Accounting) {
			cfg.Accounting = cfg.Levels
		}
	}
	cfg.Auth = auth.Options{
		JWT:   setup.JWT,
		Local: setup.Local,
		UID:   uint32(os.Getuid()),
		User:  users.OwnName(uint32(os.Getuid())),
		Rules: tokenRules(setup),
		Hosts: setup.Hosts,
		Seen:  new(auth.Seen),
	}
	if setup.RequireUserName {
		cfg.Auth.Privileged = func(user string, uid *uint32) bool {
			return slices.Contains(setup.Privileged, user) || uid != nil && (*uid == 0 || *uid == setup.SchedUID)
		}
	}
	cfg.Worker = process{
		Audit:  b.Audit(setup.Audit, setup.Claims),
		memory: func(cred model.Credential) feed.Reservation { return daemons.Answers.Reserve(cred) },
		watch:  k.Watch,
	}
	cfg.MaxBody = min(cfg.MaxBody, rest.MaxBody(int64(setup.Limits.Answers)))
	cfg.MaxParsed = int64(setup.Limits.Answers) / 2 // a user's share of the budget
	cfg.Authenticator, k.SingleClient = k.Authenticator(), setup.Inetd
	if b != nil {
		cfg.Authenticator.UserID, cfg.Authenticator.PassUnknown, cfg.Authenticator.Excuse = findUser(users), setup.PassUnknown, limiter.Excuse
	}
	cfg.HalfClosed = conns.HasHalfClosed
	cfg.Ready, cfg.Administers = readiness(k, ctl.Reachable), administers(setup)
	if cfg.Content != 0 && cfg.Content&feature.Controller == 0 {
		cfg.Ready = readiness(k, nil)
	}
	if setup.Register != "" {
		cfg.TokenDigests, cfg.Tokens = k.Digests, k.Tokens()
	}
	if setup.Output && b != nil {
		cfg.Output = b.Output(k.Voucher(setup.TokenOutput))
	}
	cfg.Users, cfg.Resolver = users, users
	return handlers.New(cfg), nil
}

// findUser returns a function that looks up the user of a request with a
// verified token. The token's user, and behind a trusted proxy each client of
// this user, has a turn of its own.
func findUser(users *broker.Users) func(context.Context, auth.Credential, string) (uint32, error) {
	return func(ctx context.Context, c auth.Credential, name string) (uint32, error) {
		turn := c.Claims.User
		if peer, _ := auth.PeerFrom(ctx); peer.Forwarded != "" {
			turn += " " + peer.Source()
		}
		return users.Account(ctx, name, turn)
	}
}

// daemonConfig returns the configuration of a client of the controllers.
func daemonConfig(setup work.Setup, k *keys.Keys, b *broker.Broker) (cfg client.Config, err error) {
	cfg = client.Config{
		Controllers:    controllers(setup),
		Accounting:     addresses(setup.Accounting),
		Cluster:        setup.Cluster,
		Timeout:        setup.Limits.Call,
		LongTimeout:    setup.Limits.Accounting,
		ConnectTimeout: setup.Limits.Connect,
		Stall:          setup.Limits.Stall,
		Answers:        client.NewBudget(int(setup.Limits.Answers)),
		Trusted:        func(uid uint32) bool { return uid == 0 || uid == setup.SchedUID },
		Munge:          b.Munge(setup.Munge, work.UpstreamMunge, setup.Munge.Socket),
		Sack:           b.Sack(setup.Sack, setup.SchedUID),
		Dial:           b.Dialer(work.UpstreamController, setup.Controllers, setup.AuthSocket),
		MungeUID:       setup.SchedUID,
		Bearer:         k.Bearer,
		Observe:        meter.ObserveCalls(false),
		Reused:         meter.CountReused,
		Log:            slog.Default(),
	}
	if b != nil && !setup.Credentials.IsZero() {
		k.StampWith(b)
		cfg.Stamp, cfg.StampSlurm = k.Stamp, setup.Credentials.Slurm()
	}
	if len(setup.TLS.CA) > 0 {
		cfg.TLS, err = tlsconn.NewClient(setup.TLS.CA, setup.TLS.CheckNames)
	}
	return cfg, err
}

// accountingConfig returns the configuration of a client of the accounting
// daemons, which differs in a few fields from cfg, that of the controllers.
func accountingConfig(setup work.Setup, cfg client.Config, b *broker.Broker) client.Config {
	if socket := setup.Munge.Accounting; socket != "" {
		cfg.Munge = b.Munge(setup.Munge, work.UpstreamAccountingMunge, socket)
	}
	cfg.Dial = b.Dialer(work.UpstreamAccounting, setup.Accounting, "")
	cfg.Observe = meter.ObserveCalls(true)
	cfg.Park = limiter.ParkCall
	return cfg
}

// tokenRules returns the claims of a token that the daemons use, and the gateway's
// own rules.
func tokenRules(setup work.Setup) auth.Rules {
	gateway := ""
	if setup.Register != "" {
		gateway = setup.Cluster
	}
	return auth.Rules{Tokens: setup.Tokens, Gateway: gateway, UserField: setup.UserClaim, ClientIDs: setup.ClientIDs, ClientIDsOnly: setup.ClientIDsOnly}
}

// handlerConfig returns the settings that do not depend on a daemon. NewHandler
// adds the clients of the daemons, the limit on memory and the audit log.
func handlerConfig(setup work.Setup) handlers.Config {
	return handlers.Config{
		Pages:   setup.Pages,
		Content: feature.Content(setup.Content),
		Config: rest.Config{
			REST:       setup.REST,
			Names:      spellings(setup.Names),
			Parsers:    parsers(setup.Parsers),
			Deprecated: deprecated(setup.Deprecated),
			JSON:       schema.Layout(setup.JSON),
			YAML:       schema.Layout(setup.YAML),
			Cluster:    setup.Cluster,
			Release:    release.Version,
			ErrorText:  fault.Text,
			SendLength: setup.Inetd,
			CallTime:   setup.Limits.Call,
			Renderings: int(setup.Limits.Answers) / 8,
			MaxBody:    int64(setup.Limits.Body),
			ReadBody:   setup.Limits.ReadBody,
			Log:        slog.Default(),
			Lines:      requestLines(),
		},
	}
}

// requestLines returns the limits on the log lines about requests. A process
// runs at most one worker.
var requestLines = sync.OnceValue(func() *rest.Lines { return rest.NewLines(slog.Default()) })

// controller returns the client for requests about jobs and nodes. Like Slurm's
// commands, the client tries the controllers in order. If the controllers share
// an address, the client uses only this address. The exception is a ping, which
// uses each controller's own address.
func controller(setup work.Setup, daemons client.Config, b *broker.Broker) reachableController {
	each := client.New(daemons)
	if len(setup.Front) == 0 {
		return each
	}
	daemons.Controllers = withSocket(setup, addresses(setup.Front))
	if b != nil {
		daemons.Dial = b.Dialer(work.UpstreamFront, setup.Front, setup.AuthSocket)
	}
	return sharedController{client.New(daemons), each}
}

// A reachableController is a handlers.Controller that also reports why no
// controller can be reached.
type reachableController interface {
	handlers.Controller
	Reachable(context.Context) error
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
		out = append(out, client.Address{Name: a.Name, Host: a.Host, Network: a.Network, Address: a.Address})
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

// deprecated converts the list of deprecated API versions.
func deprecated(list []work.Deprecation) map[schema.Version]rest.Deprecation {
	out := map[schema.Version]rest.Deprecation{}
	for _, d := range list {
		converted := rest.Deprecation{Since: time.Unix(int64(d.Since), 0)}
		if d.Sunset != 0 {
			converted.Sunset = time.Unix(int64(d.Sunset), 0)
		}
		out[schema.Version(d.Version)] = converted
	}
	return out
}

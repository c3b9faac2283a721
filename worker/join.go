package worker

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"os"
	"slices"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/become"
	"schedrestd/handlers"
	"schedrestd/ipc"
	"schedrestd/model"
	"schedrestd/plugin"
	"schedrestd/release"
	"schedrestd/rpc/client"
	"schedrestd/rpc/munge"
)

// Join makes the service of a real worker out of its Setup: the handlers, on a client
// of the site's daemons. It is the one place where those parts meet.
func Join(setup ipc.Setup, tokens *Tokens) (http.Handler, error) {
	daemons := client.Config{
		Controllers:    controllers(setup),
		Accounting:     addresses(setup.Accounting),
		Cluster:        setup.Cluster,
		Timeout:        setup.Limits.Call,
		ConnectTimeout: setup.Limits.Connect,
		Stall:          setup.Limits.Stall,
		Answers:        client.NewBudget(int(setup.Limits.Answers)),
		Trusted:        func(uid uint32) bool { return uid == 0 || uid == setup.SchedUID },
		Munge:          munged(setup.Munge, setup.Munge.Socket),
		MungeUID:       setup.SchedUID,
		Log:            slog.Default(),
	}
	cfg := answers(setup)
	cfg.Controller = controller(setup, daemons)
	cfg.Auth = auth.Options{
		JWT:            setup.JWT,
		Local:          setup.Local,
		UID:            uint32(os.Getuid()),
		UserClaimField: setup.UserClaim,
	}
	cfg.Judge = tokens.Judge()
	cfg.Ready = func() bool { return !leaving.Load() }
	cfg.Users = newUsers()
	if setup.RequireUserName {
		names, err := privilegedNames(setup.SchedUID)
		if err != nil {
			return nil, err
		}
		cfg.Auth.NameNeeded = func(user string) bool { return slices.Contains(names, user) }
	}
	if u, err := become.LookupUID(cfg.Auth.UID); err == nil {
		cfg.Auth.User = u.Name
	}
	if len(setup.Accounting) > 0 {
		if socket := setup.Munge.Accounting; socket != "" {
			daemons.Munge = munged(setup.Munge, socket)
		}
		cfg.Accounting = client.NewAccounting(daemons)
	}
	return handlers.New(cfg), nil
}

// munged is the one who vouches for this worker's user, when he is asked at all.
func munged(m ipc.Munge, socket string) *munge.Client {
	if m.Socket == "" {
		return nil
	}
	return &munge.Client{Socket: socket, TTL: m.TTL}
}

// answers says what answers look like. There is no daemon in it, and nobody who may ask one.
func answers(setup ipc.Setup) handlers.Config {
	cfg := handlers.Config{
		Names:    spellings(setup.Names),
		Parsers:  parsers(setup.Parsers),
		Content:  plugin.Content(setup.Content),
		Statuses: setup.Statuses,
		JSON:     schema.Layout(setup.JSON),
		YAML:     schema.Layout(setup.YAML),
		Cluster:  setup.Cluster,
		Release:  release.Version,
		MaxBody:  int64(setup.Limits.Body),
		ReadBody: setup.Limits.ReadBody,
		Log:      slog.Default(),
	}
	if len(setup.Accounting) > 0 {
		cfg.Accounting = unasked{}
	}
	return cfg
}

// unasked stands for an accounting daemon that is there.
type unasked struct{ handlers.Accounting }

// privilegedNames is every name of root and SchedUser, aliases too. They are looked up once:
// the name in a token that nobody has verified must cost no look-up.
func privilegedNames(schedUID uint32) ([]string, error) {
	list := []string{"root"}
	for _, uid := range []uint32{0, schedUID} {
		names, err := become.NamesOf(uid)
		if err != nil {
			return nil, err
		}
		list = append(list, names...)
	}
	return list, nil
}

// controller is who is asked about jobs and nodes: the controllers, or where one address stands for whichever of them is
// in charge, that alone, as Slurm's commands do. How each of them is doing is asked at its own in any case.
func controller(setup ipc.Setup, daemons client.Config) handlers.Controller {
	each := client.New(daemons)
	if len(setup.Front) == 0 {
		return each
	}
	daemons.Controllers = withSocket(setup, spread(setup.Front, setup.MorePorts))
	return fronted{client.New(daemons), each}
}

// fronted is controllers behind one address.
type fronted struct {
	*client.Client
	each *client.Client
}

// Ping asks every controller.
func (f fronted) Ping(ctx context.Context, cred model.Credential) ([]model.Ping, error) {
	return f.each.Ping(ctx, cred)
}

// controllers are the ways to the controllers, in the order of the configuration: the primary, and
// then who takes over from whom.
func controllers(setup ipc.Setup) []client.Address {
	return withSocket(setup, spread(setup.Controllers, setup.MorePorts))
}

// withSocket adds a UNIX socket, which is another way to the
// primary one, and the only one for who has no token: there the kernel is his witness. It comes
// last because for who has one it may be closed, and trying it costs every request.
func withSocket(setup ipc.Setup, list []client.Address) []client.Address {
	if setup.AuthSocket == "" || len(list) == 0 {
		return list
	}
	socket := client.Address{Name: list[0].Name, Network: "unix", Address: setup.AuthSocket}
	return append(list, socket)
}

// spread takes, of the ports at which the controllers listen, one for this worker: they are many so that
// not all ask at the same.
func spread(list []ipc.Address, more uint16) []client.Address {
	out := addresses(list)
	for i, a := range out {
		at, err := netip.ParseAddrPort(a.Address)
		if err != nil || a.Network != "tcp" || int(at.Port())+int(more) > math.MaxUint16 {
			continue
		}
		port := at.Port() + uint16(os.Getpid()%(int(more)+1))
		out[i].Address = netip.AddrPortFrom(at.Addr(), port).String()
	}
	return out
}

func addresses(list []ipc.Address) []client.Address {
	var out []client.Address
	for _, a := range list {
		out = append(out, client.Address{Name: a.Name, Network: a.Network, Address: a.Address})
	}
	return out
}

// parsers are the API versions to serve; the book's flags are package plugin's.
func parsers(list []ipc.Parser) []plugin.Parser {
	var out []plugin.Parser
	for _, p := range list {
		out = append(out, plugin.Parser{Version: p.Version, Flags: plugin.Flags(p.Flags)})
	}
	return out
}

func spellings(n ipc.Names) api.Names {
	switch n {
	case ipc.NamesSlurm:
		return api.NamesSlurm
	case ipc.NamesSched | ipc.NamesSlurm:
		return api.NamesBoth
	}
	return api.NamesSched
}

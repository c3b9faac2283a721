package privsep

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/dial"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/inetd"
	"schedrestd/privsep/keys"
	"schedrestd/privsep/pool"
	"schedrestd/privsep/relay"
	"schedrestd/privsep/service"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// Inetd serves the one client at standard input and output through one worker.
// It returns nil when the client's input has ended and every request is
// answered, whatever the answers were. An error means that the service itself
// failed.
//
// If in is a connected socket it is read and written. Otherwise the answers go
// to out. The first signal makes the worker finish the request in progress, a
// second one ends it.
func Inetd(signals <-chan os.Signal, c Config, in, out *os.File) error {
	runtime.GOMAXPROCS(1)                           // this process starts one other and waits: fewer threads need to be started
	signal.Ignore(syscall.SIGPIPE, syscall.SIGUSR1) // with one client there is nothing to count
	if err := security.CloseInherited(); err != nil {
		return err
	}
	client, err := inetd.Meet(in, out)
	if err != nil {
		return err
	}
	defer client.Leave()
	c.Setup = client.Limit(c.Setup)
	c.Connections, c.Workers, c.Threads = 1, 1, 1
	if c, err = c.complete(); err != nil {
		return err
	}
	who, err := serveAs(c, client)
	if stranger, ok := errors.AsType[*stranger](err); ok {
		who.Identity, err = refuse(c, client, who, stranger), nil
	}
	if err != nil {
		return err
	}
	c.kernelTells = client.Network != ipc.TCP
	c.Setup = c.setup(who)
	program, err := spawn.OpenWorker(c.Program, who.Identity, who.Root)
	if err != nil {
		return err
	}
	defer program.Close()
	keys, err := keys.OpenPublic(c.keyOptions(who, false))
	if err != nil {
		return err
	}
	audit, err := c.openAudit(who)
	if err != nil {
		return err
	}
	defer audit.Close()
	resolver, err := service.New(c.serviceOptions(ipc.Resolver, who, c.Resolver, c.ResolverArgv))
	if err != nil {
		return err
	}
	defer resolver.Close()
	accused, lost := make(chan string, 1), make(chan string)
	report := func(_ uint32, why string) {
		select {
		case accused <- why:
		default:
		}
	}
	m := newParent(c, &makers{who: who, resolver: resolver, reportViolation: report})
	defer m.stop()
	if err := m.begin(c, who, program, nil); err != nil {
		return err
	}
	g := newGeneration(c)
	g.keys = keys
	defer g.close()
	return inetd.Serve(signals, inetd.Options{
		Client:  client,
		Spawner: m.Spawner,
		Worker: spawn.Birth{Role: ipc.Worker, Program: m.Spawner.Worker, Argv: m.Spawner.Argv, Threads: c.Threads, Who: who.Identity,
			Files: c.files()},
		Quota: relay.NewQuota(float64(c.LogBurst), float64(c.LogRate)),
		Setup: c.Setup,
		Dial: dial.Options{Outlet: m.Outlet, Foreign: m.Spawner.InUserNamespaces(), Burst: c.DialBurst, Rate: c.DialRate,
			Counts: new(dial.Counters)},
		Services: func() (err error) {
			if g.resolver, err = resolver.Start(m.plain, c.serviceSetup(), service.Hooks{Report: m.reportViolation, Handle: m.names.Handle}); err == nil && audit != nil {
				g.audit, err = audit.Start(m.Spawner, c.serviceSetup(), m.reportViolation)
			}
			if err != nil {
				return err
			}
			go func() {
				p := <-g.lost()
				lost <- p.Why().Error() // unless the run is over
				c.Log.Error(p.Role().String()+" exited", "because", p.Why())
			}()
			return nil
		},
		Hello:      func(p *spawn.Process) error { return g.greet(pool.Describe(p, 1), p.Channel) },
		Tell:       func(m ipc.Message) { g.audit.Tell(m) },
		Accused:    accused,
		Lost:       lost,
		StartLimit: c.StartLimit,
		Silence:    c.Silence,
		Ready: func(sealed security.Sealed) {
			m.Spawner.Announce(sealed)
			c.announceRules()
		},
	})
}

// serveAs returns the identity of the worker: the one that Run would serve as,
// or the peer's with become_user.
func serveAs(c Config, client *inetd.Client) (identity.Service, error) {
	if !c.Switches.BecomeUser {
		return identity.Determine(c.identityOptions())
	}
	who := identity.Service{Root: os.Geteuid() == 0}
	switch {
	case !who.Root:
		return who, errs.New(errs.Invalid, "become_user needs root: nobody else can become another user")
	case c.Setup.JWT:
		return who, errs.New(errs.Invalid, "become_user does not go with rest_auth/jwt").WithHint("-a rest_auth/local")
	case client.Network != ipc.Unix:
		return who, errs.New(errs.Invalid, "become_user needs a connected UNIX socket on standard input: only there the kernel says who the client is")
	case client.Nameless:
		// For a connection that was made from here the kernel names the process
		// that listens at the other end. A user who starts this program could
		// be served as the owner of any service that echoes its input.
		return who, errs.New(errs.Invalid, "become_user needs a connection that was accepted at a UNIX socket with a path, as a service manager or inetd passes it")
	}
	who.Identity = security.Identity{Name: fmt.Sprintf("uid %d", client.UID), UID: client.UID, GID: client.GID}
	who.Protect(c.Service)
	if c.Switches.DisableUserCheck {
		return who, nil
	}
	err := security.CheckIdentity(who.Identity, identity.ProtectedAccounts(c.Service)...)
	if err == nil && !client.Vouched {
		err = errs.New(errs.Denied, "the peer's uid %d and gid %d stand for no user", client.UID, client.GID)
	}
	if err != nil {
		return who, &stranger{err}
	}
	return who, nil
}

// stranger is the reason why a peer is not served. The peer gets an answer, and
// the service has not failed.
type stranger struct{ error }

func (s *stranger) Unwrap() error { return s.error }

// refuse makes a worker answer 403 to a peer that may not be served, and
// returns the worker's identity.
func refuse(c Config, client *inetd.Client, who identity.Service, why *stranger) security.Identity {
	c.Log.Warn("the client is not served", "uid", client.UID, "gid", client.GID, "because", why)
	client.Refuse = pool.Forbidden
	return c.anyWorker(who)
}

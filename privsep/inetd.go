package privsep

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/dial"
	"schedrestd/privsep/inetd"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// Inetd serves the one client at standard input and output, through one worker, and returns nil
// when the client's input has ended and all of it is answered, whatever the answers were. An
// error says that the service itself failed.
//
// A connected socket on in is read and written; what else in is, out takes the answers. The
// first signal has the worker finish what it is answering, a second one ends it.
func Inetd(signals <-chan os.Signal, c Config, in, out *os.File) error {
	runtime.GOMAXPROCS(1)                           // this process starts one other and waits: fewer threads are started, and told
	signal.Ignore(syscall.SIGPIPE, syscall.SIGUSR1) // of one client there is nothing to count
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
	if err != nil {
		return turnAway(c, client, err)
	}
	c.kernelTells = client.Network != ipc.TCP
	c.Setup = c.setup(who)
	program, err := spawn.OpenWorker(c.Program, who.Identity, who.root)
	if err != nil {
		return err
	}
	defer program.Close()
	set, err := visitKeySet(c, who)
	if err != nil {
		return err
	}
	audit, err := openAudit(c, who)
	if err != nil {
		return err
	}
	resolver, err := newSupervisor(ipc.Resolver, c, who, c.Resolver, c.ResolverArgv)
	if err != nil {
		return err
	}
	m := newMeans(c, audit, resolver)
	defer m.end()
	if err := m.begin(c, who, program, nil); err != nil {
		return err
	}
	resolver.spawner = m.plain
	services := []inetd.Service{{Role: ipc.Resolver, Start: resolver.spawn}}
	if audit != nil {
		audit.spawner = m.spawner
		services = append(services, audit.service())
	}
	return inetd.Serve(signals, inetd.Options{
		Client:  client,
		Spawner: m.spawner,
		Worker: spawn.Birth{Role: ipc.Worker, Program: m.spawner.Worker, Argv: m.spawner.Argv, Threads: c.Threads, Who: who.Identity,
			Files: c.files()},
		Quota: spawn.NewQuota(float64(c.LogBurst), float64(c.LogRate)),
		Setup: c.Setup,
		Dial: dial.Options{Outlet: m.outlet, Foreign: m.spawner.InUserNamespaces(), Burst: c.DialBurst, Rate: c.DialRate,
			Counts: new(dial.Counters)},
		KeySet:     set,
		Services:   services,
		StartLimit: c.StartLimit,
		Silence:    c.Silence,
		Ready: func(sealed security.Sealed) {
			m.spawner.Announce(sealed)
			c.announceRules()
		},
		Log: c.Log,
	})
}

// service returns the auditor of an inetd run.
func (a *audit) service() inetd.Service {
	return inetd.Service{
		Role: ipc.Auditor, Start: a.spawn, Farewell: auditFarewell,
		Begin: func(c *ipc.Channel) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.give(c.Send)
		},
		Follow: func(c *ipc.Channel) error {
			if !a.follow.Take(time.Now(), 1) {
				return errTooOften("Follow")
			}
			a.look(c.TrySend)
			return nil
		},
	}
}

// visitKeySet opens the key set with which the worker verifies tokens; nil: there is none. It refuses a key that
// lies open. There is no keeper: starting one for each client takes longer than having a daemon vouch for a token.
func visitKeySet(c Config, who service) (set *os.File, err error) {
	tokens, err := c.tokens(who)
	if err != nil {
		return nil, err
	}
	if err := judged(openTokenKey(tokens.Key, who)); err != nil {
		return nil, err
	}
	set, err = openKeySet(tokens.JWKS, who)
	if isAbsent(err) {
		c.Log.Info("there is no key set for this gateway: RS256 tokens are vouched for by the daemons", "file", tokens.JWKS, "because", err)
		return nil, nil
	}
	return set, err
}

// serveAs returns the identity of the worker: the one that Run would serve as, or with become_user the peer's.
func serveAs(c Config, client *inetd.Client) (service, error) {
	if !c.Switches.BecomeUser {
		return identify(c)
	}
	who := service{root: os.Geteuid() == 0}
	switch {
	case !who.root:
		return who, errs.New(errs.Invalid, "become_user needs root: nobody else can become another user")
	case c.Setup.JWT:
		return who, errs.New(errs.Invalid, "become_user does not go with rest_auth/jwt").WithHint("-a rest_auth/local")
	case client.Network != ipc.Unix:
		return who, errs.New(errs.Invalid, "become_user needs a connected UNIX socket on standard input: only there the kernel says who the client is")
	case client.Nameless:
		// Of a connection that was made from here the kernel names the process that listens at its other end: a user
		// who starts this program could be served as the owner of any service that repeats what it receives.
		return who, errs.New(errs.Invalid, "become_user needs a connection that was accepted at a UNIX socket with a path, as a service manager or inetd passes it")
	}
	who.Identity = security.Identity{Name: fmt.Sprintf("uid %d", client.UID), UID: client.UID, GID: client.GID}
	who.protect(c.Service)
	if c.Switches.DisableUserCheck {
		return who, nil
	}
	err := security.CheckIdentity(who.Identity, protectedAccounts(c.Service)...)
	if err == nil && !client.Vouched {
		err = errs.New(errs.Denied, "the peer's uid %d and gid %d stand for no user", client.UID, client.GID)
	}
	if err != nil {
		return who, &stranger{err}
	}
	return who, nil
}

// stranger is why a peer is not served. That is an answer, and no failure of the service.
type stranger struct{ error }

func (s *stranger) Unwrap() error { return s.error }

// turnAway answers a stranger; any other reason not to serve is returned.
func turnAway(c Config, client *inetd.Client, err error) error {
	if _, ok := errors.AsType[*stranger](err); !ok {
		return err
	}
	c.Log.Warn("the client is not served", "uid", client.UID, "gid", client.GID, "because", err)
	fd, err := client.Dup()
	if err != nil {
		return errs.Wrap(err, errs.Internal, "answer the client")
	}
	refuseWith(fd, answers[statusForbidden])
	return nil
}

package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"schedrestd/become"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/serveruid"
	"schedrestd/rpc/tlsconn"
)

// Address is an address of a daemon.
type Address struct {
	Name    string // name of the daemon's machine, for people
	Network string // "tcp" or "unix"
	Address string // host:port, or a path
	Host    string // another name or the address of that machine, which its certificate may contain; "" for none
	Idle    bool   // the daemon is known to log no error when a connection ends without a request

	// Tried has the IP addresses of the host that were tried in vain. Config.Dial
	// does not use them, and adds the one that it uses, if it has chosen one. Nil for
	// a caller that does not try others.
	Tried *[]netip.Addr
}

// ErrUnresolved is the error of Config.Dial for a host without a known address.
var ErrUnresolved = errors.New("its host name can't be resolved")

// each calls connect with a, and again for each IP address of a's host that
// Config.Dial has not used yet, until connect returns nil. It returns the errors.
func (a Address) each(connect func(Address) error) (failures []error) {
	var tried []netip.Addr
	a.Tried = &tried
	for {
		n := len(tried)
		err := connect(a)
		if err == nil {
			return nil
		}
		if len(tried) > n || n == 0 { // otherwise no address was left
			failures = append(failures, err)
		}
		if len(tried) == n {
			return failures
		}
	}
}

// daemon is a controller or accounting daemon, with all its addresses.
type daemon struct {
	name      string
	mode      string // "primary", "backup1", …
	addresses []Address

	probe *semaphore.Semaphore[string] // only one probe runs at a time, and holders take turns
	burst *semaphore.Semaphore[string]

	mu             sync.Mutex    // guards the fields below
	version        codec.Version // version that it speaks; 0 if unknown
	lastVersion    codec.Version // version of its last answer; 0 if it never answered
	closedProbes   []time.Time   // times of recent probes in which it closed the connection, whatever the version
	waited         bool          // as waitsForRequest reported
	failedConnects int           // probes that could not reach it
	connectFailure failure       // of the last of those probes

	release      string    // the release that it reported; "" for none
	releaseUntil time.Time // time until which the release need not be requested again
}

// daemons is a primary and its backups.
type daemons struct {
	kind string // kind of daemon, for messages: "controller"
	list []*daemon
	now  func() time.Time

	reachability reachability

	mu             sync.Mutex       // guards the fields below
	lastAnswered   *daemon          // daemon that answered last; nil for none
	preferred      *daemon          // backup that answered; it is tried first until reorderedUntil
	reorderedUntil time.Time        // until then, preferred is tried first and hung daemons last
	hung           map[*daemon]bool // daemons that accepted a connection, timed out, and have not answered since
}

// retryPrimary is the time for which a backup that answered comes first in the
// order of daemons. It is also the time for which a daemon that hangs comes
// last.
const retryPrimary = 30 * time.Second

// group combines the addresses with the same name into one daemon.
func group(kind string, addresses []Address) *daemons {
	g := &daemons{kind: kind, now: time.Now}
	for _, a := range addresses {
		i := slices.IndexFunc(g.list, func(d *daemon) bool { return d.name == a.Name })
		if i < 0 {
			i = len(g.list)
			mode := "primary"
			if i > 0 {
				mode = fmt.Sprintf("backup%d", i)
			}
			g.list = append(g.list, &daemon{name: a.Name, mode: mode, probe: semaphore.New[string](limit.Probes), burst: semaphore.New[string](limit.Bursts)})
		}
		g.list[i].addresses = append(g.list[i].addresses, a)
	}
	return g
}

// order returns the daemons in the order in which to try them. Normally the
// daemon that answered last comes first. Once per retryPrimary, a single call
// returns the configured order instead, which begins with the primary. Only
// that caller may have to wait for the primary.
func (g *daemons) order() []*daemon {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.preferred == nil && len(g.hung) == 0 {
		return g.list
	}
	if now := g.now(); now.After(g.reorderedUntil) {
		g.reorderedUntil = now.Add(retryPrimary)
		return g.list
	}
	rank := func(d *daemon) int {
		switch {
		case g.hung[d]:
			return 2
		case d == g.preferred:
			return 0
		}
		return 1
	}
	order := slices.Clone(g.list)
	slices.SortStableFunc(order, func(a, b *daemon) int { return rank(a) - rank(b) })
	return order
}

// markHung records that d did not answer in time, unless d is the only daemon.
func (g *daemons) markHung(d *daemon) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.list) == 1 {
		return
	}
	if g.hung == nil {
		g.hung = map[*daemon]bool{}
	}
	if !g.hung[d] && g.preferred == nil {
		g.reorderedUntil = g.now().Add(retryPrimary)
	}
	g.hung[d] = true
}

// clearHung records that d no longer hangs.
func (g *daemons) clearHung(d *daemon) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.hung, d)
}

// isHung reports whether d did not answer in time when it was last tried.
func (g *daemons) isHung(d *daemon) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hung[d]
}

// markAnswered records that d answered. If d is a backup that was not preferred
// before, it is then tried first for retryPrimary. Further answers do not
// extend that time. After that time, the primary is tried again.
func (g *daemons) markAnswered(d *daemon) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lastAnswered = d
	switch {
	case d == g.list[0]:
		g.preferred = nil
	case d != g.preferred:
		g.preferred, g.reorderedUntil = d, g.now().Add(retryPrimary)
	}
}

// current returns the daemon that answered last, or nil.
func (g *daemons) current() *daemon {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lastAnswered
}

// watch gives nc the deadline of ctx. If ctx ends before the function stop is
// called, all reads and writes on nc fail, but nc is not closed. The function
// stop returns false if ctx has already ended.
func watch(ctx context.Context, nc net.Conn) (stop func() bool) {
	if deadline, ok := ctx.Deadline(); ok {
		nc.SetDeadline(deadline)
	}
	return context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
}

// connect opens a connection to d, with TLS if the daemons use it. It uses the
// first address that can be used with cred and accepts the connection. The
// function release closes the connection.
func (c *caller) connect(ctx context.Context, d *daemon, cred model.Credential) (nc net.Conn, release func(), f *failure) {
	var dialErrs []error
	for _, a := range d.addresses {
		if cred.Local() && a.Network != "unix" && !c.usesIssuer(d) {
			continue // a local credential proves nothing over TCP
		}
		var start time.Time
		failures := a.each(func(a Address) (err error) {
			start = time.Now()
			nc, err = c.connectTo(ctx, d, a, cred)
			if err != nil {
				c.cfg.Log.Debug("daemon can't be reached", "daemon", d.name,
					"network", a.Network, "address", a.Address, "took", time.Since(start), "error", err)
			}
			return err
		})
		if failures != nil {
			dialErrs = append(dialErrs, failures...)
			continue
		}
		return nc, func() {
			nc.Close()
			c.cfg.Log.Debug("daemon connection closed", "daemon", d.name, "network", a.Network, "address", nc.RemoteAddr().String(), "took", time.Since(start))
		}, nil
	}
	if dialErrs == nil {
		dialErrs = append(dialErrs, errs.New(errs.Unsupported, "connect to %s: without a token, a UNIX socket is required", d.name))
	}
	f = newFailure(stageConnect, fmt.Errorf("connect to %s: %w", d.name, errors.Join(dialErrs...)))
	if errors.Is(f.err, tlsconn.ErrHandshake) && isTimeout(f.err) {
		f.stage = stageSend // the daemon was reached, and hangs
	}
	return nil, nil, f
}

// connectTo opens a connection to the address a of d, with TLS if the daemons use it.
func (c *caller) connectTo(ctx context.Context, d *daemon, a Address, cred model.Credential) (net.Conn, error) {
	dctx, cancel := context.WithTimeout(semaphore.WithKey(ctx, holderOf(cred)), c.cfg.ConnectTimeout)
	defer cancel()
	a.Idle = d.knownVersion() >= codec.V2411 // older controllers log an error for each connection that ends without a request
	nc, err := c.dial(dctx, a)
	if err != nil || c.cfg.TLS == nil || a.Network != "tcp" {
		return nc, err
	}
	// The handshake may take as long as an answer: a busy daemon accepts a
	// connection long before it reads from it.
	secure, err := c.cfg.TLS.Connect(ctx, nc, []string{a.Name, a.Host})
	if err != nil {
		return nil, err
	}
	return secure, nil
}

// dial opens a connection to a daemon, and checks that a trusted user serves
// it.
func (c *caller) dial(ctx context.Context, a Address) (net.Conn, error) {
	nc, err := c.cfg.Dial(ctx, a)
	if err == nil {
		err = c.checkServer(nc)
	}
	if err != nil {
		return nil, err
	}
	c.reachability.recordAccepted(c.now())
	return nc, nil
}

// checkServer returns an error if an untrusted user serves the connection. The
// caller must not send anything before it has called checkServer. The user is
// known only for UNIX sockets and for TCP ports of this machine.
func (c *caller) checkServer(nc net.Conn) error {
	uid, known, err := serveruid.Of(nc)
	if err == nil && known && !c.cfg.Trusted(uid) {
		err = untrustedServerError(nc.RemoteAddr(), uid)
	}
	if err != nil {
		nc.Close()
	}
	return err
}

// untrustedServerError returns the error for the address a, which the untrusted
// user uid serves.
func untrustedServerError(a net.Addr, uid uint32) error {
	kind := map[string]string{"unix": "socket", "tcp": "port"}[a.Network()]
	if uid == become.Overflow {
		return errs.New(errs.Unavailable, "the kernel does not know which user serves the %s %s", kind, a).
			WithHint("load the kernel module tcp_diag; the port must not be redirected to another machine or container")
	}
	return errs.New(errs.Unavailable, "the %s %s is served by uid %d, which is neither root's nor the scheduler's user's", kind, a, uid).
		WithHint("start the daemon again; a tunnel to it must belong to root, SlurmUser or SchedUser")
}

func (d *daemon) knownVersion() codec.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.version
}

// hasAnswered reports whether d ever answered, in any version.
func (d *daemon) hasAnswered() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lastVersion != 0
}

func (d *daemon) setVersion(v codec.Version) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.version = v; v != 0 {
		d.lastVersion = v
	} else {
		d.releaseUntil = time.Time{}
	}
}

// forgetVersion makes the next call probe the version again. It is called when
// d may have been restarted with another release.
func (d *daemon) forgetVersion() { d.setVersion(0) }

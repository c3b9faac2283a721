package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"schedrestd/become"
	"schedrestd/become/peer"
	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/sockdiag/portowner"
)

// Address is one address of a daemon.
type Address struct {
	Name    string // of the daemon's machine, as shown to people
	Network string // "tcp" or "unix"
	Address string // host:port, or a path
}

// daemon is one controller or accounting daemon, with all its addresses.
type daemon struct {
	name      string
	mode      string // "primary", "backup1", …
	addresses []Address

	probe chan struct{} // one probe at a time: holds a token while one runs

	mu      sync.Mutex
	version codec.Version // it speaks; 0: not known, or no longer sure
	spoke   codec.Version // the last version that it answered in; 0: none
	vain    []time.Time   // when it was last probed in every version, and closed each connection
	patient bool          // it waited for a request when none was sent
	misses  int           // how often a probe failed to reach it
	missed  failure       // the last of those

	release      string    // the release that it reported; "": none yet
	releaseUntil time.Time // until then it is not asked again
}

// daemons is a primary and its backups.
type daemons struct {
	what string // for messages: "controller"
	list []*daemon
	now  func() time.Time

	reached reached

	mu        sync.Mutex
	last      *daemon          // that answered; nil: none did
	preferred *daemon          // a backup that answered, tried first until
	until     time.Time        // as are all but
	hung      map[*daemon]bool // daemons that were reached, timed out, and have not answered since
}

// retryPrimary is how long a backup that answered is tried before the primary,
// and a daemon that hangs is tried last.
const retryPrimary = 30 * time.Second

// group makes one daemon of the addresses with the same name.
func group(what string, addresses []Address) *daemons {
	g := &daemons{what: what, now: time.Now}
	g.reached.last = g.now()
	for _, a := range addresses {
		i := slices.IndexFunc(g.list, func(d *daemon) bool { return d.name == a.Name })
		if i < 0 {
			i = len(g.list)
			mode := "primary"
			if i > 0 {
				mode = fmt.Sprintf("backup%d", i)
			}
			g.list = append(g.list, &daemon{name: a.Name, mode: mode, probe: make(chan struct{}, 1)})
		}
		g.list[i].addresses = append(g.list[i].addresses, a)
	}
	return g
}

// order returns the daemons in the order in which to try them. When
// retryPrimary has passed, a single call tries the primary first again: it may
// have to wait, and the others need not.
func (g *daemons) order() []*daemon {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.preferred == nil && len(g.hung) == 0 {
		return g.list
	}
	if now := g.now(); now.After(g.until) {
		g.until = now.Add(retryPrimary)
		return g.list
	}
	place := func(d *daemon) int {
		switch {
		case g.hung[d]:
			return 2
		case d == g.preferred:
			return 0
		}
		return 1
	}
	order := slices.Clone(g.list)
	slices.SortStableFunc(order, func(a, b *daemon) int { return place(a) - place(b) })
	return order
}

// hangs remembers that d did not answer in time, when there are others to ask.
func (g *daemons) hangs(d *daemon) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.list) == 1 {
		return
	}
	if g.hung == nil {
		g.hung = map[*daemon]bool{}
	}
	if !g.hung[d] && g.preferred == nil {
		g.until = g.now().Add(retryPrimary)
	}
	g.hung[d] = true
}

// responds forgets that d hung.
func (g *daemons) responds(d *daemon) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.hung, d)
}

// hanging reports whether d hung when it was last asked.
func (g *daemons) hanging(d *daemon) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hung[d]
}

// answered records that d answered. It does not prolong the preference for a
// backup, so that order tries the primary again.
func (g *daemons) answered(d *daemon) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = d
	switch {
	case d == g.list[0]:
		g.preferred = nil
	case d != g.preferred:
		g.preferred, g.until = d, g.now().Add(retryPrimary)
	}
}

// current returns the daemon that answered last, or nil.
func (g *daemons) current() *daemon {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last
}

// watch gives nc the deadline of ctx, and breaks it when ctx ends before stop
// is called; stop returns false when ctx had ended.
func watch(ctx context.Context, nc net.Conn) (stop func() bool) {
	if deadline, ok := ctx.Deadline(); ok {
		nc.SetDeadline(deadline)
	}
	return context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
}

// connect opens a connection to the first address that works for cred; release
// closes it.
func (c *caller) connect(ctx context.Context, d *daemon, cred model.Credential) (nc net.Conn, release func(), err error) {
	var tried []error
	for _, a := range d.addresses {
		if cred.Local() && a.Network != "unix" && !c.issued(d) {
			continue // over TCP a local credential proves nothing
		}
		begun := time.Now()
		dctx, cancel := context.WithTimeout(ctx, c.cfg.ConnectTimeout)
		nc, err := c.dial(dctx, a)
		cancel()
		if err != nil {
			c.cfg.Log.Debug("daemon can't be reached", "daemon", d.name, "network", a.Network, "address", a.Address, "took", time.Since(begun), "error", err)
			tried = append(tried, err)
			continue
		}
		return nc, func() {
			nc.Close()
			c.cfg.Log.Debug("daemon was asked", "daemon", d.name, "network", a.Network, "address", a.Address, "took", time.Since(begun))
		}, nil
	}
	if tried == nil {
		return nil, nil, errs.New(errs.Unsupported, "%s is not reached by a UNIX socket, and without a token nothing else counts", d.name)
	}
	return nil, nil, errors.Join(tried...)
}

// dial opens a connection to a daemon and checks the user that serves it.
func (c *caller) dial(ctx context.Context, a Address) (net.Conn, error) {
	nc, err := c.cfg.Dial(ctx, a)
	if err == nil {
		err = c.recognise(nc)
	}
	if err != nil {
		return nil, err
	}
	c.reached.accepted(c.now())
	return nc, nil
}

// recognise closes a connection before anything is sent on it when an untrusted
// user serves it: a UNIX socket, or a TCP port of this machine. The user that
// serves a port of another machine is unknown.
func (c *caller) recognise(nc net.Conn) error {
	uid, known, err := server(nc)
	if err == nil && known && !c.cfg.Trusted(uid) {
		err = strange(nc.RemoteAddr(), uid)
	}
	if err != nil {
		nc.Close()
	}
	return err
}

// strange returns the error for the daemon's address a, which the untrusted uid
// serves.
func strange(a net.Addr, uid uint32) error {
	what := map[string]string{"unix": "socket", "tcp": "port"}[a.Network()]
	if uid == become.Overflow {
		return errs.New(errs.Unavailable, "the kernel does not know which user serves the %s %s", what, a).
			WithHint("a port of this machine takes the kernel's module tcp_diag, and no redirection to another machine or container")
	}
	return errs.New(errs.Unavailable, "the %s %s is served by uid %d, which is neither root's nor the scheduler's user's", what, a, uid).
		WithHint("start the daemon again; a tunnel to it must be root's, SlurmUser's or SchedUser's")
}

// server returns the uid of the process that serves nc; known is false when
// that process is on another machine.
func server(nc net.Conn) (uid uint32, known bool, err error) {
	if nc.RemoteAddr().Network() == "unix" {
		sc, ok := nc.(syscall.Conn)
		if !ok {
			return 0, false, fmt.Errorf("%T: the kernel can't identify the peer", nc)
		}
		peer, err := peer.Of(sc)
		return peer.UID, true, err
	}
	if seen, ok := nc.(peer.Seen); ok {
		uid, known = seen.Server()
		return uid, known, nil
	}
	local, ok := nc.LocalAddr().(*net.TCPAddr)
	remote, too := nc.RemoteAddr().(*net.TCPAddr)
	if !ok || !too {
		return 0, false, fmt.Errorf("%T: the kernel can't identify the peer", nc)
	}
	if here, err := portowner.Local(remote.AddrPort().Addr()); err != nil || !here {
		return 0, false, err
	}
	uid, err = portowner.Server(local.AddrPort(), remote.AddrPort())
	return uid, true, err
}

func (d *daemon) known() codec.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.version
}

// answeredBefore reports whether d ever answered in a version.
func (d *daemon) answeredBefore() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.spoke != 0
}

func (d *daemon) learn(v codec.Version) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.version = v; v != 0 {
		d.spoke = v
	} else {
		d.releaseUntil = time.Time{}
	}
}

// forget makes the next call probe again: d may have been restarted with
// another release.
func (d *daemon) forget() { d.learn(0) }

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
	"schedrestd/sockdiag"
)

// Address is one way to a daemon.
type Address struct {
	Name    string // of the daemon's machine, as shown to people
	Network string // "tcp" or "unix"
	Address string // host:port, or a path
}

// daemon is one controller or accounting daemon, with all ways to it.
type daemon struct {
	name      string
	mode      string // "primary", "backup1", …
	addresses []Address

	probe chan struct{} // one probe at a time: holds a token while one runs

	mu      sync.Mutex
	version codec.Version // it speaks; 0: not known, or no longer sure
	spoke   codec.Version // the last that it was heard to speak; 0: it never was
	vain    []time.Time   // when it was last probed from the newest version to the oldest, and closed on each
	patient bool          // asked nothing, it then waited for a question
	misses  int           // how often a probe has not reached it
	missed  failure       // the last of those

	release      string    // that it told; "": it did not yet
	releaseUntil time.Time // it need not be asked again
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
	hung      map[*daemon]bool // those that were reached and did not answer in time, and not since
}

// retryPrimary is for how long a backup that answered is asked before the primary, and all before one that hangs.
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

// order is whom to ask, in turn. One call alone looks after the primary when it is time: it may
// have to wait for it, and all others need not.
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

// hanging tells whether d was hanging when it was asked last.
func (g *daemons) hanging(d *daemon) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hung[d]
}

// answered remembers who did. The date of a backup is order's, so that the primary has its turn again.
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

// watch gives nc the deadline of ctx, and breaks it when ctx ends, until stop; false: it has ended.
func watch(ctx context.Context, nc net.Conn) (stop func() bool) {
	if deadline, ok := ctx.Deadline(); ok {
		nc.SetDeadline(deadline)
	}
	return context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
}

// connect opens a connection by the first way that works for cred; release closes it.
func (c *caller) connect(ctx context.Context, d *daemon, cred model.Credential) (nc net.Conn, release func(), err error) {
	var tried []error
	for _, a := range d.addresses {
		if cred.Local() && a.Network != "unix" && !c.munged(d) {
			continue // there it would say nothing: anybody could have sent it
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

// dial opens a connection to a daemon that may be spoken to.
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

// recognise closes a connection that a stranger serves, before anything is sent on it:
// a UNIX socket, or a TCP port of this machine. Who serves a port of another machine
// can't be known here.
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

// strange is why nothing is sent to the daemon's address a, which uid serves.
func strange(a net.Addr, uid uint32) error {
	what := map[string]string{"unix": "socket", "tcp": "port"}[a.Network()]
	if uid == become.Overflow {
		return errs.New(errs.Unavailable, "the kernel does not know which user serves the %s %s", what, a).
			WithHint("a port of this machine takes the kernel's module tcp_diag, and no redirection to another machine or container")
	}
	return errs.New(errs.Unavailable, "the %s %s is served by uid %d, which is neither root's nor the scheduler's user's", what, a, uid).
		WithHint("start the daemon again; a tunnel to it must be root's, SlurmUser's or SchedUser's")
}

// server is the uid of the process that serves nc; known is false when that is on
// another machine.
func server(nc net.Conn) (uid uint32, known bool, err error) {
	if nc.RemoteAddr().Network() == "unix" {
		sc, ok := nc.(syscall.Conn)
		if !ok {
			return 0, false, fmt.Errorf("%T: the kernel can't tell who is at the other end", nc)
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
		return 0, false, fmt.Errorf("%T: the kernel can't tell who is at the other end", nc)
	}
	if here, err := sockdiag.Local(remote.AddrPort().Addr()); err != nil || !here {
		return 0, false, err
	}
	uid, err = sockdiag.Server(local.AddrPort(), remote.AddrPort())
	return uid, true, err
}

func (d *daemon) known() codec.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.version
}

// heard tells whether d ever answered in a version.
func (d *daemon) heard() bool {
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

// forget makes the next call probe again: d may have come back as another release.
func (d *daemon) forget() { d.learn(0) }

package privsep

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/privsep/netns"
	"schedrestd/rate"
)

// spread gives a worker one of the ports at which each controller listens: they are many so that not all
// ask at the same.
func spread(list []ipc.Address, more uint16, worker uint32) []ipc.Address {
	list = slices.Clone(list)
	for i, a := range list {
		at, err := netip.ParseAddrPort(a.Address)
		if err != nil || a.Network != "tcp" || int(at.Port())+int(more) > math.MaxUint16 {
			continue
		}
		port := at.Port() + uint16(worker%(uint32(more)+1))
		list[i].Address = netip.AddrPortFrom(at.Addr(), port).String()
	}
	return list
}

// errands opens the sockets to the configured daemons that one worker can't open in its sandbox. Nothing that
// a worker sends is an address or a path.
type errands struct {
	setup   *ipc.Setup
	channel *ipc.Channel
	outlet  *netns.Dialer
	servers *servers
	dials   *rate.Bucket
	counts  *counters
	refused *rate.Bucket // ways that it may be told to wait for
	ports   uint32       // of this machine, for its connections; see portsOf
}

// A worker that opens more connections than it can ask questions (Config.DialRate) would wear out the daemons' threads, and is told to
// wait; one that asks on, without waiting, is ended.
const (
	waitBurst = 10_000
	waitRate  = 1000 // a second; an honest one has 48 out, and waits for 50 ms
	portless  = 100  // what an attempt costs for which there was no port: the kernel has looked at all of them
)

func newErrands(m means, c Config, setup *ipc.Setup, channel *ipc.Channel, ports uint32) *errands {
	known := m.servers
	if !m.spawner.InUserNamespaces() {
		known = nil // workers see it themselves
	}
	return &errands{setup: setup, channel: channel, outlet: m.outlet, servers: known, counts: m.slots.counts, ports: ports,
		dials: rate.New(float64(c.DialBurst), float64(c.DialRate), time.Now()), refused: rate.New(waitBurst, waitRate, time.Now())}
}

// wait counts that it asked for more than it gets.
func (e *errands) wait() error {
	e.counts.limited.add(1)
	if !e.refused.Take(time.Now(), 1) {
		return errTooOften("Dial or Stock")
	}
	return nil
}

// hear handles a request for a socket. It does not wait: a socket is handed over while it is being
// connected. done is false when the message is another one.
func (e *errands) hear(m ipc.Message) (done bool, err error) {
	switch m := m.(type) {
	case *ipc.Dial:
		return true, e.dial(m)
	case *ipc.Stock:
		return true, e.stock(m)
	}
	return false, nil
}

// dial opens a way and hands it over. What is not in the configuration is no honest worker's wish.
func (e *errands) dial(m *ipc.Dial) error {
	to, err := e.address(m.Way, m.Index)
	if err != nil {
		return err
	}
	if !e.dials.Take(time.Now(), 1) {
		if err := e.wait(); err != nil {
			return err
		}
		return e.say(&ipc.Undialed{ID: m.ID, Errno: again})
	}
	w, errno := open(to, e.outlet, e.ports)
	if errno != 0 {
		if errno == unix.EADDRNOTAVAIL {
			e.dials.Owe(time.Now(), portless)
		}
		e.counts.undialled.add(1)
		return e.say(&ipc.Undialed{ID: m.ID, Errno: uint16(errno)})
	}
	defer w.close()
	if to.Network == "unix" {
		if w.server, err = e.servers.of(w.fd); err != nil {
			e.counts.undialled.add(1)
			return e.say(&ipc.Undialed{ID: m.ID, Errno: uint16(errnoOf(err))})
		}
	}
	e.counts.dialled.add(1)
	return e.say(&ipc.Dialed{ID: m.ID, Owner: w.owner, Server: w.server}, w.fd)
}

// mostUnread is what a worker may leave unread, in bytes of the kernel's, and still get spares: a few of them. Descriptors
// on their way count against one limit for all channels of this process.
const mostUnread = 8 << 10

// stock hands over sockets for connections to come, if it can. Who gets none asks for each.
func (e *errands) stock(m *ipc.Stock) error {
	to, err := e.address(m.Way, m.Index)
	if err != nil {
		return err
	}
	unread, err := e.channel.Unread()
	if err != nil || unread > mostUnread || to.Network != "tcp" || !e.dials.Take(time.Now(), ipc.SpareCount) {
		return e.wait()
	}
	fds, err := spares(to.Address, e.outlet, e.ports)
	if err != nil {
		if err != errLocal {
			e.dials.Owe(time.Now(), portless)
		}
		return e.wait()
	}
	defer closeFDs(fds)
	e.counts.spares.add(len(fds))
	return e.say(&ipc.Spares{Stock: *m}, fds...)
}

// address is what a way is in the configuration.
func (e *errands) address(way ipc.Way, index uint8) (ipc.Address, error) {
	var list []ipc.Address
	unix := func(path string) {
		if path != "" {
			list = []ipc.Address{{Network: "unix", Address: path}}
		}
	}
	switch way {
	case ipc.WayController:
		list = e.setup.Controllers
	case ipc.WayAccounting:
		list = e.setup.Accounting
	case ipc.WayFront:
		list = e.setup.Front
	case ipc.WaySocket:
		unix(e.setup.AuthSocket)
	case ipc.WayMunge:
		unix(e.setup.Munge.Socket)
	case ipc.WayAccountingMunge:
		unix(e.setup.Munge.Accounting)
	}
	if int(index) >= len(list) {
		return ipc.Address{}, fmt.Errorf("it asked for way %d number %d, which the configuration has not", way, index)
	}
	return list[index], nil
}

func (e *errands) say(m ipc.Message, fds ...int) error { return trySay(e.channel, m, fds...) }

// trySay answers. A process that does not read its channel gets no answer, and nobody waits for it here.
func trySay(c *ipc.Channel, m ipc.Message, fds ...int) error {
	err := c.TrySend(m, fds...)
	if bad, ours := errors.AsType[*ipc.Violation](err); ours {
		return bad
	}
	return nil
}

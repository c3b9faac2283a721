// Package dial opens connections to the configured daemons for workers, which
// can't open connections in their sandbox. A worker names a daemon by its index
// in the configuration, and never sends an address or a path. A worker may get
// a TCP socket that is still connecting.
//
// If the configuration names the host of a daemon, package dial asks the resolver for
// its addresses. A worker that can't reach one of them asks for the next (Hosts).
//
// This package never connects to a UNIX socket, because the daemon asks the
// kernel which process has connected, and would take the dispatcher for the
// client. Instead, the worker gets the inode of the socket, and connects by
// itself.
package dial

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// Options holds the settings of a Dialer.
type Options struct {
	Setup     *work.Setup // has the addresses of the daemons
	Hosts     *Hosts      // has the addresses of the hosts that Setup names; may be nil if there are none
	Ports     uint32      // local ports for the worker's connections (see Ports); 0: all
	OwnUserns bool        // the worker is in a user namespace, where the kernel does not identify the processes that serve UNIX sockets
	Burst     int         // connections that the worker may request in one burst
	Rate      int         // connections per second that the worker may request
	Counts    *Counters
}

// Counters counts the requests of workers.
type Counters struct {
	Dialed, Failed, Limited atomic.Uint64 // requests for a single connection, by result; Limited also counts requests for spare sockets
	Prepared                atomic.Uint64 // spare sockets sent to workers
}

// Dialer opens connections for one worker.
type Dialer struct {
	o       Options
	channel *ipc.Channel
	dials   *rate.Bucket
	retries *rate.Bucket // limits the requests that are answered with "try again"
}

// noPortCost is the additional cost of a request if no port is free, because the
// kernel then tries all ports.
const noPortCost = 100

// New returns a Dialer for the worker at the other end of channel.
func New(o Options, channel *ipc.Channel) *Dialer {
	return &Dialer{o: o, channel: channel,
		dials: rate.New(limit.WorkerDials.Of(float64(o.Burst), float64(o.Rate)), time.Now()), retries: rate.New(limit.WorkerDialRetries, time.Now())}
}

// Handle handles a message from the worker, without waiting. The result handled
// is false if the message does not request connections. An error means that the
// worker broke the protocol.
func (d *Dialer) Handle(m ipc.Message) (handled bool, err error) {
	switch m := m.(type) {
	case *work.Dial:
		return true, d.dial(m)
	case *work.DialBatch:
		return true, d.offerSpares(m)
	}
	return false, nil
}

// countLimited counts a request that is not granted. It returns an error if the
// worker sends such requests too often.
func (d *Dialer) countLimited() error {
	d.o.Counts.Limited.Add(1)
	if !d.retries.Take(time.Now(), 1) {
		return errors.New("sent Dial or DialBatch too often")
	}
	return nil
}

// dial opens a connection and sends it to the worker.
func (d *Dialer) dial(m *work.Dial) error {
	to, err := d.address(m.Upstream, m.Index)
	if err != nil {
		return err
	}
	if !d.dials.Take(time.Now(), 1) {
		if err := d.countLimited(); err != nil {
			return err
		}
		return d.reply(&work.DialFailed{ID: m.ID, Errno: uint16(unix.EAGAIN)}) // tells the worker to try again in a moment
	}
	to, at, err := d.resolve(to, m.Tried)
	var c conn
	if err == nil {
		c, err = d.open(to)
	}
	if err != nil {
		errno := errnoOf(err)
		if errno == unix.EADDRNOTAVAIL {
			d.dials.Charge(time.Now(), noPortCost)
		}
		if err != errLookingUp {
			d.o.Counts.Failed.Add(1)
		}
		return d.reply(&work.DialFailed{ID: m.ID, Errno: uint16(errno), Unresolved: err == errUnresolved, At: at})
	}
	defer c.close()
	d.o.Counts.Dialed.Add(1)
	return d.reply(&work.Dialed{ID: m.ID, Owner: c.owner, Server: c.server, At: at}, c.fd)
}

// resolve replaces the name of a's host by the first of its addresses that is not
// among those tried, which it also returns as at.
func (d *Dialer) resolve(a work.Address, tried []netip.Addr) (resolved work.Address, at work.At, err error) {
	host, port, ok := a.Named()
	if !ok || d.o.Hosts == nil {
		return a, nil, nil
	}
	addr, err := d.o.Hosts.next(host, tried)
	if err != nil {
		return a, nil, err
	}
	a.Address = net.JoinHostPort(addr.String(), port)
	return a, work.At{addr}, nil
}

// open opens a connection to a, which has a path or an IP address.
func (d *Dialer) open(a work.Address) (c conn, err error) {
	if a.Network == "unix" {
		c, err = openInode(a.Address)
		if !d.o.OwnUserns {
			c.server = ipc.NoID // the worker itself asks the kernel which process listens, because that is more precise
		}
		return c, err
	}
	to, err := parseTarget(a.Address)
	if err != nil {
		return conn{}, err
	}
	defer to.close()
	return connect(to, d.o.Ports, false)
}

// maxUnread limits the unread bytes in a worker's channel. A worker with more
// unread bytes gets no spare sockets (sockets for later connections). The
// kernel limits the total number of descriptors in transit in all channels of
// this process. A single worker must not be able to reach this limit.
const maxUnread = 8 << 10

// offerSpares sends the worker spare sockets, if possible. A worker that gets
// no spare sockets requests each connection separately.
func (d *Dialer) offerSpares(m *work.DialBatch) error {
	to, err := d.address(m.Upstream, m.Index)
	if err != nil {
		return err
	}
	var unread int
	err = d.channel.WithFD(func(fd int) (err error) { unread, err = unix.IoctlGetInt(fd, unix.SIOCOUTQ); return err })
	if err != nil || unread > maxUnread || to.Network != "tcp" {
		return d.countLimited()
	}
	to, at, err := d.resolve(to, nil)
	if err != nil {
		return d.countLimited()
	}
	t, err := parseTarget(to.Address)
	defer t.close()
	n := ipc.DialBatchSize
	if t.local && !m.Connected {
		return d.countLimited()
	}
	if t.local {
		n = work.ConnectedBatchSize
	}
	if !d.dials.Take(time.Now(), float64(n)) {
		return d.countLimited()
	}
	var fds []int
	var server uint32
	if err == nil {
		fds, server, err = d.spares(t, n)
	}
	if err != nil {
		if !t.local || errnoOf(err) == unix.EADDRNOTAVAIL {
			d.dials.Charge(time.Now(), noPortCost)
		}
		return d.countLimited()
	}
	defer closeFDs(fds)
	d.o.Counts.Prepared.Add(uint64(len(fds)))
	if t.local {
		return d.reply(&work.ConnectedBatch{DialBatch: *m, Server: server, At: at}, fds...)
	}
	return d.reply(&work.DialedBatch{DialBatch: *m, At: at}, fds...)
}

// spares returns n TCP sockets for one daemon, and the uid of the daemon.
//
// For a daemon on another machine, each socket connects when it is first
// written to, and the uid is ipc.NoID. spares fails if the kernel or its
// settings do not permit deferred connections.
//
// For a daemon on this machine, the sockets are already connected, because the
// kernel can report a server's uid only for a connected socket. The server of a
// connected socket can't change later. spares fails if the sockets have servers
// with different uids.
func (d *Dialer) spares(t target, n int) (fds []int, server uint32, err error) {
	for range n {
		c, err := connect(t, d.o.Ports, !t.local)
		if err == nil && len(fds) > 0 && c.server != server {
			c.close()
			err = unix.EAGAIN
		}
		if err != nil {
			closeFDs(fds)
			return nil, ipc.NoID, err
		}
		fds, server = append(fds, c.fd), c.server
	}
	return fds, server, nil
}

func closeFDs(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// address returns the configured address of a daemon.
func (d *Dialer) address(upstream work.Upstream, index uint8) (work.Address, error) {
	s := d.o.Setup
	list := map[work.Upstream][]work.Address{
		work.UpstreamController:      s.Controllers,
		work.UpstreamAccounting:      s.Accounting,
		work.UpstreamFront:           s.Front,
		work.UpstreamSocket:          unixAddress(s.AuthSocket),
		work.UpstreamMunge:           unixAddress(s.Munge.Socket),
		work.UpstreamAccountingMunge: unixAddress(s.Munge.Accounting),
		work.UpstreamSack:            unixAddress(s.Sack...),
	}[upstream]
	if int(index) >= len(list) {
		return work.Address{}, fmt.Errorf("requested daemon %d of upstream %d, which the configuration does not have", index, upstream)
	}
	return list[index], nil
}

// unixAddress returns the addresses of UNIX sockets. It skips empty paths.
func unixAddress(paths ...string) (list []work.Address) {
	for _, path := range paths {
		if path != "" {
			list = append(list, work.Address{Network: "unix", Address: path})
		}
	}
	return list
}

// reply sends an answer without waiting. If the worker's channel is full, the
// answer is dropped.
func (d *Dialer) reply(m ipc.Message, fds ...int) error {
	err := d.channel.TrySend(m, fds...)
	if violation, ok := errors.AsType[*ipc.Violation](err); ok {
		return violation
	}
	return nil
}

// Spread selects the port that the given worker uses for each controller in s.
// Controllers can listen on several ports, so that different clients can use
// different ports.
func Spread(s *work.Setup, worker uint32) {
	s.Controllers, s.Front = spread(s.Controllers, s.MorePorts, worker), spread(s.Front, s.MorePorts, worker)
}

func spread(list []work.Address, extra uint16, worker uint32) []work.Address {
	list = slices.Clone(list)
	for i, a := range list {
		host, text, err := net.SplitHostPort(a.Address)
		port, portErr := strconv.ParseUint(text, 10, 16)
		if err != nil || portErr != nil || a.Network != "tcp" || int(port)+int(extra) > math.MaxUint16 {
			continue
		}
		port += uint64(worker % (uint32(extra) + 1))
		list[i].Address = net.JoinHostPort(host, strconv.FormatUint(port, 10))
	}
	return list
}

// Package dial opens connections to the configured daemons for workers, which can't open any in their
// sandbox. A worker names a daemon by its index in the configuration: nothing that it sends is an
// address or a path. A TCP socket is handed over while it is being connected.
//
// This package never connects to a UNIX socket. The daemon at its other end identifies its client by
// the process that connected, which would be root. The worker gets the socket's inode and connects
// itself.
package dial

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/rate"
)

// Options describes what one worker may connect to.
type Options struct {
	Setup   *work.Setup // has the daemons
	Ports   uint32      // of this machine, for its connections (see Ports); 0: all
	Foreign bool        // it is in a user namespace, where the kernel does not identify the processes that serve UNIX sockets
	Burst   int         // connections that it may request at once
	Rate    int         // … and per second
	Counts  *Counters
}

// Counters counts the requests of workers.
type Counters struct{ Dialled, Undialled, Limited, Spares atomic.Uint64 }

// Dialer opens connections for one worker.
type Dialer struct {
	o       Options
	channel *ipc.Channel
	dials   *rate.Bucket
	refused *rate.Bucket // requests that may be answered with a request to wait
}

// A worker that requests more connections than it can use would exhaust the
// daemons' threads, and is asked to wait. One that repeats its request without
// waiting is killed.
const (
	waitBurst = 10_000
	waitRate  = 1000 // a second; an honest worker has 48 requests out and waits for 50 ms
	portless  = 100  // cost of an attempt for which no port was free: the kernel has looked at all of them
)

// New returns a Dialer for the worker at the other end of channel.
func New(o Options, channel *ipc.Channel) *Dialer {
	return &Dialer{o: o, channel: channel,
		dials: rate.New(float64(o.Burst), float64(o.Rate), time.Now()), refused: rate.New(waitBurst, waitRate, time.Now())}
}

// Handle handles a message of the worker, without waiting. done is false for a
// message that does not request a connection. An error is a protocol violation.
func (d *Dialer) Handle(m ipc.Message) (done bool, err error) {
	switch m := m.(type) {
	case *work.Dial:
		return true, d.dial(m)
	case *work.DialBatch:
		return true, d.offerSpares(m)
	}
	return false, nil
}

// wait counts a request beyond the worker's limit.
func (d *Dialer) wait() error {
	d.o.Counts.Limited.Add(1)
	if !d.refused.Take(time.Now(), 1) {
		return errors.New("it sent Dial or DialBatch too often")
	}
	return nil
}

// dial opens a connection and hands it over.
func (d *Dialer) dial(m *work.Dial) error {
	to, err := d.address(m.Upstream, m.Index)
	if err != nil {
		return err
	}
	if !d.dials.Take(time.Now(), 1) {
		if err := d.wait(); err != nil {
			return err
		}
		return d.say(&work.Undialed{ID: m.ID, Errno: uint16(unix.EAGAIN)}) // "ask again in a moment"
	}
	c, err := d.open(to)
	if err != nil {
		errno := errnoOf(err)
		if errno == unix.EADDRNOTAVAIL {
			d.dials.Owe(time.Now(), portless)
		}
		d.o.Counts.Undialled.Add(1)
		return d.say(&work.Undialed{ID: m.ID, Errno: uint16(errno)})
	}
	defer c.close()
	d.o.Counts.Dialled.Add(1)
	return d.say(&work.Dialed{ID: m.ID, Owner: c.owner, Server: c.server}, c.fd)
}

// open opens a connection to a.
func (d *Dialer) open(a work.Address) (c conn, err error) {
	if a.Network == "unix" {
		c, err = openInode(a.Address)
		if !d.o.Foreign {
			c.server = ipc.NoID // the worker sees the process that listens, which is more
		}
		return c, err
	}
	return connect(a.Address, d.o.Ports, false)
}

// mostUnread is how many bytes a worker may leave unread and still get spares. Descriptors in transit
// count against one limit for all channels of this process.
const mostUnread = 8 << 10

// offerSpares hands over sockets for later connections, if possible. A worker that
// gets none requests each connection.
func (d *Dialer) offerSpares(m *work.DialBatch) error {
	to, err := d.address(m.Upstream, m.Index)
	if err != nil {
		return err
	}
	var unread int
	err = d.channel.Pass(func(fd int) (err error) { unread, err = unix.IoctlGetInt(fd, unix.SIOCOUTQ); return err })
	if err != nil || unread > mostUnread || to.Network != "tcp" || !d.dials.Take(time.Now(), ipc.DialBatchSize) {
		return d.wait()
	}
	fds, err := d.spares(to.Address)
	if err != nil {
		if err != errLocal {
			d.dials.Owe(time.Now(), portless)
		}
		return d.wait()
	}
	defer closeFDs(fds)
	d.o.Counts.Spares.Add(uint64(len(fds)))
	return d.say(&work.DialedBatch{DialBatch: *m}, fds...)
}

// spares returns TCP sockets each of which connects to address with its first write. It fails with errLocal,
// or where the kernel or its administrator does not permit such sockets.
func (d *Dialer) spares(address string) (fds []int, err error) {
	for range ipc.DialBatchSize {
		c, err := connect(address, d.o.Ports, true)
		if err != nil {
			closeFDs(fds)
			return nil, err
		}
		fds = append(fds, c.fd)
	}
	return fds, nil
}

func closeFDs(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// address returns the configured address of an upstream.
func (d *Dialer) address(way work.Upstream, index uint8) (work.Address, error) {
	s := d.o.Setup
	list := map[work.Upstream][]work.Address{
		work.UpstreamController:      s.Controllers,
		work.UpstreamAccounting:      s.Accounting,
		work.UpstreamFront:           s.Front,
		work.UpstreamSocket:          unixAddress(s.AuthSocket),
		work.UpstreamMunge:           unixAddress(s.Munge.Socket),
		work.UpstreamAccountingMunge: unixAddress(s.Munge.Accounting),
		work.UpstreamSack:            unixAddress(s.Sack...),
	}[way]
	if int(index) >= len(list) {
		return work.Address{}, fmt.Errorf("it asked for way %d number %d, which the configuration has not", way, index)
	}
	return list[index], nil
}

// unixAddress returns the addresses of UNIX sockets; "" is none.
func unixAddress(paths ...string) (list []work.Address) {
	for _, path := range paths {
		if path != "" {
			list = append(list, work.Address{Network: "unix", Address: path})
		}
	}
	return list
}

// say sends an answer without waiting. A worker that does not read its channel
// gets none.
func (d *Dialer) say(m ipc.Message, fds ...int) error {
	err := d.channel.TrySend(m, fds...)
	if bad, ours := errors.AsType[*ipc.Violation](err); ours {
		return bad
	}
	return nil
}

// Spread gives a worker one of the ports at which each controller of s listens. Controllers listen at
// several ports so that not all clients use the same.
func Spread(s *work.Setup, worker uint32) {
	s.Controllers, s.Front = spread(s.Controllers, s.MorePorts, worker), spread(s.Front, s.MorePorts, worker)
}

func spread(list []work.Address, more uint16, worker uint32) []work.Address {
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

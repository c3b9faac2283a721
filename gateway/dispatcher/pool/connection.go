package pool

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"schedrestd/gateway/dispatcher/admission"
	"schedrestd/internal/sockdiag"
	"schedrestd/ipc"
)

type Connection struct {
	ipc.Connection
	admission.Conn

	Arrival   uint64       // the parent's number for it; ID is another number, which changes each time a worker is offered the connection
	Forbidden string       // why its user must not get a worker; "" if the user may get one
	FD        int          // this process's descriptor; -1 after the worker has sent ConnectionTaken
	tries     int          // number of workers that were given the connection
	timer     *time.Timer  // ends its time in a queue
	holder    *ipc.Channel // channel of the worker that was given the connection

	OtherNetns bool                 // the kernel can't be asked about it, because it belongs to another network namespace
	Socket     *sockdiag.Connection // for looking it up; nil: the kernel can't find it, or it is a UNIX connection that no worker has taken
	goneSince  time.Time            // when this process noticed that it is gone; zero if it is not
}

// peer describes the client for the log.
func (c *Connection) peer() string {
	if c.Network == ipc.Unix {
		return fmt.Sprintf("uid %d", c.UID)
	}
	return c.Addr
}

// exemption returns a hint with the setting that would exempt this client.
func (c *Connection) exemption() string {
	addr, err := netip.ParseAddrPort(c.Addr)
	switch {
	case err != nil:
		return fmt.Sprintf("if this client is a proxy, trust it: SCHEDRESTD_TRUSTED_PROXIES=unix:%d", c.UID)
	case addr.Addr().IsLoopback():
		return "if this client is a portal or a proxy, exempt loopback, and with it every user of this machine: SCHEDRESTD_EXEMPT=127.0.0.0/8,::1"
	}
	return fmt.Sprintf("if many users share this address (a portal, a proxy or a NAT), exempt it: SCHEDRESTD_EXEMPT=%s", c.Source)
}

// A Queue holds waiting connections, each for a limited time. It must be used
// only in the loop.
type Queue []*Connection

// Add appends c. If c is still in the queue after the time limit, Add removes c
// and calls expired.
func (q *Queue) Add(l *Loop, c *Connection, limit time.Duration, expired func(*Connection)) {
	*q = append(*q, c)
	var timer *time.Timer
	timer = l.After(limit, func() {
		if i := slices.Index(*q, c); i >= 0 && c.timer == timer {
			*q = slices.Delete(*q, i, i+1)
			expired(c)
		}
	})
	c.timer = timer
}

// takeWhile calls take with each connection in turn, and removes the connection
// if take returns true. It stops when take returns false.
func (q *Queue) takeWhile(take func(*Connection) bool) {
	for len(*q) > 0 {
		c, timer := (*q)[0], (*q)[0].timer
		if !take(c) {
			return
		}
		timer.Stop()
		(*q)[0] = nil
		*q = (*q)[1:]
	}
}

// TakeAll removes and returns all connections.
func (q *Queue) TakeAll() []*Connection {
	list := *q
	*q = nil
	for _, c := range list {
		c.timer.Stop()
	}
	return list
}

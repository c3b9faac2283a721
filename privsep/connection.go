package privsep

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"schedrestd/ipc"
	"schedrestd/privsep/admission"
)

// connection is one that was accepted.
type connection struct {
	ipc.Connection
	admission.Conn

	fd     int         // the parent's copy; -1 once the worker has said Taken
	tries  int         // workers it was given to
	late   *time.Timer // ends its time in a queue
	worker *worker     // that has it
}

// peer returns who is at the other end, for the log.
func (c *connection) peer() string {
	if c.Network == ipc.Unix {
		return fmt.Sprintf("uid %d", c.UID)
	}
	return c.Addr
}

// exemption returns how an administrator exempts a client that stands for many users.
func (c *connection) exemption() string {
	addr, err := netip.ParseAddrPort(c.Addr)
	switch {
	case err != nil:
		return fmt.Sprintf("if it is a proxy's, name it: SCHEDRESTD_TRUSTED_PROXIES=unix:%d", c.UID)
	case addr.Addr().IsLoopback():
		return "if it is a portal or a proxy, exempt loopback, and with it every user of this machine: SCHEDRESTD_EXEMPT=127.0.0.0/8,::1"
	}
	return fmt.Sprintf("if a portal, a proxy or a NAT with many users is there, exempt it: SCHEDRESTD_EXEMPT=%s", c.Source)
}

// queue is connections that wait, each until its time is over.
type queue []*connection

// add has c wait, and expired called if it waits still when limit has passed.
func (q *queue) add(l *loop, c *connection, limit time.Duration, expired func(*connection)) {
	*q = append(*q, c)
	var late *time.Timer
	late = l.after(limit, func() {
		if i := slices.Index(*q, c); i >= 0 && c.late == late {
			*q = slices.Delete(*q, i, i+1)
			expired(c)
		}
	})
	c.late = late
}

// first takes the first one out.
func (q *queue) first() *connection {
	c := (*q)[0]
	c.late.Stop()
	(*q)[0] = nil
	*q = (*q)[1:]
	return c
}

// all takes all out.
func (q *queue) all() []*connection {
	list := *q
	*q = nil
	for _, c := range list {
		c.late.Stop()
	}
	return list
}

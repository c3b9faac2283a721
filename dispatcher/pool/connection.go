package pool

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"schedrestd/dispatcher/admission"
	"schedrestd/ipc"
)

// Connection is an accepted connection.
type Connection struct {
	ipc.Connection
	admission.Conn

	Arrival   uint64       // its number for the parent; ID is another one for each worker that it is given to
	Forbidden string       // why its user may have no worker; "" when it may
	FD        int          // this process's copy; -1 once the worker has sent Taken
	tries     int          // workers that it was given to
	late      *time.Timer  // ends its time in a queue
	holder    *ipc.Channel // to the worker that has it
}

// peer returns the text that the log shows for the client.
func (c *Connection) peer() string {
	if c.Network == ipc.Unix {
		return fmt.Sprintf("uid %d", c.UID)
	}
	return c.Addr
}

// exemption returns how an administrator exempts a client that serves many
// users.
func (c *Connection) exemption() string {
	addr, err := netip.ParseAddrPort(c.Addr)
	switch {
	case err != nil:
		return fmt.Sprintf("if a proxy is there, name it: SCHEDRESTD_TRUSTED_PROXIES=unix:%d", c.UID)
	case addr.Addr().IsLoopback():
		return "if it is a portal or a proxy, exempt loopback, and with it every user of this machine: SCHEDRESTD_EXEMPT=127.0.0.0/8,::1"
	}
	return fmt.Sprintf("if a portal, a proxy or a NAT with many users is there, exempt it: SCHEDRESTD_EXEMPT=%s", c.Source)
}

// Queue holds connections that wait, each until its time is over. It belongs to
// the loop.
type Queue []*Connection

// Add appends c, and calls expired if c still waits after limit.
func (q *Queue) Add(l *Loop, c *Connection, limit time.Duration, expired func(*Connection)) {
	*q = append(*q, c)
	var late *time.Timer
	late = l.After(limit, func() {
		if i := slices.Index(*q, c); i >= 0 && c.late == late {
			*q = slices.Delete(*q, i, i+1)
			expired(c)
		}
	})
	c.late = late
}

// Take removes connections in order, as long as take accepts them.
func (q *Queue) Take(take func(*Connection) bool) {
	for len(*q) > 0 {
		c, late := (*q)[0], (*q)[0].late
		if !take(c) {
			return
		}
		late.Stop()
		(*q)[0] = nil
		*q = (*q)[1:]
	}
}

// TakeAny takes connections out that take takes, in order.
func (q *Queue) TakeAny(take func(*Connection) bool) {
	*q = slices.DeleteFunc(*q, func(c *Connection) bool {
		late := c.late // it may wait elsewhere then
		taken := take(c)
		if taken {
			late.Stop()
		}
		return taken
	})
}

// All takes all out.
func (q *Queue) All() []*Connection {
	list := *q
	*q = nil
	for _, c := range list {
		c.late.Stop()
	}
	return list
}

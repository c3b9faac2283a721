package privsep

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// source is where a connection comes from, as far as one client can't be many: its IPv4
// address, its /64 of IPv6, which one machine has for itself, or its uid.
type source struct {
	addr  netip.Addr
	uid   uint32
	local bool
}

// sourceOf is the source of an accepted connection.
func sourceOf(peer unix.Sockaddr, c ipc.Connection) source {
	a := addressOf(peer)
	if !a.IsValid() {
		return source{uid: c.UID, local: true}
	}
	return source{addr: ipc.OneClient(a)}
}

// String is the source as the log has it.
func (s source) String() string {
	switch {
	case s.local:
		return fmt.Sprintf("uid %d", s.uid)
	case s.addr.Is6():
		return s.addr.String() + "/64"
	}
	return s.addr.String()
}

// exemption returns how an administrator exempts a source that stands for many users.
func (s source) exemption() string {
	if s.local {
		return fmt.Sprintf("if it is a proxy's, name it: SCHEDRESTD_TRUSTED_PROXIES=unix:%d", s.uid)
	}
	return fmt.Sprintf("if a portal, a proxy or a NAT with many users is there, exempt it: SCHEDRESTD_EXEMPT=%s", s)
}

// addressOf is the address of an accepted connection, none for a UNIX socket.
func addressOf(peer unix.Sockaddr) netip.Addr {
	switch p := peer.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(p.Addr)
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(p.Addr).Unmap()
	}
	return netip.Addr{}
}

// sources bounds the connections of one source. Those over the bound are parked: they have been
// accepted, have no slot, and keep nobody else from being accepted. The zero value has no bound.
type sources struct {
	limit   int           // of one source; 0: none
	room    int           // how many can be parked
	each    int           // … of one source
	wait    time.Duration // how long
	tooLate func(*connection, string)

	mu     sync.Mutex
	count  map[source]int
	parked map[source][]*connection
	total  int
	closed bool
}

func newSources(c Config, tooLate func(*connection, string)) *sources {
	return &sources{limit: c.PerSource, room: c.Connections, each: max(1, c.Connections/2), wait: c.HandLimit, tooLate: tooLate,
		count: map[source]int{}, parked: map[source][]*connection{}}
}

// admission is what becomes of a connection that came.
type admission int

const (
	entered admission = iota
	parked
	refused // there is no room to park it
)

// enter counts c in, or parks it.
func (s *sources) enter(c *connection) admission {
	if s.limit == 0 {
		return entered
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch queue := s.parked[c.source]; {
	case s.closed:
		return refused
	case s.count[c.source] < s.limit && len(queue) == 0:
		s.count[c.source]++
		c.counted = true
		return entered
	case s.total >= s.room || len(queue) >= s.each:
		return refused
	}
	s.parked[c.source] = append(s.parked[c.source], c)
	s.total++
	c.late = time.AfterFunc(s.wait, func() {
		if s.unpark(c) {
			s.tooLate(c, fmt.Sprintf("its source has %d connections, and none ended within %s", s.limit, s.wait))
		}
	})
	return parked
}

// waits tells whether somebody of c's source is parked.
func (s *sources) waits(c *connection) bool {
	if !c.counted {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parked[c.source]) > 0
}

// leave counts c out. It gives the next one of its source, which is counted in and has c's place.
func (s *sources) leave(c *connection) *connection {
	if !c.counted {
		return nil
	}
	c.counted = false
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.parked[c.source]
	if len(queue) == 0 {
		if s.count[c.source]--; s.count[c.source] == 0 {
			delete(s.count, c.source)
		}
		return nil
	}
	next := queue[0]
	s.take(next)
	next.counted = true
	return next
}

// unpark takes c out of the parked ones; false when it is not there any more.
func (s *sources) unpark(c *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(c)
}

// take is unpark with s.mu held.
func (s *sources) take(c *connection) bool {
	queue := s.parked[c.source]
	i := slices.Index(queue, c)
	if i < 0 {
		return false
	}
	c.late.Stop()
	s.total--
	if queue = slices.Delete(queue, i, i+1); len(queue) == 0 {
		delete(s.parked, c.source)
	} else {
		s.parked[c.source] = queue
	}
	return true
}

// close turns away whoever is parked.
func (s *sources) close() {
	s.mu.Lock()
	s.closed = true
	var list []*connection
	for _, queue := range s.parked {
		list = append(list, queue...)
	}
	clear(s.parked)
	s.total = 0
	s.mu.Unlock()
	for _, c := range list {
		c.late.Stop()
		s.tooLate(c, stopping)
	}
}

// stopping is why nobody is served any more.
const stopping = "the gateway stops"

package dial

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// Hosts has the addresses of the hosts that the configuration names. It asks the
// resolver for them again when a daemon can't be reached, so that the gateway
// follows a daemon to another address. It never waits for the resolver.
//
// If a name can't be resolved any longer, its last addresses stay: while the name
// server is down, the daemons may be up.
type Hosts struct {
	Send func(*work.HostLookup) error // sends a question to the resolver; called in a goroutine of its own
	log  *slog.Logger
	now  func() time.Time

	mu     sync.Mutex // guards the fields below, and those of each host
	hosts  map[string]*host
	lastID uint64
}

type host struct {
	configured []netip.Addr // as schedrestd-config resolved the name
	addresses  []netip.Addr // in the order in which to try them
	failing    bool         // the last look-up failed
	lookups    *rate.Bucket // limits the look-ups
	askedAt    time.Time    // of the last look-up
	question   uint64       // number of the look-up that has no answer yet; 0: there is none
}

const (
	// freshFor is how long an answer is used without another question, as long as
	// one of the addresses works.
	freshFor = 30 * time.Second
	// answerLimit is how long the resolver may take. Its look-ups take less.
	answerLimit = 10 * time.Second
)

var (
	errUnresolved = errors.New("the name of the host can't be resolved")
	errLookingUp  = errors.New("the name of the host is being looked up")
)

// NewHosts returns a Hosts without any names.
func NewHosts(log *slog.Logger) *Hosts {
	return &Hosts{log: log, now: time.Now, hosts: map[string]*host{}}
}

// Configure takes the names and addresses of s, and forgets all other names.
// Addresses that an earlier Configure got, too, do not replace later answers of the
// resolver. For a name without addresses, Configure asks the resolver.
func (h *Hosts) Configure(s *work.Setup) {
	h.mu.Lock()
	defer h.mu.Unlock()
	previous := h.hosts
	h.hosts = map[string]*host{}
	for _, a := range slices.Concat(s.Front, s.Controllers, s.Accounting) {
		name, _, ok := a.Named()
		if !ok || h.hosts[name] != nil {
			continue
		}
		e := previous[name]
		if e == nil {
			e = &host{lookups: rate.New(limit.HostLookups, h.now())}
		}
		if len(a.Resolved) > 0 && !slices.Equal(e.configured, a.Resolved) {
			e.configured, e.addresses, e.failing = a.Resolved, a.Resolved, false
		}
		if h.hosts[name] = e; len(e.addresses) == 0 {
			e.failing = true // schedrestd-config has logged this
			h.askLocked(name, e)
		}
	}
}

// next returns the first address of a host that is not among those tried. If none
// is left, it asks the resolver, and returns errLookingUp until there is an answer.
func (h *Hosts) next(name string, tried []netip.Addr) (netip.Addr, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.hosts[name]
	if e == nil { // a worker of an earlier configuration
		return netip.Addr{}, errUnresolved
	}
	i := slices.IndexFunc(e.addresses, func(a netip.Addr) bool { return !slices.Contains(tried, a) })
	if i < 0 || len(tried) > 0 && h.now().Sub(e.askedAt) > freshFor {
		h.askLocked(name, e)
	}
	switch {
	case i >= 0:
		return e.addresses[i], nil
	case e.question != 0:
		return netip.Addr{}, errLookingUp
	case len(e.addresses) == 0:
		return netip.Addr{}, errUnresolved
	}
	return netip.Addr{}, unix.EHOSTUNREACH
}

// askLocked asks the resolver for the addresses of a host, unless it was asked a
// moment ago or has not answered yet.
func (h *Hosts) askLocked(name string, e *host) {
	now := h.now()
	if e.question != 0 && now.Sub(e.askedAt) < answerLimit || !e.lookups.Take(now, 1) {
		return
	}
	h.lastID++
	id := h.lastID
	e.question, e.askedAt = id, now
	go func() {
		if h.Send(&work.HostLookup{ID: id, Name: name}) != nil {
			h.answer(id, nil)
		}
	}()
}

// Handle handles an answer of the resolver. It ignores an answer that comes too
// late.
func (h *Hosts) Handle(m ipc.Message) (handled bool) {
	switch m := m.(type) {
	case *work.HostAddresses:
		h.answer(m.ID, slices.DeleteFunc(m.Addresses, func(a netip.Addr) bool { return a.IsUnspecified() || a.IsMulticast() }))
		return true
	}
	return false
}

// answer records the answer to a question, if it still waits for one.
func (h *Hosts) answer(id uint64, addresses []netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, e := range h.hosts {
		if e.question == 0 || e.question != id {
			continue
		}
		e.question = 0
		switch {
		case len(addresses) == 0 && !e.failing:
			h.log.Warn("host of a daemon can't be resolved; using its last addresses", "host", name, "addresses", e.addresses)
		case len(addresses) > 0 && !slices.Equal(addresses, e.addresses):
			h.log.Info("host of a daemon has other addresses", "host", name, "addresses", addresses, "before", e.addresses)
		}
		if e.failing = len(addresses) == 0; !e.failing {
			e.addresses = addresses
		}
	}
}

// Fail forgets the questions without an answer. It must be called when the resolver
// has exited.
func (h *Hosts) Fail() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.hosts {
		e.question = 0
	}
}

package resolver

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/become/nss"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/rate"
)

// directory looks up names of users and groups, and ids by name. Package nss
// reads the files and then runs getent. Results are bounded and cached for a
// while.
type directory struct {
	user, group     func(uint32) (string, error)
	userID, groupID func(string) (uint32, error)
	now             func() time.Time
	forWorkers      chan struct{} // holds an element for each look-up for a worker
	lookedUp        atomic.Uint64
	forParent       chan struct{} // holds an element for each look-up for the dispatcher, so that its questions never wait for those of workers

	mu    sync.Mutex
	known map[question]answer
}

// question asks for the name of a number. If name is set, it asks for the
// number of that name.
type question struct {
	group  bool
	number uint32
	name   string
}

type answer struct {
	text   string
	number uint32
	until  time.Time
}

const (
	keepNames   = time.Minute
	maxNames    = 10_000 // the cache is cleared when it has this many entries
	maxNameSize = 255    // bytes; a longer name is treated as absent
	maxLookups  = 4      // concurrent look-ups for workers, and as many for the dispatcher; each may start a process
)

func newDirectory() *directory {
	return &directory{now: time.Now, forWorkers: make(chan struct{}, maxLookups), forParent: make(chan struct{}, maxLookups), known: map[question]answer{},
		user: func(uid uint32) (string, error) {
			u, err := nss.LookupUID(uid)
			return u.Name, err
		},
		group: func(gid uint32) (string, error) {
			g, err := nss.LookupGID(gid)
			return g.Name, err
		},
		userID: func(name string) (uint32, error) {
			u, err := nss.LookupUser(name)
			return u.UID, err
		},
		groupID: func(name string) (uint32, error) {
			g, err := nss.LookupGroup(name)
			return g.GID, err
		}}
}

// ask answers a question of the dispatcher. An error means that the user
// database is unavailable.
func (d *directory) ask(q question) (answer, error) {
	if known, ok := d.kept(q); ok {
		return known, nil
	}
	d.forParent <- struct{}{}
	defer func() { <-d.forParent }()
	return d.find(q)
}

// inquirer asks the directory on behalf of one worker.
type inquirer struct {
	*directory
	turn chan struct{} // limits the worker to half of the look-ups that run at the same time
	over chan struct{} // closed when the worker has exited

	mu   sync.Mutex
	left *rate.Bucket // limits questions with unknown answers
	paid *rate.Bucket // limits all questions
}

const (
	askBurst = 2000 // unknown names: enough for each user of a cluster, once
	askRate  = 100  // per second

	knownBurst = 20_000 // known names; a worker that needs more names remembers them itself
	knownRate  = 5000
)

func (d *directory) inquirer() *inquirer {
	return &inquirer{directory: d, turn: make(chan struct{}, maxLookups/2), over: make(chan struct{}), left: rate.New(askBurst, askRate, time.Now()),
		paid: rate.New(knownBurst, knownRate, time.Now())}
}

var errUnasked = errors.New("the worker has exited")

// ask answers a question of the worker. If the worker has asked too many
// questions, ask waits.
func (i *inquirer) ask(q question) (answer, error) {
	i.mu.Lock()
	wait := i.paid.Owe(time.Now(), 1)
	i.mu.Unlock()
	time.Sleep(wait)
	if known, ok := i.kept(q); ok {
		return known, nil
	}
	for _, place := range []chan struct{}{i.turn, i.forWorkers} {
		select {
		case place <- struct{}{}:
			defer func() { <-place }()
		case <-i.over:
			return answer{}, errUnasked
		}
	}
	for !i.isOver() {
		if i.afford() {
			return i.find(q)
		}
		time.Sleep(time.Second / askRate)
	}
	return answer{}, errUnasked
}

func (i *inquirer) isOver() bool {
	select {
	case <-i.over:
		return true
	default:
		return false
	}
}

func (i *inquirer) afford() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.left.Take(time.Now(), 1)
}

// find looks q up.
func (d *directory) find(q question) (answer, error) {
	if known, ok := d.kept(q); ok { // another question has found the answer meanwhile
		return known, nil
	}
	d.lookedUp.Add(1)
	found, err := d.look(q)
	switch errs.KindOf(err) {
	case errs.NotFound, errs.Invalid: // a text that can't be a name belongs to no user
	default:
		if err != nil {
			return answer{}, err
		}
	}
	found.until = d.now().Add(keepNames)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxNames {
		clear(d.known)
	}
	d.known[q] = found
	return found, nil
}

// look asks the system's databases.
func (d *directory) look(q question) (found answer, err error) {
	name, number := d.user, d.userID
	if q.group {
		name, number = d.group, d.groupID
	}
	if q.name != "" {
		if found.number, err = number(q.name); err != nil {
			found.number = ipc.NoID
		}
		return found, err
	}
	if found.text, err = name(q.number); len(found.text) > maxNameSize {
		found.text = ""
	}
	return found, err
}

func (d *directory) kept(q question) (answer, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, ok := d.known[q]
	return a, ok && d.now().Before(a.until)
}

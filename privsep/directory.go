package privsep

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/rate"
)

// directory names users and groups for all workers, and finds the numbers of names. The system's databases are asked by package
// become: its files first, then getent, a process without privileges; what comes back is bounded.
type directory struct {
	user, group     func(uint32) (string, error)
	userID, groupID func(string) (uint32, error)
	now             func() time.Time
	asking          chan struct{} // holds an element for each look-up that runs for a worker
	own             chan struct{} // … for the parent: who is to be born must not wait for what another one asks

	mu    sync.Mutex
	known map[who]named
}

// who is a question: for the name of a number, or when there is a name, for its
// number.
type who struct {
	group  bool
	number uint32
	name   string
}

type named struct {
	text   string
	number uint32
	until  time.Time
}

const (
	keepNames   = time.Minute
	maxNames    = 10_000 // past it all are forgotten
	maxNameSize = 255    // bytes; a longer one is none
	maxLookups  = 4      // at one time, for workers and for the parent each: each may be a process
)

func newDirectory() *directory {
	return &directory{now: time.Now, asking: make(chan struct{}, maxLookups), own: make(chan struct{}, maxLookups), known: map[who]named{},
		user: func(uid uint32) (string, error) {
			u, err := become.LookupUID(uid)
			return u.Name, err
		},
		group: func(gid uint32) (string, error) {
			g, err := become.LookupGID(gid)
			return g.Name, err
		},
		userID: func(name string) (uint32, error) {
			u, err := become.LookupUser(name)
			return u.UID, err
		},
		groupID: func(name string) (uint32, error) {
			g, err := become.LookupGroup(name)
			return g.GID, err
		}}
}

// name is the name of a user or group, "" when nobody has that number. An error says that the databases can't be asked.
func (d *directory) name(group bool, number uint32) (string, error) {
	q := who{group: group, number: number}
	if known, ok := d.kept(q); ok {
		return known.text, nil
	}
	d.own <- struct{}{}
	defer func() { <-d.own }()
	known, err := d.find(q)
	return known.text, err
}

// introduce gives a worker its own user's name, which only who serves rest_auth/local compares anything with.
func (d *directory) introduce(setup *ipc.Setup, uid uint32, log *slog.Logger) {
	if !setup.Local {
		return
	}
	var err error
	if setup.User, err = d.name(false, uid); err != nil {
		log.Warn("a worker can't be told its user's name: as long as it lives it answers 401 to requests of its user that have the name",
			"uid", uid, "error", err, "hint", fmt.Sprintf("getent passwd %d", uid))
	}
}

// inquirer asks the directory for one worker.
type inquirer struct {
	*directory
	turn chan struct{} // so that it has half of the look-ups at the most
	over chan struct{} // closed when nobody waits for an answer any more

	mu   sync.Mutex
	left *rate.Bucket // questions
	paid *rate.Bucket // … of what is known
}

const (
	askBurst = 2000 // of what is not known: a cluster's users, once
	askRate  = 100  // a second

	knownBurst = 20_000 // of what is known; a worker that is asked for that many remembers them itself
	knownRate  = 5000
)

func (d *directory) inquirer() *inquirer {
	return &inquirer{directory: d, turn: make(chan struct{}, maxLookups/2), over: make(chan struct{}), left: rate.New(askBurst, askRate, time.Now()),
		paid: rate.New(knownBurst, knownRate, time.Now())}
}

// errUnasked is what nobody hears any more.
var errUnasked = errors.New("its worker has ended")

// ask answers a question from the directory. It waits while there were too many
// questions.
func (i *inquirer) ask(q who) (named, error) {
	i.mu.Lock()
	wait := i.paid.Owe(time.Now(), 1)
	i.mu.Unlock()
	time.Sleep(wait)
	if known, ok := i.kept(q); ok {
		return known, nil
	}
	for _, place := range []chan struct{}{i.turn, i.asking} {
		select {
		case place <- struct{}{}:
			defer func() { <-place }()
		case <-i.over:
			return named{}, errUnasked
		}
	}
	for !i.isOver() {
		if i.afford() {
			return i.find(q)
		}
		time.Sleep(time.Second / askRate)
	}
	return named{}, errUnasked
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
func (d *directory) find(q who) (named, error) {
	if known, ok := d.kept(q); ok { // found while this one waited
		return known, nil
	}
	found, err := d.look(q)
	switch errs.KindOf(err) {
	case errs.NotFound, errs.Invalid: // what can't be a name is nobody's
	default:
		if err != nil {
			return named{}, err
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
func (d *directory) look(q who) (found named, err error) {
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

func (d *directory) kept(q who) (named, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.known[q]
	return n, ok && d.now().Before(n.until)
}

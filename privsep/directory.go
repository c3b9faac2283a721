package privsep

import (
	"sync"
	"time"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/rate"
)

// directory names users and groups for all workers. The system's databases are asked by package
// become: its files first, then getent, a process without privileges; what comes back is bounded.
type directory struct {
	user, group func(uint32) (string, error)
	now         func() time.Time
	asking      chan struct{} // holds an element for each look-up that runs for a worker
	own         chan struct{} // … for the parent: who is to be born must not wait for what another one asks

	mu    sync.Mutex
	known map[who]named
}

type who struct {
	group  bool
	number uint32
}

type named struct {
	text  string
	until time.Time
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
		}}
}

// name is the name of a user or group, "" when nobody has that number. sure is false when the databases
// can't be asked.
func (d *directory) name(group bool, number uint32) (text string, sure bool) {
	q := who{group, number}
	if text, ok := d.kept(q); ok {
		return text, true
	}
	d.own <- struct{}{}
	defer func() { <-d.own }()
	return d.find(q)
}

// inquirer asks the directory for one worker.
type inquirer struct {
	*directory
	turn chan struct{} // so that it has half of the look-ups at the most
	over chan struct{} // closed when nobody waits for an answer any more

	mu   sync.Mutex
	left *rate.Bucket // questions
}

const (
	askBurst = 2000 // of what is not known: a cluster's users, once
	askRate  = 100  // a second
)

func (d *directory) inquirer() *inquirer {
	return &inquirer{directory: d, turn: make(chan struct{}, maxLookups/2), over: make(chan struct{}), left: rate.New(askBurst, askRate, time.Now())}
}

// name is the directory's. It waits while there were too many questions.
func (i *inquirer) name(group bool, number uint32) (text string, sure bool) {
	q := who{group, number}
	if text, ok := i.kept(q); ok {
		return text, true
	}
	for _, place := range []chan struct{}{i.turn, i.asking} {
		select {
		case place <- struct{}{}:
			defer func() { <-place }()
		case <-i.over:
			return "", false
		}
	}
	for !i.isOver() {
		if i.afford() {
			return i.find(q)
		}
		time.Sleep(time.Second / askRate)
	}
	return "", false
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
func (d *directory) find(q who) (text string, sure bool) {
	if text, ok := d.kept(q); ok { // found while this one waited
		return text, true
	}
	look := d.user
	if q.group {
		look = d.group
	}
	text, err := look(q.number)
	if err != nil && errs.KindOf(err) != errs.NotFound {
		return "", false
	}
	if len(text) > maxNameSize {
		text = ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxNames {
		clear(d.known)
	}
	d.known[q] = named{text, d.now().Add(keepNames)}
	return text, true
}

func (d *directory) kept(q who) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.known[q]
	return n.text, ok && d.now().Before(n.until)
}

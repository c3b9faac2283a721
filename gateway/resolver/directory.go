package resolver

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/become/nss"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// directory finds the names of users and groups by id, and their ids by name.
// It uses package nss, which reads the files in /etc and then runs getent. It
// limits the concurrent look-ups, and remembers the results for a while: users by
// name in accounts, everything else in cache.
type directory struct {
	user, group   func(uint32) (string, error)
	groupID       func(string) (uint32, error)
	host          func(string) ([]netip.Addr, error)
	accounts      *accounts
	members       *members
	now           func() time.Time
	lookups       atomic.Uint64                   // number of look-ups since the start
	pending       *semaphore.Semaphore[*inquirer] // questions of workers and the keeper
	forWorkers    *semaphore.Semaphore[*inquirer] // a place is a look-up
	forDispatcher *semaphore.Semaphore[struct{}]  // the same for the dispatcher

	mu    sync.Mutex // guards cache
	cache map[question]answer
}

// question asks for the name of an id. If the name field is not empty, it asks
// for the id of that name instead.
type question struct {
	group  bool
	number uint32
	name   string
}

// isUser reports whether q asks for the id of a user.
func (q question) isUser() bool { return q.name != "" && !q.group }

type answer struct {
	text    string
	number  uint32
	expires time.Time
}

const (
	nameTTL     = time.Minute
	maxNames    = 10_000 // the cache is cleared when it has this many entries
	maxNameSize = 255    // bytes; a longer name is treated as absent
)

func newDirectory() *directory {
	return &directory{now: time.Now, cache: map[question]answer{}, accounts: newAccounts(), members: newMembers(),
		pending:    semaphore.New[*inquirer](limit.ResolverPending),
		forWorkers: semaphore.New[*inquirer](limit.ResolverLookups), forDispatcher: semaphore.New[struct{}](limit.ResolverDispatcherLookups),
		user: func(uid uint32) (string, error) {
			u, err := nss.LookupUID(uid)
			return u.Name, err
		},
		group: func(gid uint32) (string, error) {
			g, err := nss.LookupGID(gid)
			return g.Name, err
		},
		groupID: func(name string) (uint32, error) {
			g, err := nss.LookupGroup(name)
			return g.GID, err
		},
		host: nss.Host}
}

// addresses returns the addresses of a host, or none if the name can't be resolved.
func (d *directory) addresses(name string) []netip.Addr {
	place, err := d.forDispatcher.Acquire(context.Background(), struct{}{})
	if err != nil {
		return nil
	}
	defer place.Release()
	d.lookups.Add(1)
	list, _ := d.host(name)
	return list[:min(len(list), work.MaxAddresses)]
}

// resolve answers a question from the dispatcher. An error means that the user
// database is unavailable.
func (d *directory) resolve(q question) (answer, error) {
	if hit, ok := d.cached(q); ok {
		return hit, nil
	}
	place, err := d.forDispatcher.Acquire(context.Background(), struct{}{})
	if err != nil {
		return answer{}, err
	}
	defer place.Release()
	return d.lookup(q)
}

// inquirer asks the directory on behalf of one worker.
type inquirer struct {
	*directory
	ctx  context.Context
	stop context.CancelFunc // must be called when the worker has exited

	mu        sync.Mutex   // guards the fields below
	misses    *rate.Bucket // limits questions whose answers are not in the cache
	questions *rate.Bucket // limits all questions
}

func (d *directory) inquirer() *inquirer {
	ctx, stop := context.WithCancel(context.Background())
	return &inquirer{directory: d, ctx: ctx, stop: stop,
		misses:    rate.New(limit.ResolverMisses, time.Now()),
		questions: rate.New(limit.ResolverQuestions, time.Now())}
}

var errWorkerExited = errors.New("the worker has exited")

// resolve answers a question from the worker. It waits if the worker has asked
// too many questions.
func (i *inquirer) resolve(q question) (answer, error) {
	i.mu.Lock()
	wait := i.questions.Charge(time.Now(), 1)
	i.mu.Unlock()
	time.Sleep(wait)
	if hit, ok := i.cached(q); ok {
		return hit, nil
	}
	if last, ok := i.accounts.last(q.name, i.now()); ok && q.isUser() {
		return i.accounts.refresh(q.name, last, func() { _, _ = i.ask(q) }), nil
	}
	return i.ask(q)
}

// ask looks q up when the worker has its turn.
func (i *inquirer) ask(q question) (a answer, err error) {
	err = i.inTurn(func() (err error) {
		a, err = i.lookup(q)
		return err
	})
	return a, err
}

// inTurn calls f, which looks something up, when the worker has its turn.
func (i *inquirer) inTurn(f func() error) error {
	place, err := i.forWorkers.Acquire(i.ctx, i)
	if err != nil {
		return errWorkerExited
	}
	defer place.Release()
	for i.ctx.Err() == nil {
		wait := i.missDelay()
		if wait == 0 {
			return f()
		}
		time.Sleep(wait)
	}
	return errWorkerExited
}

// missDelay returns 0 if the worker may cause another look-up now, and otherwise
// the time until it may.
func (i *inquirer) missDelay() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	if i.misses.Take(now, 1) {
		return 0
	}
	return i.misses.Delay(now, 1)
}

// lookup answers q from the databases, or from the cache if another goroutine
// has put the answer there in the meantime.
func (d *directory) lookup(q question) (answer, error) {
	if hit, ok := d.cached(q); ok {
		return hit, nil
	}
	d.lookups.Add(1)
	if q.isUser() {
		return d.accounts.find(q.name, d.now)
	}
	result, err := d.queryDatabase(q)
	if err != nil && !isMissing(err) { // a text that can't be a name belongs to no user
		return answer{}, err
	}
	result.expires = d.now().Add(nameTTL)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.cache) >= maxNames {
		clear(d.cache)
	}
	d.cache[q] = result
	return result, nil
}

// queryDatabase looks q up in the user and group databases. It does not look up
// the id of a user.
func (d *directory) queryDatabase(q question) (result answer, err error) {
	name := d.user
	if q.group {
		name = d.group
	}
	if q.name != "" {
		if result.number, err = d.groupID(q.name); err != nil {
			result.number = ipc.NoID
		}
		return result, err
	}
	if result.text, err = name(q.number); len(result.text) > maxNameSize {
		result.text = ""
	}
	return result, err
}

func (d *directory) cached(q question) (answer, bool) {
	if q.isUser() {
		return d.accounts.cached(q.name, d.now())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a, ok := d.cache[q]
	return a, ok && d.now().Before(a.expires)
}

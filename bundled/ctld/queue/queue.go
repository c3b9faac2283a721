// Package queue decides which job starts next on one machine. It sorts jobs by
// priority, and jobs of equal priority in order of submission. The first job
// that fits is the next to start. A job that does not fit now does not delay
// smaller jobs behind it, so a large job may wait for a long time.
//
// The package identifies jobs by their numbers. It uses no locks and does not
// read the clock.
package queue

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Resources is a number of CPUs and an amount of memory, for example those that
// a job needs.
type Resources struct {
	CPUs   uint64
	Memory uint64 // MiB; 0: not counted
}

// ErrExceedsMachine is returned for a job that needs more than the machine has.
var ErrExceedsMachine = errors.New("more than this machine has")

// A Queue holds the waiting jobs, and counts the resources that running jobs
// use.
type Queue struct {
	total, used Resources
	waiting     []entry // sorted in the order that compare defines
	running     map[uint32]Resources
}

type entry struct {
	id       uint32
	need     Resources
	begin    time.Time
	priority uint32 // 0: held
}

// compare orders jobs by descending priority, then by ascending number.
func compare(a, b entry) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.id, b.id))
}

// New returns an empty queue for a machine with the given total resources.
func New(total Resources) *Queue { return &Queue{total: total, running: make(map[uint32]Resources)} }

// Fits returns an error that wraps ErrExceedsMachine if a job needs more than
// the whole machine has. The error states how much the job needs and how much
// the machine has.
func (q *Queue) Fits(need Resources) error {
	switch {
	case need.CPUs > q.total.CPUs:
		return fmt.Errorf("needs %d CPUs, %w (%d)", need.CPUs, ErrExceedsMachine, q.total.CPUs)
	case need.Memory > q.total.Memory:
		return fmt.Errorf("needs %d MiB of memory, %w (%d)", need.Memory, ErrExceedsMachine, q.total.Memory)
	}
	return nil
}

// Add adds a job to the waiting jobs. The job must not be in the queue yet. It
// does not start before begin. If its priority is 0, it is held.
func (q *Queue) Add(id uint32, need Resources, begin time.Time, priority uint32) {
	e := entry{id, need, begin, priority}
	i, _ := slices.BinarySearchFunc(q.waiting, e, compare)
	q.waiting = slices.Insert(q.waiting, i, e)
}

// Remove removes the job with this id from the waiting jobs. It reports whether
// the job was waiting.
func (q *Queue) Remove(id uint32) bool {
	i := slices.IndexFunc(q.waiting, func(e entry) bool { return e.id == id })
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// Occupy counts the resources in need as used by the job with this id, even if
// fewer resources are free. Fewer may be free if the machine had more memory
// when an earlier controller started the job.
func (q *Queue) Occupy(id uint32, need Resources) {
	q.Remove(id)
	q.Release(id)
	q.running[id] = need
	q.used.CPUs += need.CPUs
	q.used.Memory += need.Memory
}

// Release frees the resources of job id.
func (q *Queue) Release(id uint32) {
	need := q.running[id]
	delete(q.running, id)
	q.used.CPUs -= need.CPUs
	q.used.Memory -= need.Memory
}

// Start selects the jobs that start now. It removes them from the waiting jobs
// and counts their resources as used. The function permit is called last: if it
// returns true, the job starts.
func (q *Queue) Start(now time.Time, permit func(id uint32) bool) []uint32 {
	if q.used.CPUs >= q.total.CPUs {
		return nil
	}
	var started []uint32
	q.waiting = slices.DeleteFunc(q.waiting, func(e entry) bool {
		if e.priority == 0 || now.Before(e.begin) || !q.fitsNow(e.need) || !permit(e.id) {
			return false
		}
		started = append(started, e.id)
		q.running[e.id] = e.need
		q.used.CPUs += e.need.CPUs
		q.used.Memory += e.need.Memory
		return true
	})
	return started
}

// A Forecast is a copy of a queue, with which the future is computed without the
// locks of the queue.
type Forecast struct {
	queue Queue
	ends  map[uint32]time.Time     // of running jobs that have a limit
	runs  map[uint32]time.Duration // limits of the waiting jobs that have one
}

// Forecast returns a copy of the queue. The function end returns when a running job
// ends, and limit how long a waiting job runs; both return false if there is no limit.
func (q *Queue) Forecast(end func(id uint32) (time.Time, bool), limit func(id uint32) (time.Duration, bool)) *Forecast {
	f := &Forecast{Queue{q.total, q.used, slices.Clone(q.waiting), maps.Clone(q.running)}, map[uint32]time.Time{}, map[uint32]time.Duration{}}
	for id := range q.running {
		if t, ok := end(id); ok {
			f.ends[id] = t
		}
	}
	for _, e := range q.waiting {
		if d, ok := limit(e.id); ok {
			f.runs[e.id] = d
		}
	}
	return f
}

// maxSteps limits the work of Start, which grows with the square of the number of
// jobs. It takes about 3 ms.
const maxSteps = 100_000

// Start returns when a job would start that is added now, if each job runs until its
// time limit. It uses up the Forecast. The result is the zero time if the job would
// wait for a job without a limit, or if there are too many jobs.
func (f *Forecast) Start(now, begin time.Time, id uint32, need Resources, priority uint32) time.Time {
	f.queue.Add(id, need, begin, priority)
	for steps := 0; steps < maxSteps; steps += len(f.queue.waiting) + len(f.ends) + 1 {
		for _, started := range f.queue.Start(now, func(uint32) bool { return true }) {
			if started == id {
				return now
			}
			if d, ok := f.runs[started]; ok {
				f.ends[started] = now.Add(d)
			}
		}
		next := f.queue.NextBegin(now)
		for _, t := range f.ends {
			if next.IsZero() || t.Before(next) {
				next = t
			}
		}
		if next.IsZero() {
			break
		}
		if next.After(now) { // a job may be late to end
			now = next
		}
		for ended, t := range f.ends {
			if !t.After(now) {
				f.queue.Release(ended)
				delete(f.ends, ended)
			}
		}
	}
	return time.Time{}
}

func (q *Queue) fitsNow(need Resources) bool {
	return q.used.CPUs+need.CPUs <= q.total.CPUs && q.used.Memory+need.Memory <= q.total.Memory
}

// NextBegin returns the earliest begin time that is later than now. It ignores
// held jobs. If no job waits for its begin time, NextBegin returns the zero
// time.
func (q *Queue) NextBegin(now time.Time) time.Time {
	var next time.Time
	for _, e := range q.waiting {
		if e.priority != 0 && now.Before(e.begin) && (next.IsZero() || e.begin.Before(next)) {
			next = e.begin
		}
	}
	return next
}

// Used returns the resources of all running jobs.
func (q *Queue) Used() Resources { return q.used }

// Total returns the resources of the machine.
func (q *Queue) Total() Resources { return q.total }

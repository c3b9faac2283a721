// Package queue decides which job starts next on one machine: the first job
// that fits, in order of priority and then of submission. A job that does not
// fit now does not delay smaller jobs behind it. So a large job may wait for a
// long time.
//
// The package identifies jobs by their numbers. It does not lock and does not
// read the clock.
package queue

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Resources is the part of the machine's resources that a job takes.
type Resources struct {
	CPUs   uint64
	Memory uint64 // MiB; 0: not counted
}

// ErrExceedsMachine is returned for a job that needs more than the machine has.
var ErrExceedsMachine = errors.New("more than this machine has")

// Queue holds the waiting jobs and the resources in use.
type Queue struct {
	total, used Resources
	waiting     []entry // in the order in which they start: see compare
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

// New returns an empty queue for a machine that has the resources in total.
func New(total Resources) *Queue { return &Queue{total: total, running: make(map[uint32]Resources)} }

// Fits returns an error that wraps ErrExceedsMachine if need exceeds the
// resources of the idle machine. The error contains the needed and the
// available amount.
func (q *Queue) Fits(need Resources) error {
	switch {
	case need.CPUs > q.total.CPUs:
		return fmt.Errorf("needs %d CPUs, %w (%d)", need.CPUs, ErrExceedsMachine, q.total.CPUs)
	case need.Memory > q.total.Memory:
		return fmt.Errorf("needs %d MiB of memory, %w (%d)", need.Memory, ErrExceedsMachine, q.total.Memory)
	}
	return nil
}

// Add queues job id, which must not be queued already. The job does not start
// before begin. With priority 0 it is held.
func (q *Queue) Add(id uint32, need Resources, begin time.Time, priority uint32) {
	e := entry{id, need, begin, priority}
	i, _ := slices.BinarySearchFunc(q.waiting, e, compare)
	q.waiting = slices.Insert(q.waiting, i, e)
}

// Remove removes job id from the waiting jobs, and reports whether it was one
// of them.
func (q *Queue) Remove(id uint32) bool {
	i := slices.IndexFunc(q.waiting, func(e entry) bool { return e.id == id })
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// Occupy counts the resources in need as used by a job, even if they are more
// than the free resources. This can happen if an earlier controller started the
// job, perhaps when the machine had more memory.
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

// Start selects the jobs that start now, removes them from the waiting jobs and
// assigns their resources.
func (q *Queue) Start(now time.Time) []uint32 {
	if q.used.CPUs >= q.total.CPUs {
		return nil
	}
	var started []uint32
	q.waiting = slices.DeleteFunc(q.waiting, func(e entry) bool {
		if e.priority == 0 || now.Before(e.begin) || !q.fitsNow(e.need) {
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

func (q *Queue) fitsNow(need Resources) bool {
	return q.used.CPUs+need.CPUs <= q.total.CPUs && q.used.Memory+need.Memory <= q.total.Memory
}

// NextBegin returns the time at which the next waiting job reaches its begin
// time. It ignores held jobs. It returns the zero time when no job waits for
// its begin time.
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

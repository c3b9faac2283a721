// Package queue decides which job starts next on one machine: in the order of
// submission, and the first that fits. A job that does not fit now does not hold up smaller
// ones behind it; that a large job may wait long for a quiet moment is the price.
//
// It knows numbers only, keeps no lock and reads no clock.
package queue

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Need is what a job takes of the machine.
type Need struct {
	CPUs   uint64
	Memory uint64 // MiB; 0: not accounted for
}

// ErrNever says that a job needs more than the machine has.
var ErrNever = errors.New("more than this machine has")

// Queue is the jobs that wait and the resources in use.
type Queue struct {
	total, used Need
	waiting     []entry // in order of submission, which is that of the numbers
	running     map[uint32]Need
}

type entry struct {
	id    uint32
	need  Need
	begin time.Time
	held  bool
}

// New makes an empty queue for a machine with total.
func New(total Need) *Queue { return &Queue{total: total, running: make(map[uint32]Need)} }

// Fits returns ErrNever, with the numbers, when need could not be had even on the idle machine.
func (q *Queue) Fits(need Need) error {
	switch {
	case need.CPUs > q.total.CPUs:
		return fmt.Errorf("%d cpus are needed, %w, which is %d", need.CPUs, ErrNever, q.total.CPUs)
	case need.Memory > q.total.Memory:
		return fmt.Errorf("%d MiB of memory are needed, %w, which is %d", need.Memory, ErrNever, q.total.Memory)
	}
	return nil
}

// Add has job id wait. It may not start before begin, nor while held.
func (q *Queue) Add(id uint32, need Need, begin time.Time, held bool) {
	i, found := q.find(id)
	if !found {
		q.waiting = slices.Insert(q.waiting, i, entry{id, need, begin, held})
	}
}

// Remove takes job id out of those that wait, and tells whether it was among them.
func (q *Queue) Remove(id uint32) bool {
	i, found := q.find(id)
	if found {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return found
}

func (q *Queue) find(id uint32) (int, bool) {
	return slices.BinarySearchFunc(q.waiting, id, func(e entry, id uint32) int { return int(int64(e.id) - int64(id)) })
}

// Occupy has job id use need from now on, even when that is more than is free: it
// was started by an earlier controller, perhaps before the machine lost memory.
func (q *Queue) Occupy(id uint32, need Need) {
	q.Remove(id)
	q.Release(id)
	q.running[id] = need
	q.used.CPUs += need.CPUs
	q.used.Memory += need.Memory
}

// Release gives back what job id uses.
func (q *Queue) Release(id uint32) {
	need := q.running[id]
	delete(q.running, id)
	q.used.CPUs -= need.CPUs
	q.used.Memory -= need.Memory
}

// Start picks the jobs that start now, which no longer wait but use what they need.
func (q *Queue) Start(now time.Time) []uint32 {
	if q.used.CPUs >= q.total.CPUs {
		return nil
	}
	var started []uint32
	q.waiting = slices.DeleteFunc(q.waiting, func(e entry) bool {
		if e.held || now.Before(e.begin) || !q.free(e.need) {
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

func (q *Queue) free(need Need) bool {
	return q.used.CPUs+need.CPUs <= q.total.CPUs && q.used.Memory+need.Memory <= q.total.Memory
}

// Next is when the first waiting job's time comes; the zero time when none waits for that.
func (q *Queue) Next(now time.Time) time.Time {
	var next time.Time
	for _, e := range q.waiting {
		if !e.held && now.Before(e.begin) && (next.IsZero() || e.begin.Before(next)) {
			next = e.begin
		}
	}
	return next
}

// Used is what the running jobs use together.
func (q *Queue) Used() Need { return q.used }

// Total is what the machine has.
func (q *Queue) Total() Need { return q.total }

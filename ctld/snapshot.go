package ctld

import (
	"cmp"
	"context"
	"slices"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// A list is encoded from a snapshot, outside the lock. That works because a record is never
// changed: update replaces it. A snapshot is one pointer for each job, all requests share it
// until a job changes, and the lock is held only while the pointers are copied.

// update replaces the record of j by a copy to which change was applied; c.mu is held.
func (c *Controller) update(j *job, now time.Time, change func(*model.Job)) {
	r := *j.record
	change(&r.Job)
	j.record = &r
	c.change(now)
}

// change notes that a job has changed, come or gone; c.mu is held.
func (c *Controller) change(now time.Time) {
	c.changed = model.At(now)
	c.edits++
	c.sorted = nil
}

// snapshot returns the records of all jobs in the order of their numbers, and when a job last
// changed. The caller changes neither the list nor the records.
func (c *Controller) snapshot() (list []*record, changed model.Time) {
	c.mu.Lock()
	list, changed, edits := c.sorted, c.changed, c.edits
	if list != nil {
		c.mu.Unlock()
		return list, changed
	}
	list = make([]*record, 0, len(c.jobs))
	for _, j := range c.jobs {
		list = append(list, j.record)
	}
	c.mu.Unlock()

	slices.SortFunc(list, func(a, b *record) int { return cmp.Compare(a.id(), b.id()) })
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.edits == edits {
		c.sorted = list
	}
	return list, changed
}

// visible returns the records in list that the client may see, and if ids is not nil, only those
// with an id in ids. It sorts ids.
func (c *Controller) visible(client server.Identity, list []*record, ids []uint32) []*record {
	slices.Sort(ids)
	var found []*record
	for _, r := range list {
		if !c.sees(client, r) {
			continue
		}
		if ids != nil {
			if _, asked := slices.BinarySearch(ids, r.id()); !asked {
				continue
			}
		}
		found = append(found, r)
	}
	return found
}

// list returns a handler for a request whose answer grows with the number of jobs. h reads the
// request and returns the answer, which is encoded here: a few at a time for each user, and none
// for a client that has closed its connection.
func (c *Controller) list(h server.Handler) server.Handler {
	return func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		place, err := c.queries.Acquire(ctx, r.Identity.UID)
		if err != nil {
			return 0, nil, err
		}
		defer place.Release()
		t, body, err := h(ctx, r)
		if err != nil {
			return 0, nil, err
		}
		body, err = r.Spool(t, body)
		return t, body, err
	}
}

// pull returns a function for the Pull of a codec.Stream, which makes an element of each record
// in list. It fails once ctx has ended.
func pull[T any](ctx context.Context, list []*record, element func(*record) T) func() (*T, error) {
	var one T
	return func() (*T, error) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		one = element(list[0])
		list = list[1:]
		return &one, nil
	}
}

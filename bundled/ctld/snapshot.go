package ctld

import (
	"cmp"
	"context"
	"slices"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/server"
)

// Handlers encode a list of jobs from a snapshot, so they need not hold c.mu
// while they encode it. This works because a record is never modified: update
// replaces it. A snapshot contains one pointer for each job. All requests share
// a snapshot until a job changes. c.mu is held only while the pointers are
// copied into a new snapshot.

// updateLocked replaces the record of j with a copy, and calls change to modify
// that copy.
func (c *Controller) updateLocked(j *job, now time.Time, change func(*model.Job)) {
	r := *j.record
	change(&r.Job)
	j.record = &r
	c.markChangedLocked(now)
}

// markChangedLocked discards the cached snapshot, and records now as the time
// of the last change. It must be called whenever a job is changed, added or
// removed.
func (c *Controller) markChangedLocked(now time.Time) {
	c.changedAt = c.updateTimeLocked(now)
	c.revision++
	c.snapshotCache = nil
}

// snapshot returns the records of all jobs, sorted by number, and their
// version. The caller must not modify the list or the records.
func (c *Controller) snapshot() (list []*record, v version) {
	c.mu.Lock()
	list, revision := c.snapshotCache, c.revision
	v = version{changed: c.changedAt, time: c.updateTimeLocked(time.Now())}
	if list != nil {
		c.mu.Unlock()
		return list, v
	}
	list = make([]*record, 0, len(c.jobs))
	for _, j := range c.jobs {
		list = append(list, j.record)
	}
	c.mu.Unlock()

	slices.SortFunc(list, func(a, b *record) int { return cmp.Compare(a.id(), b.id()) })
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revision == revision {
		c.snapshotCache = list
	}
	return list, v
}

// visible returns the records in list that the client may see. If ids is not
// nil, visible returns only records of jobs whose numbers are in ids. It sorts
// ids in place.
func (c *Controller) visible(client server.Identity, list []*record, ids []uint32) []*record {
	slices.Sort(ids)
	var found []*record
	for _, r := range list {
		if !c.canSee(client, r) {
			continue
		}
		if ids != nil {
			if _, requested := slices.BinarySearch(ids, r.id()); !requested {
				continue
			}
		}
		found = append(found, r)
	}
	return found
}

// pull returns a function for the field Pull of a codec.Stream. Each call to
// that function returns the element for the next record in list. Once ctx is
// done, calls return an error.
func pull[T any](ctx context.Context, list []*record, element func(*record) T) func() (*T, error) {
	var current T
	return func() (*T, error) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		current = element(list[0])
		list = list[1:]
		return &current, nil
	}
}

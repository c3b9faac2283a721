package ctld

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"schedrestd/ctld/journal"
	"schedrestd/model"
)

// Accounting takes the records of jobs: as they start, and as they end. A batch that was sent
// but not acknowledged is sent again, so it must not matter whether it comes twice.
type Accounting interface {
	Record(ctx context.Context, jobs []model.Job) error
}

// spool keeps the records for the accounting daemon until that has acknowledged them, in the
// journal: neither daemon's absence loses one. In memory there are numbers alone.
type spool struct {
	c    *Controller
	wake chan struct{}

	mu      sync.Mutex
	next    uint64
	pending []uint64 // ascending
}

const (
	spoolBatch = 256     // records at once
	spoolMost  = 200_000 // past it the oldest are given up: the daemon has been away for too long
	spoolPause = 5 * time.Second
)

func newSpool(c *Controller) *spool { return &spool{c: c, wake: make(chan struct{}, 1)} }

// load takes up a record of an earlier controller; keys come in order.
func (s *spool) load(n uint64) {
	s.pending = append(s.pending, n)
	s.next = max(s.next, n+1)
}

// add spools the record of a job.
func (s *spool) add(j model.Job) error {
	return s.with(j, func(e journal.Entry) error { return s.c.journal.Commit(e) })
}

// with has commit write the spool's entry for a job together with whatever belongs to
// it, and counts it in when that succeeds.
func (s *spool) with(j model.Job, commit func(journal.Entry) error) error {
	s.mu.Lock()
	n := s.next
	s.next++
	s.mu.Unlock()
	e, err := entry(key(spoolPrefix, n), j)
	if err != nil {
		return err
	}
	if err := commit(e); err != nil {
		return err
	}
	s.mu.Lock()
	i, _ := slices.BinarySearch(s.pending, n)
	s.pending = slices.Insert(s.pending, i, n)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// run sends what is spooled until the controller stops.
func (s *spool) run() {
	down := false
	for s.c.ctx.Err() == nil {
		batch := s.batch()
		if len(batch) == 0 {
			select {
			case <-s.wake:
			case <-s.c.ctx.Done():
			}
			continue
		}
		err := s.send(batch)
		if err == nil {
			if down {
				s.c.log.Info("the accounting daemon is back")
			}
			down = false
			continue
		}
		if !down && s.c.ctx.Err() == nil {
			s.c.log.Warn("job records are kept until the accounting daemon takes them", "error", err)
		}
		down = true
		s.trim()
		sleep(s.c.ctx, spoolPause)
	}
}

func (s *spool) batch() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pending[:min(len(s.pending), spoolBatch)])
}

// send sends the records numbered batch and drops them when they are acknowledged.
func (s *spool) send(batch []uint64) error {
	var jobs []model.Job
	for _, n := range batch {
		b, err := s.c.journal.Get(key(spoolPrefix, n))
		if err != nil {
			return err
		}
		var j model.Job
		if err := json.Unmarshal(b, &j); err != nil {
			return err
		}
		jobs = append(jobs, j)
	}
	if err := s.c.cfg.Accounting.Record(s.c.ctx, jobs); err != nil {
		return err
	}
	return s.drop(batch)
}

func (s *spool) drop(batch []uint64) error {
	var entries []journal.Entry
	for _, n := range batch {
		entries = append(entries, journal.Entry{Key: key(spoolPrefix, n)})
	}
	if err := s.c.journal.Commit(entries...); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = slices.DeleteFunc(s.pending, func(n uint64) bool {
		_, gone := slices.BinarySearch(batch, n)
		return gone
	})
	return nil
}

// trim gives up the oldest records when there are too many: a disk full of them would keep jobs
// from being accepted.
func (s *spool) trim() {
	s.mu.Lock()
	surplus := len(s.pending) - spoolMost
	var oldest []uint64
	if surplus > 0 {
		oldest = slices.Clone(s.pending[:surplus])
	}
	s.mu.Unlock()
	if len(oldest) == 0 {
		return
	}
	s.c.log.Error("job records given up: the accounting daemon has been away for too long", "records", surplus)
	if err := s.drop(oldest); err != nil {
		s.c.log.Error("give up job records", "error", err)
	}
}

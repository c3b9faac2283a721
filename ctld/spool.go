package ctld

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"schedrestd/ctld/journal"
	"schedrestd/errs"
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
	aside   []uint64 // likewise
}

const (
	spoolBatch = 256     // records at once
	spoolBytes = 4 << 20 // of them, as they are in the journal
	spoolAside = 1000    // refused records that are kept
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

// run sends what is spooled until the controller stops. A batch that the accounting daemon refuses is
// halved, until the one record that it can't take is known, which is set aside: the records of
// everybody else wait behind it.
func (s *spool) run() {
	down, most := false, spoolBatch
	for s.c.ctx.Err() == nil {
		batch := s.batch(most)
		if len(batch) == 0 {
			select {
			case <-s.wake:
			case <-s.c.ctx.Done():
			}
			continue
		}
		n, err := s.send(batch)
		switch {
		case err == nil:
			if down {
				s.c.log.Info("the accounting daemon is back")
			}
			down, most = false, min(2*most, spoolBatch)
			continue
		case refused(err) && n > 1:
			most = n / 2
			continue
		case refused(err):
			if err = s.setAside(batch[0], err); err == nil {
				continue
			}
		}
		if !down && s.c.ctx.Err() == nil {
			s.c.log.Warn("job records are kept until the accounting daemon takes them", "error", err)
		}
		down = true
		s.trim()
		sleep(s.c.ctx, spoolPause)
	}
}

// refused tells whether what was sent is the matter, and sending it again is of no use.
func refused(err error) bool {
	switch errs.KindOf(err) {
	case errs.Malformed, errs.Invalid, errs.TooLarge:
		return true
	}
	return false
}

func (s *spool) batch(most int) []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pending[:min(len(s.pending), most)])
}

// send sends the first of the records numbered batch, as many as go together, and drops them when
// they are acknowledged. n is how many those are.
func (s *spool) send(batch []uint64) (n int, err error) {
	var jobs []model.Job
	bytes := 0
	for _, number := range batch {
		b, err := s.c.journal.Get(key(spoolPrefix, number))
		if err != nil {
			return n, err
		}
		if bytes += len(b); bytes > spoolBytes && n > 0 {
			break
		}
		n++
		var j model.Job
		if err := json.Unmarshal(b, &j); err != nil {
			return n, errs.Wrap(err, errs.Invalid, "the record can't be read")
		}
		jobs = append(jobs, j)
	}
	if err := s.c.cfg.Accounting.Record(s.c.ctx, jobs); err != nil {
		return n, err
	}
	return n, s.drop(batch[:n])
}

// setAside takes a record out of the way that the accounting daemon refuses. It stays in the
// journal for an administrator; of very many, the latest do.
func (s *spool) setAside(n uint64, why error) error {
	b, err := s.c.journal.Get(key(spoolPrefix, n))
	if err != nil {
		return err
	}
	var j model.Job
	json.Unmarshal(b, &j)
	s.c.log.Error("the accounting daemon refuses the record of a job, which is set aside",
		"job", j.StepID.JobID, "state", uint32(j.State.Base()), "record", key(asidePrefix, n), "bytes", len(b), "error", why)
	entries := []journal.Entry{{Key: key(spoolPrefix, n)}, {Key: key(asidePrefix, n), Value: b}}
	s.mu.Lock()
	aside := append(slices.Clone(s.aside), n)
	s.mu.Unlock()
	for ; len(aside) > spoolAside; aside = aside[1:] {
		entries = append(entries, journal.Entry{Key: key(asidePrefix, aside[0])})
	}
	if err := s.c.journal.Commit(entries...); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aside = aside
	s.pending = slices.DeleteFunc(s.pending, func(p uint64) bool { return p == n })
	return nil
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

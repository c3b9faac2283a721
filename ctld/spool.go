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
//
// When the records take too many bytes, because the accounting daemon has been away for long, the user whose records
// take the most gives up their oldest. No user can push out another's records.
type spool struct {
	c    *Controller
	wake chan struct{}

	mu      sync.Mutex
	next    uint64
	pending records
	aside   records // that the accounting daemon refuses
}

// records are some of the records in the journal.
type records struct {
	prefix  string   // of their keys
	most    int64    // bytes of the journal that they may take
	numbers []uint64 // ascending
}

const (
	spoolBatch = 256       // records at once
	spoolBytes = 4 << 20   // of them, as they are in the journal
	spoolMost  = 512 << 20 // of all that wait
	asideMost  = 16 << 20  // of all that are refused
	spoolPause = 5 * time.Second
)

func newSpool(c *Controller) *spool {
	return &spool{c: c, wake: make(chan struct{}, 1),
		pending: records{prefix: spoolPrefix, most: spoolMost}, aside: records{prefix: asidePrefix, most: asideMost}}
}

// load takes up a record of an earlier controller; keys come in order.
func (s *spool) load(n uint64) {
	s.pending.numbers = append(s.pending.numbers, n)
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
	e, err := entry(j.UserID, key(spoolPrefix, n), j)
	if err != nil {
		return err
	}
	if err := commit(e); err != nil {
		return err
	}
	s.mu.Lock()
	i, _ := slices.BinarySearch(s.pending.numbers, n)
	s.pending.numbers = slices.Insert(s.pending.numbers, i, n)
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
				s.c.log.Info("accounting daemon available again")
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
			s.c.log.Warn("accounting daemon unavailable; keeping job records", "error", err)
		}
		down = true
		s.trim(&s.pending)
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
	return slices.Clone(s.pending.numbers[:min(len(s.pending.numbers), most)])
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
			return n, errs.Wrap(err, errs.Invalid, "decode job record")
		}
		jobs = append(jobs, j)
	}
	if err := s.c.cfg.Accounting.Record(s.c.ctx, jobs); err != nil {
		return n, err
	}
	return n, s.drop(&s.pending, batch[:n])
}

// setAside takes a record out of the way that the accounting daemon refuses. It stays in the
// journal for an administrator, as long as there is room for it.
func (s *spool) setAside(n uint64, why error) error {
	b, err := s.c.journal.Get(key(spoolPrefix, n))
	if err != nil {
		return err
	}
	var j model.Job
	json.Unmarshal(b, &j)
	s.c.log.Error("job record refused by the accounting daemon and set aside",
		"job", j.StepID.JobID, "state", uint32(j.State.Base()), "record", key(asidePrefix, n), "bytes", len(b), "error", why)
	if err := s.c.journal.Commit(journal.Entry{Key: key(spoolPrefix, n)}, journal.Entry{Key: key(asidePrefix, n), Value: b, Owner: j.UserID}); err != nil {
		return err
	}
	s.mu.Lock()
	s.aside.numbers = append(s.aside.numbers, n)
	s.pending.numbers = slices.DeleteFunc(s.pending.numbers, func(p uint64) bool { return p == n })
	s.mu.Unlock()
	s.trim(&s.aside)
	return nil
}

// drop drops some records of a list.
func (s *spool) drop(list *records, numbers []uint64) error {
	var entries []journal.Entry
	for _, n := range numbers {
		entries = append(entries, journal.Entry{Key: key(list.prefix, n)})
	}
	if err := s.c.journal.Commit(entries...); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list.numbers = slices.DeleteFunc(list.numbers, func(n uint64) bool {
		_, gone := slices.BinarySearch(numbers, n)
		return gone
	})
	return nil
}

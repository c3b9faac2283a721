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

// Accounting receives job records, one when a job starts and one when it ends.
// A batch that was sent but not acknowledged is sent again, so Record must be
// idempotent.
type Accounting interface {
	Record(ctx context.Context, jobs []model.Job) error
}

// spool stores records for the accounting daemon in the journal until the
// daemon has acknowledged them, so that no record is lost while either daemon
// is down. Only the numbers of the records are in memory.
//
// If the accounting daemon is unavailable for long, the records may reach their
// limit. Then the spool drops the oldest records of the user whose records take
// the most space. So no user can displace the records of others.
type spool struct {
	c    *Controller
	wake chan struct{}

	mu      sync.Mutex
	next    uint64
	pending records
	refused records // refused by the accounting daemon
}

// records is a list of records in the journal.
type records struct {
	prefix   string   // of their keys
	maxBytes int64    // limit of the bytes that they take in the journal
	numbers  []uint64 // ascending: use insert and remove
}

// insert adds record n. Commits can finish out of order, so n need not be the
// highest number.
func (r *records) insert(n uint64) {
	i, _ := slices.BinarySearch(r.numbers, n)
	r.numbers = slices.Insert(r.numbers, i, n)
}

// remove removes the records in numbers, which must be ascending.
func (r *records) remove(numbers ...uint64) {
	r.numbers = slices.DeleteFunc(r.numbers, func(n uint64) bool {
		_, found := slices.BinarySearch(numbers, n)
		return found
	})
}

const (
	maxBatchRecords    = 256       // records of one batch
	maxBatchBytes      = 4 << 20   // bytes of one batch, as stored in the journal
	maxPendingBytes    = 512 << 20 // bytes of all pending records
	maxRefusedBytes    = 16 << 20  // bytes of all refused records
	spoolRetryInterval = 5 * time.Second
)

func newSpool(c *Controller) *spool {
	return &spool{c: c, wake: make(chan struct{}, 1),
		pending: records{prefix: spoolPrefix, maxBytes: maxPendingBytes},
		refused: records{prefix: asidePrefix, maxBytes: maxRefusedBytes}}
}

// load adds the record that an earlier controller stored under the key k. It
// ignores keys of other values.
func (s *spool) load(k string) {
	for _, list := range []*records{&s.pending, &s.refused} {
		if n, ok := parseKey(k, list.prefix); ok {
			list.insert(n)
			s.next = max(s.next, n+1)
		}
	}
}

// add puts the record of a job into the spool.
func (s *spool) add(j model.Job) error {
	return s.addWith(j, func(e journal.Entry) error { return s.c.journal.Commit(e) })
}

// addWith makes the journal entry for a record of job j and passes it to
// commit, which can commit other entries together with it. When commit
// succeeds, the record is pending.
func (s *spool) addWith(j model.Job, commit func(journal.Entry) error) error {
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
	s.pending.insert(n)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// run sends records until the controller stops. If the accounting daemon
// refuses a batch, run halves the batch until it has found the refused record,
// and sets that record aside. Otherwise one bad record would block all others.
func (s *spool) run() {
	down, limit := false, maxBatchRecords
	for s.c.ctx.Err() == nil {
		batch := s.batch(limit)
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
			down, limit = false, min(2*limit, maxBatchRecords)
			continue
		case isRefusal(err) && n > 1:
			limit = n / 2
			continue
		case isRefusal(err):
			if err = s.setAside(batch[0], err); err == nil {
				continue
			}
		}
		if !down && s.c.ctx.Err() == nil {
			s.c.log.Warn("accounting daemon unavailable; keeping job records", "error", err)
		}
		down = true
		s.trim(&s.pending)
		sleep(s.c.ctx, spoolRetryInterval)
	}
}

// isRefusal reports whether the daemon refuses the content of a batch. Sending
// such a batch again would be useless.
func isRefusal(err error) bool {
	switch errs.KindOf(err) {
	case errs.Malformed, errs.Invalid, errs.TooLarge:
		return true
	}
	return false
}

func (s *spool) batch(limit int) []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pending.numbers[:min(len(s.pending.numbers), limit)])
}

// send sends the records at the start of batch, as many as fit into one
// message. It removes them from the spool once the daemon has acknowledged
// them. n is the number of records in that message.
func (s *spool) send(batch []uint64) (n int, err error) {
	var jobs []model.Job
	bytes := 0
	for _, number := range batch {
		b, err := s.c.journal.Get(key(spoolPrefix, number))
		if err != nil {
			return n, err
		}
		if bytes += len(b); bytes > maxBatchBytes && n > 0 {
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

// setAside removes record n from the pending records, because the accounting
// daemon refuses it or because it is damaged. The record stays in the journal,
// for an administrator. When the records set aside exceed maxRefusedBytes, some
// of them are dropped.
func (s *spool) setAside(n uint64, cause error) error {
	from, to := key(spoolPrefix, n), key(asidePrefix, n)
	b, err := s.c.journal.Get(from)
	if err != nil {
		return err
	}
	uid, _ := s.c.journal.Stat(from)
	var j model.Job
	if err := json.Unmarshal(b, &j); err != nil {
		s.c.log.Error("damaged job record set aside", "uid", uid, "record", to, "bytes", len(b), "error", err)
	} else {
		s.c.log.Error("job record refused by the accounting daemon and set aside",
			"job", j.StepID.JobID, "state", uint32(j.State.Base()), "record", to, "bytes", len(b), "error", cause)
	}
	if err := s.c.journal.Commit(journal.Entry{Key: from}, journal.Entry{Key: to, Value: b, Owner: uid}); err != nil {
		return err
	}
	s.mu.Lock()
	s.refused.insert(n)
	s.pending.remove(n)
	s.mu.Unlock()
	s.trim(&s.refused)
	return nil
}

// drop removes records from the journal and from list. The numbers must be
// ascending.
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
	list.remove(numbers...)
	return nil
}

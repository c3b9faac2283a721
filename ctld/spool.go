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

// Accounting is the interface to the accounting daemon. Record sends job
// records to the daemon: one when a job starts and another one when the job
// ends. If a batch is not acknowledged, it is sent again, so Record must be
// idempotent.
type Accounting interface {
	Record(ctx context.Context, jobs []model.Job) error
}

// A spool keeps records for the accounting daemon in the journal until the
// daemon has acknowledged them. So no record is lost while either daemon is
// down. Only the numbers of the records are in memory.
//
// If the accounting daemon is unavailable for a long time, the spool may become
// full. The spool then drops the oldest records of the user whose records take
// the most space. So a user can't displace the records of other users.
type spool struct {
	c    *Controller
	wake chan struct{}

	mu      sync.Mutex
	next    uint64
	pending records
	refused records // refused by the accounting daemon
}

// The type records is a list of records in the journal.
type records struct {
	prefix   string   // of their keys
	maxBytes int64    // maximum number of bytes that they take in the journal
	numbers  []uint64 // ascending: use insert and remove
}

// insert adds the record with number n. Commits can finish out of order, so n
// may be lower than numbers in the list.
func (r *records) insert(n uint64) {
	i, _ := slices.BinarySearch(r.numbers, n)
	r.numbers = slices.Insert(r.numbers, i, n)
}

// remove removes the records with the given numbers, which must be ascending.
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

// load adds to the spool a record that an earlier controller stored under the
// key k. It ignores keys that do not belong to records.
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

// addWith makes a journal entry with a record of job j, and calls commit to
// store it. The function commit may store other entries in the same commit.
// When commit succeeds, addWith adds the record to the pending ones.
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
// refuses a batch, run tries smaller batches until it has found the record that
// is refused. It sets that record aside, because otherwise the record would
// block all others.
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

// isRefusal reports whether the error means that the daemon refuses the content
// of a batch. It would then be useless to send the batch again.
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

// send sends the first n records of batch, where n is how many fit into one
// message. When the daemon has acknowledged them, send removes them from the
// spool.
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
// daemon refuses it or because it is damaged. The journal keeps the record for
// an administrator. If all such records together exceed maxRefusedBytes, some
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

// drop removes the records with the given numbers from the journal and from
// list. The numbers must be ascending.
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

package ctld

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"schedrestd/bundled/ctld/journal"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/model"
)

// Accounting is the interface to the accounting daemon. Record sends a batch of
// job records to the daemon. Each job has one record for its submission, one for
// its start and one for its end. If the daemon does not acknowledge a batch, the controller
// sends the batch again, so Record must be idempotent.
type Accounting interface {
	Record(ctx context.Context, jobs []model.Job) error
}

// A spool keeps records for the accounting daemon in the journal until that
// daemon has acknowledged them. So no record is lost while the controller or
// the accounting daemon is down. Only the numbers of the records are in memory.
//
// If the accounting daemon is unavailable for a long time, the spool may become
// full. The spool then drops the oldest records of the user whose records take
// the most space. So the records of one user can't displace those of others.
type spool struct {
	c    *Controller
	wake chan struct{}

	mu      sync.Mutex // guards the fields below
	next    uint64
	pending records
	refused records // refused by the accounting daemon
}

// The type records is a list of records in the journal.
type records struct {
	prefix   string   // of their keys
	maxBytes int64    // maximum total size of the records in the journal
	numbers  []uint64 // ascending: use insert and remove
}

// insert adds the record with number n. Commits can finish out of order, so n
// may be lower than a number that is already in the list.
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
	maxBatchRecords    = 256     // records of one batch
	maxBatchBytes      = 4 << 20 // bytes of one batch, as stored in the journal
	spoolRetryInterval = 5 * time.Second
)

func newSpool(c *Controller) *spool {
	return &spool{c: c, wake: make(chan struct{}, 1),
		pending: records{prefix: spoolPrefix, maxBytes: int64(limit.UnsentRecords.Total)},
		refused: records{prefix: asidePrefix, maxBytes: int64(limit.RefusedRecords.Total)}}
}

// load checks whether an earlier controller stored a record under the key k. If
// so, it adds the record to the spool. It ignores all other keys.
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

// addWith makes a journal entry that contains a record of job j. It passes this
// entry to commit, which must store it and may store other entries together
// with it. If commit succeeds, addWith adds the record to s.pending.
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

// isRefusal reports whether err means that the accounting daemon refuses the
// content of a batch. Sending such a batch again would be useless.
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

// send sends as many records of batch as fit into one message, starting with
// the first, and returns their number n. When the accounting daemon has
// acknowledged these records, send removes them from the spool.
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

// setAside moves record n from the pending to the refused records, because the
// accounting daemon refuses this record or because the record is damaged. The
// journal keeps the refused records for an administrator. If they exceed
// limit.RefusedRecords in total, setAside drops some of them.
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

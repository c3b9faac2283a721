package ctld

import (
	"cmp"
	"slices"
	"time"

	"schedrestd/ctld/journal"
	"schedrestd/errs"
	"schedrestd/rate"
	"schedrestd/rpc/fault"
)

// Limits per user, so that no user takes all resources of the controller. Root,
// the scheduler's user and the controller's own user are exempt, because they
// could stop the controller anyway.
const (
	userShare  = 4  // one user may have 1/userShare of MaxJobs
	adminShare = 10 // 1/adminShare of MaxJobs is reserved for exempt users
)

// limits holds limits in bytes, counted as in the journal.
type limits struct {
	user, all           int64 // bytes of scripts, environments and records of jobs
	userTexts, allTexts int64 // part of these: records of jobs, which are also in memory
	rate, burst         int64 // bytes written for one user's jobs: per second, and at once
}

var defaultLimits = limits{
	user: 256 << 20, all: 1 << 30,
	userTexts: 16 << 20, allTexts: 64 << 20,
	rate: 64 << 10, burst: 64 << 20,
}

// usage counts the jobs of each user and the bytes of their records. The
// journal itself counts the bytes of all values, including scripts
// (Journal.Usage).
type usage struct {
	all   load
	users map[uint32]load
	rates map[uint32]*rate.Bucket
}

// load is a number of jobs and the bytes of their records.
type load struct {
	jobs  int   // waiting, running and shown
	texts int64 // bytes of their records in the journal
	due   int64 // bytes that will be written to the journal for these jobs later
}

func (l load) plus(m load) load  { return load{l.jobs + m.jobs, l.texts + m.texts, l.due + m.due} }
func (l load) minus(m load) load { return load{l.jobs - m.jobs, l.texts - m.texts, l.due - m.due} }

// count replaces the load of j with l. The caller holds c.mu.
func (c *Controller) count(j *job, l load) {
	uid, change := j.Job.UserID, l.minus(j.counted)
	j.counted = l
	c.usage.all = c.usage.all.plus(change)
	if c.usage.users == nil {
		c.usage.users = map[uint32]load{}
	}
	own := c.usage.users[uid].plus(change)
	if c.usage.users[uid] = own; own == (load{}) {
		delete(c.usage.users, uid)
	}
}

// kept returns the load of j when its record takes the given number of bytes in
// the journal.
func (c *Controller) kept(j *job, texts int64) load {
	l := load{jobs: 1, texts: texts}
	if c.spool != nil && !j.Job.State.Ended() {
		l.due = 2 * texts // a record for the spool when the job starts, and one when it ends
	}
	return l
}

// take counts j with load l. If a limit would be exceeded, take first forgets
// the oldest ended jobs of the user, and releases c.mu meanwhile. The caller
// holds c.mu.
func (c *Controller) take(j *job, l load) error {
	err := c.checkLimits(j, l)
	if err != nil {
		c.mu.Unlock()
		c.forgetOldest(j.Job.UserID)
		c.mu.Lock()
		err = c.checkLimits(j, l)
	}
	if err == nil {
		c.count(j, l)
	}
	return err
}

// checkLimits returns an error if j with load l would exceed a limit. The
// caller holds c.mu.
func (c *Controller) checkLimits(j *job, l load) error {
	uid, most, limits, change := j.Job.UserID, c.cfg.MaxJobs, &c.cfg.limits, l.minus(j.counted)
	own, all := c.usage.users[uid].plus(change), c.usage.all.plus(change)
	tooMany := func(format string, args ...any) error {
		return refuse(errs.TooMany, fault.MaxJobCount, format, args...)
	}
	if c.super(uid) {
		if all.jobs > most {
			return tooMany("the controller is full: it holds %d jobs", c.usage.all.jobs)
		}
		return nil
	}
	ownBytes, allStored := c.journal.Usage(uid)
	switch {
	case own.jobs > max(1, most/userShare):
		return tooMany("the controller already holds %d of your jobs, the limit for one user", c.usage.users[uid].jobs)
	case all.jobs > most-most/adminShare:
		return tooMany("the controller is full: it holds %d jobs", c.usage.all.jobs)
	case own.texts > limits.userTexts:
		return tooMany("names, comments and paths of your jobs exceed %d MiB, the limit for one user", limits.userTexts>>20)
	case all.texts > limits.allTexts:
		return tooMany("names, comments and paths of all jobs exceed the controller's limit of %d MiB", limits.allTexts>>20)
	case own.due+ownBytes > limits.user:
		return tooMany("scripts, environments and records of your jobs exceed %d MiB, the limit for one user", limits.user>>20)
	case all.due+allStored > limits.all:
		return tooMany("scripts, environments and records of all jobs exceed the controller's limit of %d MiB", limits.all>>20)
	}
	return nil
}

// slow refuses a submission, or a change of a job, by user uid if the bytes
// written for that user exceed the permitted rate. The caller holds c.mu.
func (c *Controller) slow(uid uint32, now time.Time) error {
	b := c.usage.rates[uid]
	if b == nil || c.super(uid) {
		return nil
	}
	wait := b.Delay(now, 1)
	if wait == 0 {
		return nil
	}
	return refuse(errs.TooMany, fault.Backoff, "your submissions exceed %d KiB a second; submit again in %v",
		c.cfg.limits.rate>>10, max(time.Second, wait.Round(time.Second)))
}

// charge subtracts from the allowance of user uid the bytes that are written
// for one of the user's jobs. The caller holds c.mu.
func (c *Controller) charge(uid uint32, bytes int64, now time.Time) {
	if c.super(uid) {
		return
	}
	if c.usage.rates == nil {
		c.usage.rates = map[uint32]*rate.Bucket{}
	}
	b := c.usage.rates[uid]
	if b == nil {
		b = rate.New(float64(c.cfg.limits.burst), float64(c.cfg.limits.rate), now)
		c.usage.rates[uid] = b
	}
	b.Charge(now, float64(bytes))
}

// forgetRates drops the token buckets of users for whom nothing was written
// recently. The caller holds c.mu.
func (c *Controller) forgetRates(now time.Time) {
	for uid, b := range c.usage.rates {
		if b.IsFull(now) {
			delete(c.usage.rates, uid)
		}
	}
}

// sizes returns the bytes that entries take in the journal.
func sizes(entries []journal.Entry) (bytes int64) {
	for _, e := range entries {
		bytes += e.Size()
	}
	return bytes
}

// forgetOldest forgets some of the ended jobs of user uid, the oldest first,
// even if Config.Keep has not passed since they ended. It does not affect jobs
// of other users.
func (c *Controller) forgetOldest(uid uint32) {
	list, _ := c.snapshot()
	var done []*record
	for _, r := range list {
		if r.Job.State.Ended() && r.Job.UserID == uid {
			done = append(done, r)
		}
	}
	slices.SortFunc(done, func(a, b *record) int { return cmp.Compare(a.Job.EndTime, b.Job.EndTime) })
	c.drop(done[:min(len(done), max(1, c.cfg.MaxJobs/userShare/10))]) // several at once, so that the next submissions need not forget any
}

package ctld

import (
	"cmp"
	"slices"
	"time"

	"schedrestd/bundled/ctld/journal"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/rpc/fault"
)

// adminShare is the part of MaxJobs that is reserved for root, the scheduler's user
// and the controller's own user: one in so many. They are exempt from the limits on
// each user, because they could stop the controller anyway.
const adminShare = 10

// The type limits contains limits on the bytes that jobs occupy in the journal,
// and on the rate at which these bytes are written.
type limits struct {
	userBytes, totalBytes             int64 // bytes of the jobs' scripts, environments and records
	userRecordBytes, totalRecordBytes int64 // bytes of the jobs' records alone, which are also kept in memory
	rate, burst                       int64 // bytes that may be written for one user's jobs: per second, and in one burst
}

var defaultLimits = limits{
	userBytes: int64(limit.JobSpace.Share), totalBytes: int64(limit.JobSpace.Total),
	userRecordBytes: int64(limit.JobRecords.Share), totalRecordBytes: int64(limit.JobRecords.Total),
	rate: int64(limit.JobBytes.PerSecond), burst: int64(limit.JobBytes.Burst),
}

// A usage counts each user's jobs and the bytes of the jobs' records. The
// journal itself counts the bytes of all its values, which include scripts (see
// Journal.Usage).
type usage struct {
	total load
	users map[uint32]load
}

// A load counts jobs, the bytes of their records, and the bytes reserved for
// them.
type load struct {
	jobs          int   // waiting, running and shown
	recordBytes   int64 // bytes of their records in the journal
	reservedBytes int64 // bytes that will be written to the journal for these jobs later
}

func (l load) plus(m load) load {
	return load{l.jobs + m.jobs, l.recordBytes + m.recordBytes, l.reservedBytes + m.reservedBytes}
}
func (l load) minus(m load) load {
	return load{l.jobs - m.jobs, l.recordBytes - m.recordBytes, l.reservedBytes - m.reservedBytes}
}

// setLoadLocked replaces the load of j with l.
func (c *Controller) setLoadLocked(j *job, l load) {
	uid, delta := j.Job.UserID, l.minus(j.load)
	j.load = l
	c.usage.total = c.usage.total.plus(delta)
	if c.usage.users == nil {
		c.usage.users = map[uint32]load{}
	}
	userLoad := c.usage.users[uid].plus(delta)
	if c.usage.users[uid] = userLoad; userLoad == (load{}) {
		delete(c.usage.users, uid)
	}
}

// jobLoad returns the load of job j, whose record takes recordBytes bytes in
// the journal.
func (c *Controller) jobLoad(j *job, recordBytes int64) load {
	l := load{jobs: 1, recordBytes: recordBytes}
	if c.spool != nil && !j.Job.State.Ended() {
		l.reservedBytes = 2 * recordBytes // a record for the spool when the job starts, and one when it ends
	}
	return l
}

// reserveLoadLocked sets the load of job j to l. If this would exceed a limit,
// reserveLoadLocked first forgets some of the user's oldest ended jobs. If the limit
// would still be exceeded, reserveLoadLocked returns an error. It releases c.mu
// while it forgets jobs.
func (c *Controller) reserveLoadLocked(j *job, l load) error {
	err := c.checkLimitsLocked(j, l)
	if err != nil {
		c.mu.Unlock()
		c.forgetOldest(j.Job.UserID)
		c.mu.Lock()
		err = c.checkLimitsLocked(j, l)
	}
	if err == nil {
		c.setLoadLocked(j, l)
	}
	return err
}

// checkLimitsLocked returns an error if job j with the load l would exceed a
// limit.
func (c *Controller) checkLimitsLocked(j *job, l load) error {
	uid, maxJobs, limits, delta := j.Job.UserID, c.cfg.MaxJobs, &c.cfg.limits, l.minus(j.load)
	userLoad, total := c.usage.users[uid].plus(delta), c.usage.total.plus(delta)
	tooMany := func(format string, args ...any) error {
		return refuse(errs.TooMany, fault.MaxJobCount, format, args...)
	}
	if c.super(uid) {
		if total.jobs > maxJobs {
			return tooMany("the controller is full: it holds %d jobs", c.usage.total.jobs)
		}
		return nil
	}
	userBytes, totalBytes := c.journal.Usage(uid)
	switch {
	case userLoad.jobs > limit.Jobs.Of(maxJobs).Share:
		return tooMany("the controller already holds %d of your jobs, the limit for one user", c.usage.users[uid].jobs)
	case total.jobs > maxJobs-maxJobs/adminShare:
		return tooMany("the controller is full: it holds %d jobs", c.usage.total.jobs)
	case userLoad.recordBytes > limits.userRecordBytes:
		return tooMany("names, comments and paths of your jobs exceed %d MiB, the limit for one user", limits.userRecordBytes>>20)
	case total.recordBytes > limits.totalRecordBytes:
		return tooMany("names, comments and paths of all jobs exceed the controller's limit of %d MiB",
			limits.totalRecordBytes>>20)
	case userLoad.reservedBytes+userBytes > limits.userBytes:
		return tooMany("scripts, environments and records of your jobs exceed %d MiB, the limit for one user",
			limits.userBytes>>20)
	case total.reservedBytes+totalBytes > limits.totalBytes:
		return tooMany("scripts, environments and records of all jobs exceed the controller's limit of %d MiB",
			limits.totalBytes>>20)
	}
	return nil
}

// checkRate returns an error if more bytes were recently written for user uid than
// the rate limit permits. In this case the user may not submit or change jobs.
func (c *Controller) checkRate(uid uint32, now time.Time) error {
	if c.super(uid) {
		return nil
	}
	wait := c.rates.Charge(now, uid, 0)
	if wait == 0 {
		return nil
	}
	return refuse(errs.TooMany, fault.Backoff, "your submissions exceed %d KiB a second; submit again in %v",
		c.cfg.limits.rate>>10, max(time.Second, wait.Round(time.Second)))
}

// charge counts bytes against the rate limit of user uid. The bytes are written
// for one of this user's jobs.
func (c *Controller) charge(uid uint32, bytes int64, now time.Time) {
	if !c.super(uid) {
		c.rates.Charge(now, uid, float64(bytes))
	}
}

// totalSize returns how many bytes the entries take in the journal.
func totalSize(entries []journal.Entry) (bytes int64) {
	for _, e := range entries {
		bytes += e.Size()
	}
	return bytes
}

// forgetOldest forgets some of the ended jobs of user uid, the oldest first. It
// does not wait until Config.Retention has passed. Jobs of other users are not
// affected.
func (c *Controller) forgetOldest(uid uint32) {
	list, _ := c.snapshot()
	var endedJobs []*record
	for _, r := range list {
		if r.Job.State.Ended() && r.Job.UserID == uid {
			endedJobs = append(endedJobs, r)
		}
	}
	slices.SortFunc(endedJobs, func(a, b *record) int { return cmp.Compare(a.Job.EndTime, b.Job.EndTime) })
	// Forget several jobs at once, so that the user's next submissions do not
	// have to free space again.
	n := max(1, limit.Jobs.Of(c.cfg.MaxJobs).Share/10)
	c.drop(endedJobs[:min(len(endedJobs), n)])
}

package ctld

import (
	"cmp"
	"slices"

	"schedrestd/errs"
	"schedrestd/rpc/fault"
)

// What users may have here, so that none of them takes it all. Root, the scheduler's user and the
// controller's own are not counted: they could stop the controller.
const (
	userShare  = 4         // one user has at the most one in so many of MaxJobs
	adminShare = 10        // one in so many of MaxJobs is kept for those who are not counted
	userBytes  = 256 << 20 // of scripts and environments of jobs that have not ended
	allBytes   = 1 << 30   // likewise, of all users
)

// usage is what each user has here.
type usage struct {
	all   load
	users map[uint32]load
}

// load is jobs, waiting, running and shown, and the bytes of what those that have not
// ended are to run.
type load struct {
	jobs  int
	bytes int64
}

func (u *usage) add(uid uint32, jobs int, bytes int64) {
	if u.users == nil {
		u.users = map[uint32]load{}
	}
	l := u.users[uid]
	l.jobs, l.bytes = l.jobs+jobs, l.bytes+bytes
	if u.users[uid] = l; l == (load{}) {
		delete(u.users, uid)
	}
	u.all.jobs, u.all.bytes = u.all.jobs+jobs, u.all.bytes+bytes
}

// bytes is what j counts with.
func (j *job) bytes() int64 {
	if j.Job.State.Ended() {
		return 0 // its script is dropped
	}
	return j.Size
}

// full refuses job j when there is no room for it; c.mu is held. Room may be made by
// forgetting jobs of the same user, but not when jobs is false.
func (c *Controller) full(j *job) (jobs bool, err error) {
	uid, most := j.Job.UserID, c.cfg.MaxJobs
	if c.super(uid) {
		if len(c.jobs) >= most {
			return true, refuse(errs.TooMany, fault.MaxJobCount, "the controller holds %d jobs and takes no more", len(c.jobs))
		}
		return false, nil
	}
	own := c.usage.users[uid]
	switch {
	case own.jobs >= max(1, most/userShare):
		return true, refuse(errs.TooMany, fault.MaxJobCount, "the controller holds %d jobs of yours and takes no more", own.jobs)
	case len(c.jobs) >= most-most/adminShare:
		return true, refuse(errs.TooMany, fault.MaxJobCount, "the controller holds %d jobs and takes no more", len(c.jobs))
	case own.bytes+j.bytes() > userBytes, c.usage.all.bytes+j.bytes() > allBytes:
		return false, refuse(errs.TooMany, fault.MaxJobCount, "the scripts and environments of jobs take all the room there is for them")
	}
	return false, nil
}

// makeRoom forgets the oldest jobs of uid's that have ended, before their time. Nobody else's: his
// results are not another's to drop.
func (c *Controller) makeRoom(uid uint32) {
	list, _ := c.snapshot()
	var done []*record
	for _, r := range list {
		if r.Job.State.Ended() && r.Job.UserID == uid {
			done = append(done, r)
		}
	}
	slices.SortFunc(done, func(a, b *record) int { return cmp.Compare(a.Job.EndTime, b.Job.EndTime) })
	c.drop(done[:min(len(done), max(1, c.cfg.MaxJobs/userShare/10))]) // room for some before the next time
}

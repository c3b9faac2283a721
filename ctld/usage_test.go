package ctld

import (
	"testing"

	"schedrestd/errs"
	"schedrestd/model"
)

// reserved has c take in a job of uid's without running it.
func reserved(c *Controller, uid uint32, bytes int64) (*job, error) {
	j := &job{record: &record{Size: bytes}}
	j.Job.UserID = uid
	return j, c.reserve(j)
}

func TestNoUserTakesAllTheRoom(t *testing.T) {
	const ann, bea, cem = 54321, 54322, 54323
	c, _ := controller(t, Config{MaxJobs: 10})
	fill := func(uid uint32) (n int) {
		for {
			if _, err := reserved(c, uid, 1); err != nil {
				if errs.KindOf(err) != errs.TooMany {
					t.Fatal(err)
				}
				return n
			}
			n++
		}
	}
	first, err := reserved(c, ann, 1)
	if err != nil {
		t.Fatal(err)
	}
	first.phase, first.Job.State = ended, model.JobComplete
	if n := fill(bea); n != 2 {
		t.Errorf("a user has %d of 10 jobs", n)
	}
	// Bea's next submission does not drop ann's result, ann's own does.
	if c.jobs[first.id()] == nil {
		t.Error("another's result is dropped")
	}
	if n := fill(ann); n != 2 || c.jobs[first.id()] != nil {
		t.Errorf("%d more jobs, and her own result is kept: %t", n, c.jobs[first.id()] != nil)
	}
	for uid := uint32(cem); uid < cem+10; uid++ {
		fill(uid)
	}
	if len(c.jobs) != 9 {
		t.Errorf("users have %d of 10 jobs", len(c.jobs))
	}
	if _, err := reserved(c, c.uid, 1); err != nil {
		t.Errorf("nothing is left for administrators: %v", err)
	}
}

func TestNoUserTakesTheDisk(t *testing.T) {
	c, _ := controller(t, Config{})
	const size = 8 << 20
	n := 0
	for ; n < 1000; n++ {
		if _, err := reserved(c, 54321, size); err != nil {
			break
		}
	}
	if n != userBytes/size {
		t.Errorf("one user has %d MiB", n*size>>20)
	}
	if _, err := reserved(c, 54322, size); err != nil {
		t.Errorf("another user has no room: %v", err)
	}
	if _, err := reserved(c, c.uid, size); err != nil {
		t.Errorf("an administrator has no room: %v", err)
	}
}

func TestUsageIsGivenBack(t *testing.T) {
	c, stop := controller(t, Config{})
	dir := t.TempDir()
	d := desc(dir, "true")
	d.Priority = model.Some[uint32](0)
	submit(t, c, d)
	held := c.usage.users[c.uid]
	if held.jobs != 1 || held.bytes < int64(len(d.Script)) {
		t.Errorf("%+v of a job that waits", held)
	}
	stop()
	c, _ = controller(t, Config{State: c.cfg.State})
	if got := c.usage.users[c.uid]; got != held {
		t.Errorf("%+v after a restart, %+v before", got, held)
	}
	if err := c.cancel(1); err != nil {
		t.Fatal(err)
	}
	awaitState(t, c, 1, model.JobCancelled)
	if got := c.usage.users[c.uid]; got != (load{jobs: 1}) {
		t.Errorf("%+v of a job that ended", got)
	}
	c.makeRoom(c.uid)
	if len(c.usage.users) > 0 || c.usage.all != (load{}) {
		t.Errorf("%+v of none", c.usage)
	}
}

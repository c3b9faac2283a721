package ctld

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/bundled/ctld/step"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// unavailableAccounting is an accounting daemon that is always unavailable.
type unavailableAccounting struct{}

func (unavailableAccounting) Record(context.Context, []model.Job) error {
	return errs.New(errs.Unavailable, "not there")
}

// reserveJob adds a job of user uid to c, but does not run it.
func reserveJob(c *Controller, uid uint32) (*job, error) {
	j := &job{record: &record{}}
	j.Job.UserID = uid
	return j, c.reserve(j, time.Now())
}

func TestNoUserTakesAllSlots(t *testing.T) {
	const ann, bea, cem = 54321, 54322, 54323
	c, _ := controller(t, Config{MaxJobs: 10})
	fill := func(uid uint32) (n int) {
		for {
			if _, err := reserveJob(c, uid); err != nil {
				if errs.KindOf(err) != errs.TooMany {
					t.Fatal(err)
				}
				return n
			}
			n++
		}
	}
	first, err := reserveJob(c, ann)
	if err != nil {
		t.Fatal(err)
	}
	first.phase, first.Job.State = ended, model.JobComplete
	if n := fill(bea); n != 2 {
		t.Errorf("a user has %d of 10 jobs", n)
	}
	// Bea's submissions must not remove the result of Ann's job. Ann's next
	// submissions must remove it.
	if c.jobs[first.id()] == nil {
		t.Error("another user's result is dropped")
	}
	if n := fill(ann); n != 2 || c.jobs[first.id()] != nil {
		t.Errorf("%d more jobs, and the user's own result is kept: %t", n, c.jobs[first.id()] != nil)
	}
	for uid := uint32(cem); uid < cem+10; uid++ {
		fill(uid)
	}
	if len(c.jobs) != 9 {
		t.Errorf("users have %d of 10 jobs", len(c.jobs))
	}
	if _, err := reserveJob(c, c.uid); err != nil {
		t.Errorf("no place is left for administrators: %v", err)
	}
}

// enqueueJob adds a held job of user uid to c in the same way as a submission.
// The job's comment is texts bytes long, and its script is script bytes long.
func enqueueJob(c *Controller, uid uint32, texts, script int, now time.Time) (*job, error) {
	j, spec := &job{record: &record{}}, &step.Spec{Script: step.Raw(strings.Repeat("\x01", script))}
	j.Job.UserID, j.Job.Comment = uid, strings.Repeat("\x01", texts)
	return j, c.enqueue(j, spec, now)
}

// TestNoUserTakesTheDisk checks that one user can't fill the journal, whether
// with scripts or with texts. Other users must still be able to submit jobs.
func TestNoUserTakesTheDisk(t *testing.T) {
	const ann, bea = 54321, 54322
	testLimits := limits{userBytes: 8 << 20, totalBytes: 32 << 20, userRecordBytes: 2 << 20, totalRecordBytes: 8 << 20, rate: 1 << 20, burst: 1 << 30}
	for _, tt := range []struct {
		name          string
		texts, script int
		wantErr       string
	}{
		{"scripts", 0, 256 << 10, "scripts, environments and records of your jobs exceed 8 MiB"},
		{"texts", 32 << 10, 0, "names, comments and paths of your jobs exceed 2 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := controller(t, Config{Accounting: unavailableAccounting{}, limits: testLimits})
			now := time.Now()
			for {
				if _, err := enqueueJob(c, ann, tt.texts, tt.script, now); err != nil {
					if errs.KindOf(err) != errs.TooMany || !strings.Contains(err.Error(), tt.wantErr) {
						t.Fatal(err)
					}
					break
				}
			}
			stored, all := c.journal.Usage(ann)
			size, texts := fileSize(t, c), c.usage.users[ann].recordBytes
			if stored > testLimits.userBytes || texts > testLimits.userRecordBytes ||
				stored < testLimits.userBytes*3/4 && texts < testLimits.userRecordBytes*3/4 || size > 2*all+1<<20 {
				t.Errorf("%d bytes are counted, %d of texts, and the file has %d", stored, texts, size)
			}
			if _, err := enqueueJob(c, bea, tt.texts, tt.script, now); err != nil {
				t.Errorf("no space is left for another user: %v", err)
			}
			if _, err := enqueueJob(c, c.uid, tt.texts, tt.script, now); err != nil {
				t.Errorf("no space is left for an administrator: %v", err)
			}
		})
	}
}

func fileSize(t *testing.T, c *Controller) int64 {
	t.Helper()
	c.journal.Get("") // if the file is being rewritten, waits until the rewrite has finished
	st, err := os.Stat(filepath.Join(c.cfg.StateDir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

// TestRate checks that a user whose submissions write too many bytes has to
// wait, and that other users do not have to.
func TestRate(t *testing.T) {
	const ann, bea, script = 54321, 54322, 256 << 10
	testLimits := defaultLimits
	testLimits.burst = 4 << 20
	c, _ := controller(t, Config{limits: testLimits})
	now := time.Now()
	wrote := int64(0)
	for {
		before := fileSize(t, c)
		j, err := enqueueJob(c, ann, 1000, script, now)
		if err == nil {
			wrote += max(0, fileSize(t, c)-before)
			err = cancel(c, j.id())
		}
		if e, ok := errors.AsType[*errs.Error](err); ok {
			if e.Kind != errs.TooMany || e.Number != fault.Backoff || !strings.Contains(e.Message, "exceed 64 KiB a second; submit again in ") {
				t.Fatal(err)
			}
			break
		}
	}
	if wrote > testLimits.burst+2*script {
		t.Errorf("%d bytes were written at once", wrote)
	}
	if _, err := enqueueJob(c, bea, 1000, script, now); err != nil {
		t.Errorf("another user: %v", err)
	}
	if _, err := enqueueJob(c, c.uid, 1000, script, now); err != nil {
		t.Errorf("an administrator: %v", err)
	}
	if _, err := enqueueJob(c, ann, 1000, script, now.Add(time.Minute)); err != nil {
		t.Errorf("a minute later: %v", err)
	}
}

func TestUsageIsReleased(t *testing.T) {
	c, stop := controller(t, Config{Accounting: unavailableAccounting{}})
	dir := t.TempDir()
	d := desc(dir, "true")
	d.Priority = model.Some[uint32](0)
	submit(t, c, d)
	held := c.usage.users[c.uid]
	stored, _ := c.journal.Usage(c.uid)
	if held.jobs != 1 || held.recordBytes == 0 || held.reservedBytes != 2*held.recordBytes || stored < held.recordBytes+int64(len(d.Script)) {
		t.Errorf("%+v of a job that waits, %d bytes", held, stored)
	}
	stop()
	c, _ = controller(t, Config{StateDir: c.cfg.StateDir, Accounting: unavailableAccounting{}})
	if got := c.usage.users[c.uid]; got != held {
		t.Errorf("%+v after a restart, %+v before", got, held)
	}
	if got, _ := c.journal.Usage(c.uid); got != stored {
		t.Errorf("%d bytes after a restart, %d before", got, stored)
	}
	if err := cancel(c, 1); err != nil {
		t.Fatal(err)
	}
	awaitState(t, c, 1, model.JobCancelled)
	if got := c.usage.users[c.uid]; got != (load{jobs: 1, recordBytes: c.recordSize(c.jobs[1])}) {
		t.Errorf("%+v of a job that ended", got)
	}
	c.forgetOldest(c.uid)
	if len(c.usage.users) > 0 || c.usage.total != (load{}) {
		t.Errorf("%+v of none", c.usage)
	}
}

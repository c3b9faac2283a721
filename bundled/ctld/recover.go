package ctld

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"schedrestd/bundled/ctld/journal"
	"schedrestd/bundled/ctld/step"
	"schedrestd/model"
)

// recover restores the state that an earlier controller left.
//
// The journal contains the accepted jobs. For some of them it also records how
// they ended. The state of every other job follows from two files in the job's
// home directory: the claim names the process that runs the job, and the
// outcome records how the job ended (see package step):
//
//   - There is no claim: the job was never started and is still waiting.
//   - There is a claim, and the process that it names is running: the job is
//     running.
//   - There is a claim and an outcome, and the process is not running: the job
//     has ended.
//   - There is a claim but no outcome, and the process is not running: the job
//     is lost.
func (c *Controller) recover(ctx context.Context) error {
	load := func(k string, value []byte) (owner uint32, err error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return c.loadEntry(k, value)
	}
	if err := c.journal.Each(load); err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	if err := c.recordFormat(); err != nil {
		return err
	}
	if err := step.RemoveLeftovers(filepath.Join(c.cfg.StateDir, "steps")); err != nil {
		return err
	}
	if err := c.recoverStrayHomes(); err != nil {
		return err
	}
	jobs := make([]*job, 0, len(c.jobs))
	for _, j := range c.jobs {
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, func(a, b *job) int { return cmp.Compare(a.id(), b.id()) })
	for _, j := range jobs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.resume(j); err != nil {
			return fmt.Errorf("job %d: %w", j.id(), err)
		}
	}
	c.log.Info("state loaded", "jobs", len(c.jobs), "active", len(c.activeIDs()), "next", c.nextID)
	return nil
}

// recordFormat writes the version of the format to the journal. If the journal
// contains it already, recordFormat writes nothing, so that the controller can
// start while the disk is full.
func (c *Controller) recordFormat() error {
	version := strconv.AppendInt(nil, recordFormat, 10)
	if old, err := c.journal.Get(keyFormat); err != nil || bytes.Equal(old, version) {
		return err
	}
	return c.journal.Commit(journal.Entry{Key: keyFormat, Value: version})
}

// loadEntry restores the state in one journal entry, and returns the uid of the
// entry's owner.
func (c *Controller) loadEntry(k string, value []byte) (owner uint32, err error) {
	if k == keyFormat {
		if v, err := strconv.Atoi(string(value)); err != nil || v > recordFormat {
			return 0, fmt.Errorf("journal format %.10q: this program reads formats up to %d: %w",
				value, recordFormat, journal.ErrNewer)
		}
		return 0, nil
	}
	if k == keyNext {
		n, err := strconv.ParseUint(string(value), 10, 32)
		c.nextID = max(c.nextID, uint32(n))
		return 0, err
	}
	if _, ok := parseKey(k, jobPrefix); ok {
		j := &job{record: new(record)}
		if err := json.Unmarshal(value, j.record); err != nil {
			return 0, fmt.Errorf("%s: %w", k, err)
		}
		j.number = j.record.id()
		j.home = c.home(j.number, j.Job.RestartCnt)
		c.jobs[j.id()] = j
		c.setLoadLocked(j, c.jobLoad(j, journal.Entry{Key: k, Value: value}.Size()))
		c.nextID = max(c.nextID, j.id()+1)
		return j.Job.UserID, nil
	}
	if id, ok := parseKey(k, specPrefix); ok { // the journal passes jobs before specs, so the owner is known
		if j := c.jobs[uint32(id)]; j != nil {
			return j.Job.UserID, nil
		}
		return 0, nil
	}
	var spooled struct{ UserID uint32 }
	if err := json.Unmarshal(value, &spooled); err != nil {
		// The spool sets a damaged record aside when it tries to send that
		// record to the accounting daemon. The owner of the record is unknown,
		// so its bytes count against no user.
		c.log.Warn("job record damaged", "record", k, "error", err)
		spooled.UserID = noUser
	}
	if c.spool != nil {
		c.spool.load(k)
	}
	return spooled.UserID, nil
}

// recoverStrayHomes searches for step directories that no job uses any more.
// Either the journal does not contain the step's job, or the directory belongs
// to an earlier run of a requeued job. If the step has exited,
// recoverStrayHomes removes the directory. If the step is still running,
// recoverStrayHomes keeps the directory, and makes sure that no new job gets
// the number of the step's job.
func (c *Controller) recoverStrayHomes() error {
	homes, err := os.ReadDir(filepath.Join(c.cfg.StateDir, "steps"))
	if err != nil {
		return err
	}
	for _, h := range homes {
		n, run, ok := parseHomeName(h.Name())
		if j := c.jobs[n]; !ok || j != nil && j.Job.RestartCnt == run {
			continue
		}
		home := c.home(n, run)
		claim, claimed, err := step.ReadClaim(home)
		if err == nil && claimed {
			var s *step.Step
			if s, err = step.Adopt(claim); err == nil {
				s.Close()
				c.log.Warn("running job missing from the journal", "job", n, "step", claim.Step)
				c.nextID = max(c.nextID, n+1)
				continue
			}
		}
		if err := step.RemoveHome(home); err != nil {
			return err
		}
	}
	return nil
}

// resume restores one job.
func (c *Controller) resume(j *job) error {
	home := j.home
	if j.Job.State.Ended() {
		j.phase = ended
		return step.RemoveHome(home) // the controller may have stopped after recording the end, but before removing the files
	}
	claim, claimed, err := step.ReadClaim(home)
	if errors.Is(err, step.ErrNewer) {
		return err
	}
	if err == nil && !claimed {
		c.mu.Lock()
		if j.Job.State != model.JobPending { // the record was changed while the job was being started
			c.updateLocked(j, c.startedAt, toPending)
		}
		c.queue.Add(j.id(), j.Need, j.earliestLocked(), j.Job.Priority)
		c.mu.Unlock()
		return nil
	}
	now := time.Now()
	c.mu.Lock() // goroutines of jobs that were resumed earlier already use c
	c.queue.Occupy(j.id(), j.Need)
	j.phase, j.cancelled = starting, j.Job.Run.CancelledBy.Set
	c.updateLocked(j, now, func(m *model.Job) {
		m.State = model.JobRunning
		if claimed {
			m.StartTime = model.At(claim.Started)
		}
		c.setAllocation(m)
	})
	c.mu.Unlock()
	// If the job has ended or is lost, the journal must be written. This may
	// take until there is space on the disk, so it happens in the background.
	c.tasks.Go(func() { c.adoptStep(j) })
	return nil
}

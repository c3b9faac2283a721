package conns

import (
	"time"

	"schedrestd/ipc/work"
)

const (
	reportDelay       = 40 * time.Millisecond // time after which a stage is reported
	silentReportDelay = time.Second           // the same for a client that has sent nothing yet, perhaps only because it is slow
	reportInterval    = 20 * time.Millisecond // interval at which changed stages are examined
)

// isLastingLocked reports whether c's stage has lasted so long that c may be
// closed.
func (c *Conn) isLastingLocked(now time.Time) bool {
	limit := reportDelay
	if c.stage == work.Waiting && !c.begun {
		limit = silentReportDelay
	}
	return now.Sub(c.since) >= limit
}

// setStageLocked sets the stage of c.
func (t *Table) setStageLocked(c *Conn, stage work.Stage) {
	c.stage, c.since = stage, time.Now()
	if c.inChanged || c.silent {
		return
	}
	c.inChanged = true
	t.changed = append(t.changed, c)
	t.scheduleReportLocked()
}

// scheduleReportLocked schedules reportStages.
func (t *Table) scheduleReportLocked() {
	if !t.reportScheduled {
		t.reportScheduled = true
		time.AfterFunc(reportInterval, t.reportStages)
	}
}

// reportStages reports the stages that have lasted long enough. It schedules
// its next call if other stages may still have to be reported. If the
// dispatcher does not read its messages, it gets no more of them.
func (t *Table) reportStages() {
	t.mu.Lock()
	defer t.unlock()
	t.reportScheduled = false
	if !t.outbox.sending {
		t.reportDueLocked(time.Now())
	}
	if len(t.changed) > 0 {
		t.scheduleReportLocked()
	}
}

// reportDueLocked reports the stages that have lasted long enough at the given
// time.
func (t *Table) reportDueLocked(now time.Time) {
	remaining := t.changed[:0]
	for _, c := range t.changed {
		switch {
		case !c.counted:
			c.inChanged = false
		case !c.isLastingLocked(now):
			remaining = append(remaining, c)
		default:
			c.inChanged = false
			t.reportStageLocked(c, c.stage)
		}
	}
	clear(t.changed[len(remaining):])
	t.changed = remaining
}

// reportStageLocked reports a stage to the dispatcher, unless the dispatcher
// knows it or no longer counts the connection.
func (t *Table) reportStageLocked(c *Conn, stage work.Stage) {
	if c.counted && c.reported != stage {
		c.reported = stage
		t.outbox.addLocked(&work.Progress{ID: c.id, Stage: stage})
	}
}

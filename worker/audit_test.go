package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/errs"
	"schedrestd/handlers"
	"schedrestd/ipc"
)

// TestIntentSaysForWhom: the parent hears for whom a proxy says that it asks.
func TestIntentSaysForWhom(t *testing.T) {
	if m := intent(1, 2, handlers.Change{Request: "r", Forwarded: "203.0.113.9"}); m.Forwarded != "203.0.113.9" || m.UID != ipc.NoID {
		t.Errorf("%+v", m)
	}
}

// TestChangesWait: a worker that is told to come later asks again, with another number, and reports once under that one; one that
// gets no leave makes no change.
func TestChangesWait(t *testing.T) {
	leaves := []ipc.Leave{ipc.Later, ipc.Later, ipc.Granted, ipc.Withheld}
	var c *changes
	var asked []uint64
	var told []ipc.Message
	c = newChanges(func(m ipc.Message, _ ...int) error {
		intent, ok := m.(*ipc.Intent)
		if !ok {
			told = append(told, m)
			return nil
		}
		asked = append(asked, intent.ID)
		leave := leaves[len(asked)-1]
		go c.hear(&ipc.Noted{ID: intent.ID, Leave: leave})
		return nil
	})
	ctx := context.WithValue(t.Context(), connectionKey{}, uint64(7))
	report, err := c.Intend(ctx, handlers.Change{User: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	report(handlers.Result{Status: 200, Code: "ok"})
	if len(asked) != 3 || len(told) != 1 || told[0].(*ipc.Outcome).ID != asked[2] || asked[0] == asked[2] {
		t.Errorf("asked %v, told %v", asked, told)
	}
	if _, err := c.Intend(ctx, handlers.Change{}); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("without leave: %v", err)
	}
	c.hear(&ipc.Noted{ID: 99, Leave: ipc.Granted}) // nobody waits: it is given back
	if len(told) != 2 || told[1].(*ipc.Outcome).ID != 99 {
		t.Errorf("told %v", told)
	}
}

// TestLateLeave: leave that comes in the very moment in which its time is over is used or given back, each time. An outcome
// that is owed for ever would have the parent say, when this worker ends, that the change may have been made.
func TestLateLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const times = 64
		told := 0
		var c *changes
		c = newChanges(func(m ipc.Message, _ ...int) error {
			if intent, ok := m.(*ipc.Intent); ok {
				time.Sleep(leaveLimit)
				c.hear(&ipc.Noted{ID: intent.ID, Leave: ipc.Granted})
				return nil
			}
			told++
			return nil
		})
		for range times {
			if report, err := c.Intend(t.Context(), handlers.Change{}); err == nil {
				report(handlers.Result{Status: 200, Code: "ok"})
			}
		}
		if told != times {
			t.Errorf("%d outcomes of %d changes with leave", told, times)
		}
	})
}

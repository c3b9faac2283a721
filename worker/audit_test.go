package worker

import (
	"context"
	"testing"

	"schedrestd/errs"
	"schedrestd/handlers"
	"schedrestd/ipc"
)

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

package client

import (
	"testing"

	"schedrestd/model"
)

// TestAttempted checks that JobBackfillTriedLast is set only for a pending job
// that was examined after the last run of backfill scheduling began.
func TestAttempted(t *testing.T) {
	t.Parallel()
	const both = model.JobBackfillTried | model.JobBackfillTriedLast
	for name, tt := range map[string]struct {
		job  model.Job
		last model.Time
		want uint64
	}{
		"since":          {model.Job{Flags: model.JobBackfillTried | 1, LastSchedEval: 8}, 7, both | 1},
		"at once":        {model.Job{Flags: model.JobBackfillTried, LastSchedEval: 7}, 7, both},
		"before":         {model.Job{Flags: model.JobBackfillTried, LastSchedEval: 6}, 7, model.JobBackfillTried},
		"by others":      {model.Job{LastSchedEval: 8}, 7, 0},
		"it never ran":   {model.Job{Flags: model.JobBackfillTried, LastSchedEval: 8}, 0, model.JobBackfillTried},
		"runs":           {model.Job{Flags: model.JobBackfillTried, LastSchedEval: 8, State: model.JobRunning}, 7, model.JobBackfillTried},
		"waits, flagged": {model.Job{Flags: model.JobBackfillTried, LastSchedEval: 8, State: model.JobRequeued}, 7, both},
	} {
		if markBackfillTried(&tt.job, tt.last); tt.job.Flags != tt.want {
			t.Errorf("%s: flags %x, want %x", name, tt.job.Flags, tt.want)
		}
	}
}

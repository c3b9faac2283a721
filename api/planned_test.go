package api

import (
	"testing"

	"schedrestd/model"
)

// TestPlanned checks how long jobs waited. The wait of a job ends when the job
// starts. If the job never starts, the wait ends when the job ends. Jobs that
// have neither started nor ended are still waiting.
func TestPlanned(t *testing.T) {
	const now = 1000
	for _, tt := range []struct {
		name                 string
		eligible, start, end model.Time
		want                 uint64
	}{
		{"held", 0, 0, 0, 0},
		{"will never be eligible", timeInfinite, 0, 0, 0},
		{"waits", 900, 0, 0, 100},
		{"not eligible yet", 1100, 0, 0, 0},
		{"runs", 900, 930, 0, 30},
		{"cancelled before it ran", 900, timeNotSet, 950, 50},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := model.AccountingJob{EligibleTime: tt.eligible, StartTime: tt.start, EndTime: tt.end}
			if got := plannedWait(&AccountingJobRow{AccountingJob: &j, Now: now}); got != model.Some(tt.want) {
				t.Errorf("got %+v, want %d", got, tt.want)
			}
		})
	}
}

// TestJobMemory checks the memory that a job requests. If MemPerTRES contains
// an amount per unit of a trackable resource, this amount must take precedence
// over MinMemory.
func TestJobMemory(t *testing.T) {
	for perTRES, want := range map[string]uint64{"": 100, "gres/gpu:1024": 1024, "gres:gpu:tesla:512,gres:shard:7": 512, "gres/gpu": 100} {
		if got := jobMemory(&JobRow{Job: &model.Job{MinMemory: 100, MemPerTRES: perTRES}}); got != want {
			t.Errorf("%q: got %d, want %d", perTRES, got, want)
		}
	}
}

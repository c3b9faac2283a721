package step

import (
	"testing"
	"time"
)

// TestTimeLimitChanges changes the time limit of a running job. It checks that
// the step obeys the new limit, which counts from the start of the job.
func TestTimeLimitChanges(t *testing.T) {
	for _, tt := range []struct {
		name          string
		before, after time.Duration
		script        string
		want          State
	}{
		{"lowered", time.Hour, 200 * time.Millisecond, "sleep 60", Timeout},
		{"set", 0, 200 * time.Millisecond, "sleep 60", Timeout},
		{"already over", time.Hour, time.Nanosecond, "sleep 60", Timeout},
		{"extended", 5 * time.Second, time.Hour, "sleep 6", Completed},
		{"lifted", 5 * time.Second, 0, "sleep 6", Completed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			spec := b.spec(tt.script)
			spec.TimeLimit = tt.before
			s := b.start(spec)
			if !s.Claim.Adjustable() {
				t.Fatal("the step claims that its time limit can't be changed")
			}
			if err := SetTimeLimit(spec.Home, tt.after); err != nil {
				t.Fatal(err)
			}
			if err := s.ReloadTimeLimit(); err != nil {
				t.Fatal(err)
			}
			if o := b.finish(s, spec); o.State != tt.want {
				t.Errorf("ended as %s, want %s", o.State, tt.want)
			}
		})
	}
}

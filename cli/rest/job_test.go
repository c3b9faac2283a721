package rest

import "testing"

// TestPendingCount checks how many tasks a record of an array stands for.
func TestPendingCount(t *testing.T) {
	for tasks, want := range map[string]int{"": 1, "7": 1, "0-39": 40, "0-38,45%4": 40, "1-9:2": 5, "1-3,7,9-10%1": 6, "1,3,5,...": 3} {
		j := Job{ArrayJob: Number{Set: true, Value: 12}, ArrayTasks: tasks}
		if got := j.PendingCount(); got != want {
			t.Errorf("%q: %d, want %d", tasks, got, want)
		}
	}
	if got := (&Job{ArrayJob: Number{Set: true, Value: 12}, ArrayTask: Number{Set: true, Value: 3}, ArrayTasks: "1-9"}).PendingCount(); got != 1 {
		t.Errorf("a task counts as %d", got)
	}
}

package api

import (
	"testing"

	"schedrestd/model"
)

// TestJobSelection checks which texts select a job, a task or a component. The
// number of a job may have all 32 bits.
func TestJobSelection(t *testing.T) {
	for _, tt := range []struct {
		text string
		want model.JobSelection
		ok   bool
	}{
		{"12", model.JobSelection{JobID: 12}, true},
		{"12_3", model.JobSelection{JobID: 12, ArrayTaskID: model.Some[uint32](3)}, true},
		{"12_*", model.JobSelection{JobID: 12}, true},
		{"12+1", model.JobSelection{JobID: 12, HetOffset: model.Some[uint32](1)}, true},
		{"2147483648", model.JobSelection{JobID: 1 << 31}, true},
		{"4026541841_7", model.JobSelection{JobID: 4026541841, ArrayTaskID: model.Some[uint32](7)}, true},
		{"4294967293", model.JobSelection{JobID: 1<<32 - 3}, true},
		{text: "4294967294"}, {text: "4294967295"}, {text: "4294967296"}, {text: "0"}, {text: "-1"}, {text: ""}, {text: "12_"}, {text: "12+*"}, {text: "12_2147483648"},
	} {
		if got, err := jobSelection(tt.text); (err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("%q: %+v, %v", tt.text, got, err)
		}
	}
}

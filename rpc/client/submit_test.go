package client

import (
	"testing"

	"schedrestd/model"
)

// TestWithDefaults checks that withDefaults does not change fields that are
// set, and that it sets flags for the others, whose values the controller
// chooses.
func TestWithDefaults(t *testing.T) {
	t.Parallel()
	bare := withDefaults(model.JobDesc{Flags: 1})
	if want := 1 | defaultAccount | defaultPartition | defaultQOS | defaultWCKey; bare.Flags != want {
		t.Errorf("flags %#x, want %#x", bare.Flags, want)
	}
	if zero := model.Some[uint16](0); bare.MemUpdateDelay != zero || bare.MemUpdateMargin != zero {
		t.Errorf("memory is changed after %v by %v", bare.MemUpdateDelay, bare.MemUpdateMargin)
	}
	full := model.JobDesc{Account: "a", Partition: "p", QOS: "q", WCKey: "w", MemUpdateDelay: model.Some[uint16](3), MemUpdateMargin: model.Some[uint16](4)}
	got := withDefaults(full)
	if got.Flags != 0 || got.MemUpdateDelay != full.MemUpdateDelay || got.MemUpdateMargin != full.MemUpdateMargin {
		t.Errorf("changed to %+v", got)
	}
}

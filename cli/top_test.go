package cli

import (
	"testing"

	"schedrestd/cli/rest"
)

// TestLoad checks how many CPUs of a node jobs can use, and how it is counted.
func TestLoad(t *testing.T) {
	for _, tt := range []struct {
		node   string
		usable int64
		idle   int
	}{
		{`{"state": ["IDLE"], "cpus": 8}`, 8, 1}, // slurmrestd may not know the CPUs that jobs may use
		{`{"state": ["IDLE"], "cpus": 64, "effective_cpus": 60}`, 60, 1},
		{`{"state": ["MIXED", "DRAIN"], "cpus": 64, "effective_cpus": 60, "alloc_cpus": 2}`, 2, 0},
		{`{"state": ["IDLE", "CLOUD", "POWERED_DOWN"], "cpus": 8}`, 8, 1},
		{`{"state": ["IDLE", "DRAIN", "POWERED_DOWN"], "cpus": 8}`, 0, 0},
		{`{"state": ["DOWN", "POWERED_DOWN"], "cpus": 8}`, 0, 0},
		{`{"state": ["IDLE", "POWERING_DOWN"], "cpus": 8}`, 0, 1},
	} {
		var l load
		l.add(decode[rest.Node](t, "["+tt.node+"]")[0])
		if usable := l.cpus - l.lostCPUs; usable != tt.usable || l.idle != tt.idle {
			t.Errorf("%s: %d CPUs, %d idle", tt.node, usable, l.idle)
		}
	}
}

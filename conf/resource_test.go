package conf

import (
	"slices"
	"strings"
	"testing"
)

// TestResourceLimits checks which limits of jobs a submission can't change.
func TestResourceLimits(t *testing.T) {
	for _, tt := range []struct {
		lines, want, problem string
	}{
		{lines: ""},
		{lines: "PropagateResourceLimits=ALL"},
		{lines: "PropagateResourceLimits=NONE", want: "CPU FSIZE DATA STACK CORE RSS NPROC NOFILE MEMLOCK AS"},
		{lines: `PropagateResourceLimits="CORE, RLIMIT_STACK"`, want: "CPU FSIZE DATA RSS NPROC NOFILE MEMLOCK AS"},
		{lines: "PropagateResourceLimitsExcept=MEMLOCK,CPU", want: "CPU MEMLOCK"},
		{lines: "PropagateResourceLimitsExcept=NONE"},
		{lines: "PropagateResourceLimitsExcept=ALL", want: "CPU FSIZE DATA STACK CORE RSS NPROC NOFILE MEMLOCK AS"},
		{lines: "PropagateResourceLimits=NONE\nPropagateResourceLimitsExcept=AS", want: "AS"},
		{lines: "PropagateResourceLimits=core", problem: "want ALL, NONE, or a list of CPU, FSIZE"},
	} {
		t.Run(tt.lines, func(t *testing.T) {
			c, _, err := readCluster("/c", files{"/c": minimal + tt.lines}.open)
			switch {
			case tt.problem != "":
				if err == nil || !strings.Contains(err.Error(), tt.problem) {
					t.Errorf("%v, want %q", err, tt.problem)
				}
			case err != nil:
				t.Error(err)
			case !slices.Equal(c.KeptLimits, strings.Fields(tt.want)):
				t.Errorf("%q, want %q", c.KeptLimits, tt.want)
			}
		})
	}
}

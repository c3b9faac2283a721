package api

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// TestDerivedEnvironment checks the variables that slurmd and srun read instead of
// fields of the message, and the combinations of fields that slurmrestd refuses.
func TestDerivedEnvironment(t *testing.T) {
	tests := []struct {
		name, body string
		want       []string
		field      string // of the error; "" for none
	}{
		{name: "none", body: `{"environment": ["A=1"]}`, want: []string{"A=1"}},
		{name: "a limit", body: `{"rlimits": {"stack": 4096}, "environment": ["A=1"]}`, want: []string{"A=1", "SLURM_RLIMIT_STACK=4096"}},
		{name: "an infinite limit", body: `{"rlimits": {"stack": {"set": true, "infinite": true}}}`, want: []string{"SLURM_RLIMIT_STACK=18446744073709551615"}},
		{name: "a limit that is not set", body: `{"environment": ["A=1"], "rlimits": {"stack": {"set": false}}}`, want: []string{"A=1"}},
		{name: "a limit that the environment sets, too", body: `{"environment": ["SLURM_RLIMIT_CPU=1", "A=1"], "rlimits": {"cpu": 2}}`, want: []string{"SLURM_RLIMIT_CPU=2", "A=1"}},
		{name: "a distribution", body: `{"distribution": "Cyclic:*"}`, want: []string{"SLURM_DISTRIBUTION=cyclic:cyclic"}},
		{name: "default cores", body: `{"distribution": "*:block:*"}`, want: []string{"SLURM_DISTRIBUTION=block:block:block"}},
		{name: "packed", body: `{"distribution": "block,Pack"}`, want: []string{"SLURM_DISTRIBUTION=block,pack"}},
		{name: "packed only", body: `{"distribution": "NoPack"}`, want: []string{"SLURM_DISTRIBUTION=nopack"}},
		{name: "a plane", body: `{"distribution": "plane=3", "environment": ["SLURM_DISTRIBUTION=block"]}`, want: []string{"SLURM_DISTRIBUTION=plane", "SLURM_DIST_PLANESIZE=3"}},
		{name: "only its size", body: `{"distribution_plane_size": 3}`, want: []string{"SLURM_DISTRIBUTION=plane", "SLURM_DIST_PLANESIZE=3"}},
		{name: "nodes in order", body: `{"distribution": "hostfile", "required_nodes": ["b", "a"]}`, want: []string{"SLURM_DISTRIBUTION=arbitrary", "SLURM_ARBITRARY_NODELIST=b,a"}},
		{name: "an order without nodes", body: `{"distribution": "arbitrary"}`, field: "distribution"},
		{name: "a plane without a size", body: `{"distribution": "plane"}`, field: "distribution"},
		{name: "a size without a plane", body: `{"distribution": "block", "distribution_plane_size": 3}`, field: "distribution_plane_size"},
		{name: "two sizes", body: `{"distribution": "plane=2", "distribution_plane_size": 3}`, field: "parse"},
		{name: "a plane of sockets", body: `{"distribution": "plane:cyclic"}`, field: "parse"},
		{name: "empty texts", body: `{"argv": ["a", "", "b"], "environment": ["A="]}`, want: []string{"A="}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			view := schema.View{Version: V45}
			doc, err := schema.ReadJSON(tt.body, schema.DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			var r schema.Report
			var d model.JobDesc
			field := ""
			if !JobDesc.Parser(view)(&r, doc, &d) {
				field = "parse"
			} else if field, err = deriveEnvironment(&d); err != nil && strings.TrimSpace(err.Error()) == "" {
				t.Error("the error has no text")
			}
			if field != tt.field {
				t.Fatalf("error about %q (%v), want %q", field, err, tt.field)
			}
			if tt.field == "" {
				if d := cmp.Diff(tt.want, d.Environment); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

// TestStepList checks the form of arrays whose tasks have equal gaps.
func TestStepList(t *testing.T) {
	for digits, want := range map[string]string{
		"0x155555": "0-20:2", "0x1555555555555": "0-48:2", "0x7fffff": "0-22", "0x15": "0,2,4", "0x155557": "0-2,4,6,8,10,12,14,16,18,20", "0x8421": "0,5,10,15", "0x2108421": "0-25:5",
	} {
		j := JobRow{Job: &model.Job{ArrayTasks: digits}}
		if got := arrayTasks(&j); got != want {
			t.Errorf("%s: %q, want %q", digits, got, want)
		}
	}
}

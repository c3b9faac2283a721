package scope

import "testing"

// TestParse checks texts of scopes.
func TestParse(t *testing.T) {
	for text, want := range map[string]Set{
		"compute.read": ComputeRead, "compute.read+slurmdb.read": ComputeRead | SlurmdbRead, "cluster.admin": ClusterAdmin, All.String(): All,
		"": 0, "read": 0, "compute.read+": 0, "Compute.Read": 0, "compute.read,slurmdb.read": 0, "compute.read compute.create": 0,
	} {
		if got, err := Parse(text); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

package api

import "testing"

// TestParseScopes checks texts of scopes.
func TestParseScopes(t *testing.T) {
	for text, want := range map[string]Scopes{
		"compute.read": ComputeRead, "compute.read+slurmdb.read": ComputeRead | SlurmdbRead, "cluster.admin": ClusterAdmin, AllScopes.String(): AllScopes,
		"": 0, "read": 0, "compute.read+": 0, "Compute.Read": 0, "compute.read,slurmdb.read": 0, "compute.read compute.create": 0,
	} {
		if got, err := ParseScopes(text); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

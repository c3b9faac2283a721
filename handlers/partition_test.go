package handlers

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/model"
)

// TestHiddenPartitions checks that a list omits hidden partitions, as
// slurmrestd does. The client must be able to request a list that includes
// them. A client can always request a hidden partition by name.
func TestHiddenPartitions(t *testing.T) {
	for _, tt := range []struct {
		path string
		want model.Query
	}{
		{"/sched/v0.0.43/partitions", model.Query{}},
		{"/sched/v0.0.43/partitions?flags=ALL&update_time=7", model.Query{Since: 7, Flags: model.ShowAll}},
		{"/sched/v0.0.43/partition/long", model.Query{Flags: model.ShowAll}},
		{"/sched/v0.0.43/partition/long?flags=local&update_time=7", model.Query{Since: 7}},
	} {
		f := demo()
		if w := serve(t, config(f), request(http.MethodGet, tt.path, "")); w.Code != http.StatusOK {
			t.Errorf("%s: status %d", tt.path, w.Code)
		}
		if d := cmp.Diff([]model.Query{tt.want}, append(f.queries, f.partitionQueries...)); d != "" {
			t.Errorf("%s: %s", tt.path, d)
		}
	}
}

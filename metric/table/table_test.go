package table

import (
	"testing"

	"schedrestd/metric"
)

// TestCells: each combination of labels has cells of its own, and all fit into a message.
func TestCells(t *testing.T) {
	table := New()
	used := make([]string, table.Cells)
	for _, f := range table.Families {
		f.Each(func(first, cells int, values []string) {
			for i := first; i < first+cells; i++ {
				if used[i] != "" {
					t.Fatalf("cell %d of %s %q is %s's", i, f.Name, values, used[i])
				}
				used[i] = f.Name
			}
			if len(values) != len(f.Names()) {
				t.Fatalf("%s has the labels %q and the values %q", f.Name, f.Names(), values)
			}
		})
	}
	for i, name := range used {
		if name == "" {
			t.Fatalf("cell %d has no family", i)
		}
	}
	t.Logf("%d families, %d cells, %d of workers", len(table.Families), table.Cells, table.Cells-metric.FromWorkers)
}

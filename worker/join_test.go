package worker

import (
	"testing"

	"schedrestd/api/schema"
	"schedrestd/ipc"
	"schedrestd/plugin"
)

// TestSameWords: the book, the plugins and the tables each have their own words for what Join passes
// from one to the other by number.
func TestSameWords(t *testing.T) {
	for _, tt := range []struct {
		name string
		a, b uint8
	}{
		{"compact", uint8(ipc.Compact), uint8(schema.Compact)},
		{"pretty", uint8(ipc.Pretty), uint8(schema.Pretty)},
		{"no_tag", uint8(ipc.NoTag), uint8(schema.NoTag)},
		{"controller", uint8(ipc.ContentController), uint8(plugin.Controller)},
		{"accounting", uint8(ipc.ContentAccounting), uint8(plugin.Accounting)},
	} {
		if tt.a != tt.b {
			t.Errorf("%s: %d and %d", tt.name, tt.a, tt.b)
		}
	}
}

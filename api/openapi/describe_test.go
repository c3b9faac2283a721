package openapi

import (
	"testing"

	"schedrestd/api/schema"
)

// TestDescribe checks the place of the unit in a description.
func TestDescribe(t *testing.T) {
	for want, p := range map[string]schema.Property{
		"Memory, in MiB":                 {Doc: "Memory", Unit: "MiB"},
		"Memory, in MiB; 0 for no limit": {Doc: "Memory; 0 for no limit", Unit: "MiB"},
		"Number of jobs; 0 for no limit": {Doc: "Number of jobs; 0 for no limit", Unit: schema.CountUnit},
		"Name of the job":                {Doc: "Name of the job"},
		"Ignored: set by the daemon":     {Doc: "Ignored: set by the daemon", Unit: "s", Ignored: true},
	} {
		if got := describe(p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

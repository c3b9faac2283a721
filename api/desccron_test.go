package api

import (
	"testing"

	"schedrestd/model"
)

// TestCronSteps checks that a cron entry with an invalid step or range is
// refused. A step must fit into 32 bits, because adding a larger step to a
// value could overflow.
func TestCronSteps(t *testing.T) {
	for minutes, ok := range map[string]bool{
		"*/5": true, "1-5/2": true, "1-5/4294967295": true,
		"1-5/0": false, "1-5/": false, "1-5/-1": false, "1-5/9223372036854775807": false, "1-5-7": false, "5-1": false, "-1": false, "60": false,
	} {
		var d model.JobDesc
		if err := setCron(&d, cron{specification: minutes + " * * * *"}); (err == nil) != ok {
			t.Errorf("%s: %v", minutes, err)
		}
	}
}

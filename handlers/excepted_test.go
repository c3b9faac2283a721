package handlers

import (
	"encoding/json"
	"strings"
	"testing"
)

// excepted lists the differences between our answers and captured answers of
// slurmrestd, each with the reason. The function change adapts a captured
// answer to ours, and reports whether it had to change anything.
var excepted = []struct {
	suite, path, reason string
	change              func(want map[string]any) bool
}{
	{"forky", "/shares", "26.05 sends an infinite fairshare/level as a number that is set, with a warning that it is no number; 24.11 and we as infinite", func(want map[string]any) bool {
		want["warnings"] = []any{}
		return infiniteLevels(want["shares"])
	}},
	{"forky", "/jobs", errorsGoWithOutput, outputOfErrors},
	{"forky", "/job/1", errorsGoWithOutput, outputOfErrors},
}

const errorsGoWithOutput = "26.05 says nothing of where errors go when they go where output goes; 24.11 and we say it"

func outputOfErrors(want map[string]any) (changed bool) {
	jobs, _ := want["jobs"].([]any)
	for _, v := range jobs {
		job, _ := v.(map[string]any)
		for out, err := range map[string]string{"standard_output": "standard_error", "stdout_expanded": "stderr_expanded"} {
			// From v0.0.43 on, slurmrestd sends a value in the field
			// standard_error only if the job itself has set one. The jobs in
			// this test have not.
			if _, present := job["stderr_expanded"]; job[err] == "" && job[out] != "" && !(present && err == "standard_error") {
				job[err], changed = job[out], true
			}
		}
	}
	return changed
}

// except applies the exceptions to want. If one of them has no effect any more,
// the test fails.
func except(t *testing.T, suite, path string, want map[string]any) {
	t.Helper()
	for _, e := range excepted {
		if e.suite == suite && strings.HasSuffix(path, e.path) && !e.change(want) {
			t.Errorf("no longer needed: %s", e.reason)
		}
	}
}

func infiniteLevels(of any) (changed bool) {
	switch of := of.(type) {
	case []any:
		for _, child := range of {
			changed = infiniteLevels(child) || changed
		}
	case map[string]any:
		if of["number"] == json.Number("1.8446744073709552e+19") && of["set"] == true {
			of["set"], of["infinite"], of["number"] = false, true, json.Number("0.0")
			return true
		}
		for _, child := range of {
			changed = infiniteLevels(child) || changed
		}
	}
	return changed
}

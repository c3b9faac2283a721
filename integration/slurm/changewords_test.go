package slurm

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/integration/slurm/variant"
)

// TestTargets checks the table of operations without Slurm: every operation
// with a body or a condition is in it, and no word of the API contains one of
// the words that stand for the objects of a trial.
func TestTargets(t *testing.T) {
	covered := map[string]bool{}
	for _, list := range [][]target{targets, deleteTargets} {
		for i := range list {
			covered[list[i].operation()] = true
			if len(endpointsOf(&list[i])) == 0 {
				t.Errorf("there is no operation %s", list[i].operation())
			}
		}
	}
	for _, e := range api.Endpoints {
		operation := e.Method + " /" + e.Segment(schema.Slurm) + "/" + e.Path
		if reason := notCompared[operation]; e.Changing() && e.Method != "GET" && covered[operation] == (reason != "") {
			t.Errorf("%s: covered %v, reason why it is not: %q", operation, covered[operation], reason)
		}
		if e.Request == nil {
			continue
		}
		for v := api.V40; v <= api.V45; v++ {
			if !e.In(v) {
				continue
			}
			for _, c := range variant.Cases(e.Request.Shape(schema.View{Version: v, Spelling: schema.Slurm}), nil) {
				if regexp.MustCompile(`NAME|OWNJOB|OWNNODE`).MatchString(c.Value) {
					t.Fatalf("%s: %v", operation, c)
				}
			}
		}
	}
}

// notCompared are the operations that TestChangesByForm does not request, with
// the reasons.
var notCompared = map[string]string{
	"POST /slurm/job/allocate":               "slurmrestd waits without a limit; the fields are those of job/submit",
	"POST /slurm/tokens/":                    "slurmrestd has no gateway tokens",
	"DELETE /slurm/tokens/":                  "slurmrestd has no gateway tokens",
	"DELETE /slurm/token/{token_id}":         "slurmrestd has no gateway tokens",
	"POST /slurm/jobs/requeue":               "its fields are the numbers of jobs and flags, which TestOperations and the demo's tests cover",
	"POST /slurmdb/config":                   "slurmrestd stores nothing but clusters; the fields are those of the other operations",
	"POST /slurmdb/job/{job_id}":             "TestAccountChanges compares each of its fields",
	"POST /slurmdb/jobs/":                    "TestAccountChanges compares it",
	"DELETE /slurmdb/cluster/{cluster_name}": "TestAccountChanges compares it",
}

// TestChangeRows checks which rows of a table permit a difference.
func TestChangeRows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	must(t, os.WriteFile(file, []byte("| releases | versions | operation | field | form | difference | why |\n| --- | --- | --- | --- | --- | --- | --- |\n"+
		"| 24.11 | v0.0.40, v0.0.41 | `POST /slurmdb/qos/; POST /slurm/**` | `qos[].*` except `qos[].flags` | `null; word *` | `only theirs accepts*; shows * qos.flags[]` | a reason |\n"), 0o600))
	rows := readChangeRows(t, file)
	one := func(field, form string) []variant.Case { return []variant.Case{{Field: field, Form: form}} }
	for _, tt := range []struct {
		name, release, version, operation string
		cases                             []variant.Case
		difference                        string
		want                              bool
	}{
		{"as in the row", "24.11", "v0.0.40", "POST /slurmdb/qos/", one("qos[].name", "null"), "only theirs accepts", true},
		{"the second operation", "24.11", "v0.0.41", "POST /slurm/job/submit", one("qos[].name", "word UP"), "only theirs accepts, without effect", true},
		{"a field that is shown", "24.11", "v0.0.41", "POST /slurm/job/submit", one("qos[].name", "word UP"), "shows theirs qos.flags[]", true},
		{"another release", "26.05", "v0.0.41", "POST /slurmdb/qos/", one("qos[].name", "null"), "only theirs accepts", false},
		{"another version", "24.11", "v0.0.42", "POST /slurmdb/qos/", one("qos[].name", "null"), "only theirs accepts", false},
		{"another operation", "24.11", "v0.0.40", "POST /slurmdb/users/", one("qos[].name", "null"), "only theirs accepts", false},
		{"another form", "24.11", "v0.0.40", "POST /slurmdb/qos/", one("qos[].name", "number"), "only theirs accepts", false},
		{"another difference", "24.11", "v0.0.40", "POST /slurmdb/qos/", one("qos[].name", "null"), "only ours accepts", false},
		{"a field below", "24.11", "v0.0.40", "POST /slurmdb/qos/", one("qos[].limits.factor", "null"), "only theirs accepts", false},
		{"the exception", "24.11", "v0.0.40", "POST /slurmdb/qos/", one("qos[].flags", "null"), "only theirs accepts", false},
		{"with another field", "24.11", "v0.0.40", "POST /slurmdb/qos/", append(one("qos[].id.x", "number"), one("qos[].name", "null")...), "only theirs accepts", true},
		{"with the exception", "24.11", "v0.0.40", "POST /slurmdb/qos/", append(one("qos[].flags", "number"), one("qos[].name", "null")...), "only theirs accepts", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := rows.find(tt.release, tt.version, tt.operation, tt.cases, tt.difference) != nil; got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// TestPermitsAnything checks which cells of a row match everything.
func TestPermitsAnything(t *testing.T) {
	for cell, want := range map[string]bool{"`**`": true, "`*`": true, "`null; **`": true, "`qos[].**`": false, "`wrong type, *`": false, "`null`": false} {
		if got := permitsAnything(cell); got != want {
			t.Errorf("%s: %v", cell, got)
		}
	}
}

func TestSameTimes(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"2026-11-27T00:00:10", "2026-11-27T00:00:50", true},
		{"2026-11-27T00:00:10", "2026-11-27T00:10:50", false},
		{"reason [root@2026-11-27T00:00:10]", "reason [root@2026-11-27T00:00:11]", true},
		{"reason [root@2026-11-27T00:00:10]", "other [root@2026-11-27T00:00:10]", false},
		{"1795740853", "1795740854", true},
		{"1795740853", "1795750854", false},
		{"1795740853", "0", false},
		{"12", "13", false},
	} {
		if got := sameTimes(tt.a, tt.b); got != tt.want {
			t.Errorf("%s and %s: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

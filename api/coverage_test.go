package api

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api/schema"
)

// documentedField is a row of testdata/schemas.tsv.
type documentedField struct{ field, typ, required, deprecated string }

// documents maps a version and a schema to their rows of testdata/schemas.tsv.
type documents map[[2]string][]documentedField

func readDocuments(t *testing.T) documents {
	docs := documents{}
	for _, c := range rows(t, "schemas.tsv") {
		docs[[2]string{c[0], c[1]}] = append(docs[[2]string{c[0], c[1]}], documentedField{c[2], c[3], c[4], c[5]})
	}
	return docs
}

// flatten adds all fields of a schema to the map, with their paths as keys and
// their types as values. It replaces references to named schemas with the
// contents of these schemas. This makes the versions comparable: v0.0.41
// defines almost everything in place, while the others name their schemas.
func (d documents) flatten(version, name, path string, into map[string]string) {
	for _, row := range d[[2]string{version, name}] {
		if row.field == "[]" {
			d.describe(version, name+"[]", row, path+"[]", into)
			continue
		}
		d.describe(version, name+"."+row.field, row, path+"."+row.field, into)
	}
}

var (
	arrayOf = regexp.MustCompile(`^array<(.*)>$`)
	enumOf  = regexp.MustCompile(`^string\((.*)\)$`)
)

func (d documents) describe(version, inline string, row documentedField, path string, into map[string]string) {
	marks := strings.TrimRight(" "+row.required+" "+row.deprecated, " ")
	switch m := arrayOf.FindStringSubmatch(row.typ); {
	case m != nil:
		into[path] = "array" + marks
		d.describe(version, inline+"[]", documentedField{typ: m[1]}, path+"[]", into)
	case strings.HasPrefix(row.typ, "@"):
		name := row.typ[1:]
		rows := d[[2]string{version, name}]
		if len(rows) == 1 && rows[0].field == "[]" {
			into[path] = "array" + marks
			d.describe(version, name+"[]", rows[0], path+"[]", into)
			return
		}
		into[path] = "object" + marks
		d.flatten(version, name, path, into)
	case row.typ == "object":
		into[path] = "object" + marks
		d.flatten(version, inline, path, into)
	case row.typ == "?": // its contents are not described
	default:
		into[path] = enumOf.ReplaceAllString(row.typ, "string: $1") + marks
	}
}

// flattenShape adds the fields of a Shape to the map in the same form as
// flatten.
func flattenShape(s *schema.Shape, marks, path string, into map[string]string) {
	switch {
	case s.Kind == "object":
		into[path] = "object" + marks
		for _, p := range s.Fields {
			if p.Undocumented {
				into[path+"."+p.Name] = "ours"
				continue
			}
			marks := ""
			if p.Required {
				marks += " required"
			}
			if p.Deprecated {
				marks += " deprecated"
				if !p.Required {
					marks = "  deprecated" // two blanks, because the column "required" in testdata is empty
				}
			}
			flattenShape(p.Shape, marks, path+"."+p.Name, into)
		}
	case s.Kind == "array":
		into[path] = "array" + marks
		if s.Items != nil {
			flattenShape(s.Items, "", path+"[]", into)
		}
	case s.Enum != nil:
		into[path] = "string: " + strings.Join(s.Enum, "|") + marks
	case s.Format != "":
		into[path] = s.Kind + ":" + s.Format + marks
	default:
		into[path] = s.Kind + marks
	}
}

// extraFields lists the fields that slurmrestd's documents lack, each with the
// reason. The list should stay short.
var extraFields = map[string]string{
	"errors[].code":                   "stable word for programs",
	"errors[].retryable":              "whether trying again can help",
	"meta.continue":                   "token for the next page",
	"jobs":                            "the job of a submission that waits",
	"estimate":                        "the answer to a dry run",
	"jobs[].explanation":              "the answer to the parameter explain",
	"pings":                           "the specification wants the accounting daemon's pings in diag",
	"statistics.rollups[].last_run":   "v0.0.40 sends this field in addition to the documented one",
	"statistics.rollups[].last_cycle": "v0.0.40 sends this field in addition to the documented ones",

	// slurmrestd always sends these fields, but its documents lack them.
	"jobs[].steps[].tres.requested.max[].task": "the task that used the amount",
	"jobs[].steps[].tres.requested.max[].node": "the task that used the amount",
	"jobs[].steps[].tres.requested.min[].task": "the task that used the amount",
	"jobs[].steps[].tres.requested.min[].node": "the task that used the amount",
	"jobs[].steps[].tres.consumed.max[].task":  "the task that used the amount",
	"jobs[].steps[].tres.consumed.max[].node":  "the task that used the amount",
	"jobs[].steps[].tres.consumed.min[].task":  "the task that used the amount",
	"jobs[].steps[].tres.consumed.min[].node":  "the task that used the amount",
}

// undocumented has the names of bodies that slurmrestd sends but does not
// document.
var undocumented = map[string]bool{"openapi_job_state_resp": true}

// body is the body of a request or of an answer, with the first version in
// which slurmrestd has it.
type body struct {
	Table
	since schema.Version
}

// bodies returns the documented bodies of all endpoints, by name.
func bodies() map[string]body {
	byName := map[string]body{}
	for _, e := range Endpoints {
		for _, d := range []Table{e.Request, e.Answer} {
			if d == nil {
				continue
			}
			name := d.Shape(schema.View{Version: V43}).Name
			if undocumented[name] {
				continue
			}
			since := max(e.Since, e.SlurmSince)
			if prev, known := byName[name]; known {
				since = min(since, prev.since)
			}
			byName[name] = body{d, since}
		}
	}
	return byName
}

// TestCoverage checks that each body, in every version, has all the fields in
// slurmrestd's documents, with the same types. Any other field must be in
// extraFields.
func TestCoverage(t *testing.T) {
	docs := readDocuments(t)
	found := map[string]bool{}
	for name, b := range bodies() {
		for _, v := range Versions {
			if v < b.since {
				continue // this project's own endpoint
			}
			t.Run(name+"/"+v.String(), func(t *testing.T) {
				want, got := map[string]string{}, map[string]string{}
				docs.flatten(v.String(), v.String()+"_"+name, "", want)
				flattenShape(b.Shape(schema.View{Version: v, Spelling: schema.Slurm}), "", "", got)
				delete(got, "") // the body itself
				if len(want) < 3 {
					t.Fatalf("testdata has %d fields of it", len(want))
				}
				for path := range got {
					if _, known := extraFields[path[1:]]; known && got[path] == "ours" {
						found[path[1:]] = true
						delete(got, path)
					}
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("documented (-), declared (+):\n%s", d)
				}
			})
		}
	}
	for path := range extraFields {
		if !found[path] {
			t.Errorf("%s is in extraFields, but no body has it", path)
		}
	}
}

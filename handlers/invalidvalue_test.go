package handlers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
)

// TestInvalidValues sends invalid values in each field for a number or a time. The
// answer must name this field and no other, both in errors and in warnings.
func TestInvalidValues(t *testing.T) {
	values := []string{`"gibberish"`, `""`, `-5`, `1.5`, `1e30`, `4294967295`, `"1970-01-01T00:00:00"`, `true`, `[]`, `{"set": true}`,
		`{"set": true, "number": "x"}`, `{"set": true, "number": -5}`, `{"infinite": "x"}`, `{"set": true, "infinite": true}`}
	sent, refused := 0, map[string]bool{}
	for spelling, segment := range []string{schema.Sched: "sched", schema.Slurm: "slurm"} {
		for _, v := range []schema.Version{api.V40, api.V46} {
			if spelling == int(schema.Sched) && v == api.V40 {
				continue // both spellings have the same tables
			}
			view := schema.View{Version: v, Spelling: schema.Spelling(spelling)}
			for _, form := range []struct {
				path, body, at string
				shape          *schema.Shape
			}{
				{"job/submit", `{"script": "#!/bin/sh", "job": {%s}}`, "#/job", api.JobDesc.Shape(view)},
				{"job/submit", `{"script": "#!/bin/sh", "jobs": [{%s}]}`, "#/jobs/0", api.JobDesc.Shape(view)},
				{"job/12", `{"comment": "c", %s}`, "#", api.JobUpdate.Shape(view)},
			} {
				for _, field := range numbersIn(form.shape, nil) {
					for _, value := range values {
						body := value
						for _, name := range slices.Backward(field) {
							body = fmt.Sprintf("%q: %s", name, body)
							if name != field[0] {
								body = "{" + body + "}"
							}
						}
						sent++
						f := demo()
						f.taskResults = nil
						w := serve(t, config(f), request(http.MethodPost, fmt.Sprintf("/%s/%s/%s", segment, v, form.path), fmt.Sprintf(form.body, body)))
						type note struct{ Source, Description string }
						var answer struct{ Errors, Warnings []note }
						if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
							t.Fatal(err)
						}
						source := form.at + "/" + strings.Join(field, "/")
						for _, n := range slices.Concat(answer.Errors, answer.Warnings) {
							// An object that lacks a required field may be named itself.
							ok := n.Source == source || strings.HasPrefix(n.Source, source+"/") || n.Source == form.at+"/"+field[0]
							if !ok {
								t.Errorf("%s %s: {%s}: a note about %s, want %s: %s", v, form.path, body, n.Source, source, n.Description)
							}
						}
						if len(answer.Errors) > 0 {
							refused[strings.Join(field, ".")] = true
						}
						if w.Code != http.StatusOK && len(answer.Errors) == 0 {
							t.Errorf("%s %s: {%s}: status %d without an error", v, form.path, body, w.Code)
						}
					}
				}
			}
		}
	}
	t.Logf("%d requests, %d fields with a refused value", sent, len(refused))
	for _, field := range []string{"deadline", "begin_time", "end_time", "time_limit", "tasks", "rlimits.cpu", "crontab.line.start"} {
		if !refused[field] {
			t.Errorf("no value of %s was refused", field)
		}
	}
}

// numbersIn returns the paths of the fields of an object that contain a number or
// a time.
func numbersIn(shape *schema.Shape, at []string) (list [][]string) {
	for _, p := range shape.Fields {
		path := append(at[:len(at):len(at)], p.Name)
		switch s := p.Shape; {
		case p.Ignored:
		case s.Kind == "integer", s.Kind == "number", strings.Contains(s.Name, "_no_val"), p.Unit == api.TimeText:
			list = append(list, path)
		case s.Kind == "object":
			list = append(list, numbersIn(s, path)...)
		}
	}
	return list
}

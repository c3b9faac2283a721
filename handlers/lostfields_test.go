package handlers

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"schedrestd/api/schema"
)

// changeBodies contains a body for each operation that changes a record of the
// controller, by the operation's ID. Each body changes something.
var changeBodies = map[string]string{
	"post_job":          `{"comment": "c"}`,
	"post_node":         `{"comment": "c"}`,
	"post_nodes":        `{"name": "n1", "comment": "c"}`,
	"post_reservation":  `{"name": "maint", "comment": "c"}`,
	"post_reservations": `{"reservations": [{"name": "maint", "comment": "c"}]}`,
	"post_partitions":   `{"partitions": [{"name": "main", "nodes": {"configured": "n1"}}]}`,
}

// notAChange gives the reason why a body's empty values need no remark.
var notAChange = map[string]string{
	"post_job_submit":   "an empty value is the default of a new job",
	"post_job_allocate": "an empty value is the default of a new job",
	"post_jobs_requeue": "its only values are a list and flags, which are tested elsewhere",
	"post_new_node":     "its only value is required",
	"post_tokens":       "no other endpoint shows its values, and an empty one is refused or the default",
	"delete_jobs":       "its values are conditions, which are tested elsewhere",
}

// sentBy returns what the controller gets for a body, and the answer.
func (b *bodyEndpoint) sentBy(t *testing.T, body any) (sent any, w *httptest.ResponseRecorder) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	f := demo()
	f.reservations[0].Partition = "main" // so that an empty partition is a change
	w = httptest.NewRecorder()
	url := strings.Replace(b.url, "/slurm/", "/sched/", 1) // in Slurm's spelling, blank values cause no warnings
	New(config(f)).ServeHTTP(w, request(b.Method, url, string(text)))
	return []any{f.calls, f.submitted, f.nodeUpdates, f.reservationUpdates, f.partitionUpdates, f.killRequests, f.cancelled, f.killArgs}, w
}

// TestNoFieldIsLost sends values that may mean "not set" in each field of each
// change, beside another field. The controller must get a change that differs,
// or a warning or error must name the field. An empty list must not change
// anything.
func TestNoFieldIsLost(t *testing.T) {
	t.Parallel()
	fields := 0
	known := make(map[field]*schema.Shape)
	for _, b := range withBodies(t) {
		if !strings.HasPrefix(b.url, "/slurm/") || notAChange[b.ID] != "" {
			continue
		}
		base := changeBodies[b.ID]
		if base == "" {
			t.Errorf("%s: no body in changeBodies, and no reason in notAChange", b.ID)
			continue
		}
		parse := func() (doc any) {
			if err := json.Unmarshal([]byte(base), &doc); err != nil {
				t.Fatal(err)
			}
			return doc
		}
		before, w := b.sentBy(t, parse())
		if w.Code != http.StatusOK {
			t.Fatalf("%s %s: status %d: %s", b.Method, b.url, w.Code, w.Body)
		}
		for _, path := range b.newPaths(known) {
			name := strings.Join(path, "/")
			if strings.Contains(base, `"`+path[len(path)-1]+`"`) || inValue(path, b) {
				continue
			}
			fields++
			for _, form := range []string{`""`, `[]`, `0`, `{}`, `{"set": false}`, `{"set": false, "infinite": false, "number": 0}`, `false`} {
				var value any
				if err := json.Unmarshal([]byte(form), &value); err != nil {
					t.Fatal(err)
				}
				after, w := b.sentBy(t, setPath(parse(), path, value))
				changed := !cmp.Equal(before, after, cmpopts.EquateEmpty())
				if changed && form == `[]` && w.Code == http.StatusOK {
					t.Errorf("%s %s: %s [] changes the request: %s", b.Method, b.url, name, cmp.Diff(before, after, cmpopts.EquateEmpty()))
				}
				if changed || named(t, w, strings.ReplaceAll(name, "[]", "0")) {
					continue
				}
				t.Errorf("%s %s: %s %s is lost: status %d: %s", b.Method, b.url, name, form, w.Code, w.Body)
			}
		}
	}
	t.Logf("%d fields", fields)
	if fields < 150 {
		t.Error("too few fields")
	}
}

// inValue reports whether a path leads into a value, such as the number in
// {set, infinite, number} or an element of a list of words.
func inValue(path []string, b *bodyEndpoint) bool {
	s := b.Request.Shape(schema.View{Version: b.version, Spelling: schema.Slurm})
	records := 0
	for i, name := range path {
		if name == "[]" {
			if records++; s.Items == nil || !hasFields(s.Items) || i > 1 {
				return true
			}
			s = s.Items
			continue
		}
		if !hasFields(s) {
			return true
		}
		for _, p := range s.Fields {
			if p.Name == name {
				s = p.Shape
				break
			}
		}
	}
	return path[len(path)-1] == "[]"
}

// named reports whether a warning or an error of the answer is about the field
// at path, about a field below it, or about the object that it belongs to.
func named(t *testing.T, w *httptest.ResponseRecorder, path string) bool {
	var e struct{ Warnings, Errors []struct{ Source string } }
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(append(e.Warnings, e.Errors...), func(n struct{ Source string }) bool {
		return strings.HasPrefix(n.Source, "#/"+path) || n.Source != "#" && strings.HasPrefix("#/"+path+"/", n.Source+"/")
	})
}

// hasFields reports whether a shape has fields. It returns false for the object
// that wraps a number that may be unset.
func hasFields(s *schema.Shape) bool {
	return s != nil && s.Kind == "object" && !strings.Contains(s.Name, "_no_val")
}

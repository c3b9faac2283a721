package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
)

// TestRefusedParameters checks that the client requests the whole list if a
// server refuses a request for a part of it, and asks this server for no part
// again. Other failures must not be hidden, and no entry may be passed on twice.
func TestRefusedParameters(t *testing.T) {
	const list = `{"jobs": [{"job_id": 7}]}`
	part := &List{Filters: url.Values{"users": {"ann"}}, Fields: []string{"job_id", "time_limit"}}
	const partQuery = "fields=job_id,time_limit&users=ann"
	refused := reply(422, `{"errors": [{"description": "unknown parameter"}]}`)
	for _, tt := range []struct {
		name         string
		part, whole  http.HandlerFunc // answers to requests with and without parameters
		want         []string         // queries of two calls
		entries      int
		kind         errs.Kind // of the first call
		text         string    // "" for no error
		wantFallback bool
	}{
		{"supported", reply(200, list), reply(500, "{}"), []string{partQuery, partQuery}, 2, 0, "", false},
		{"refused", refused, reply(200, list), []string{partQuery, "", ""}, 2, 0, "", true},
		{"malformed", reply(400, "{}"), reply(200, list), []string{partQuery, "", ""}, 2, 0, "", true},
		{"too long", reply(414, "<html>"), reply(200, list), []string{partQuery, "", ""}, 2, 0, "", true},
		{"not parsed by slurmrestd", reply(500, `{"errors": [{"error_number": 9202}]}`), reply(200, list), []string{partQuery, "", ""}, 2, 0, "", true},
		{"refused in the body", reply(200, `{"jobs": [], "errors": [{"description": "no such parameter"}]}`), reply(200, list), []string{partQuery, "", ""}, 2, 0, "", true},
		{"both refused", refused, reply(422, `{"errors": [{"description": "no list at all"}]}`), []string{partQuery, "", partQuery, ""}, 0, errs.Invalid, "no list at all", false},
		{"unavailable", reply(503, "{}"), reply(200, list), []string{partQuery, partQuery}, 0, errs.Unavailable, "503", false},
		{"denied", reply(403, "{}"), reply(200, list), []string{partQuery, partQuery}, 0, errs.Denied, "403", false},
		{"an error after an entry", reply(200, `{"jobs": [{"job_id": 7}], "errors": [{"description": "the rest is lost"}]}`), reply(200, list), []string{partQuery, partQuery}, 2, errs.Invalid, "the rest is lost", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var queries, lines []string
			c := dialTest(t, apiHandler(func(w http.ResponseWriter, r *http.Request) {
				queries = append(queries, r.URL.RawQuery)
				if r.URL.RawQuery == "" {
					tt.whole(w, r)
				} else {
					tt.part(w, r)
				}
			}, "/slurm/v0.0.44/"))
			c.config.Log = func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
			entries := 0
			for call := range 2 {
				_, err := c.Jobs(t.Context(), part, func(*Job) error { entries++; return nil })
				if (err == nil) != (tt.text == "") || err != nil && (errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.text)) {
					t.Errorf("call %d: %v (kind %v)", call, err, errs.KindOf(err))
				}
			}
			if !slices.Equal(queries, tt.want) || entries != tt.entries {
				t.Errorf("queries %q, want %q; %d entries, want %d", queries, tt.want, entries, tt.entries)
			}
			log := strings.Join(lines, "\n")
			if strings.Contains(log, "note: ") != tt.wantFallback || !strings.Contains(log, "request: GET /slurm/v0.0.44/jobs/?"+partQuery+"\nanswer: ") || strings.Contains(log, token) {
				t.Errorf("log:\n%s", log)
			}
		})
	}
}

// TestEntityTag checks that a List that is used again sends the tag of its last
// complete answer, and that an answer without a tag removes it.
func TestEntityTag(t *testing.T) {
	var sent []string
	answers := []http.HandlerFunc{}
	c := dialTest(t, apiHandler(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("If-None-Match"))
		answers[0](w, r)
		answers = answers[1:]
	}, "/slurm/v0.0.44/"))
	tagged := func(tag, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", tag)
			reply(200, body)(w, r)
		}
	}
	unchanged := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }
	answers = []http.HandlerFunc{tagged(`W/"1"`, `{"jobs": [{}]}`), unchanged, tagged(`W/"2"`, `{"jobs": [{}`), tagged(`W/"3"`, `{"jobs": []}`), unchanged, reply(200, `{"jobs": []}`), reply(200, `{"jobs": []}`), unchanged}
	l := &List{}
	for i, want := range []struct {
		unchanged bool
		text      string
	}{{}, {unchanged: true}, {text: "unexpected"}, {}, {unchanged: true}, {}, {}, {text: "304 to a request without a condition"}} {
		m, err := c.Jobs(t.Context(), l, func(*Job) error { return nil })
		if m.Unchanged != want.unchanged || (err == nil) != (want.text == "") || err != nil && !strings.Contains(err.Error(), want.text) {
			t.Errorf("answer %d: %+v, %v", i, m, err)
		}
	}
	if want := []string{"", `W/"1"`, `W/"1"`, `W/"1"`, `W/"3"`, `W/"3"`, "", ""}; !slices.Equal(sent, want) {
		t.Errorf("tags %q, want %q", sent, want)
	}
}

// TestAccountingFields checks that AccountingFields contains all that makes up a
// Job, except long texts, and that all API versions have these fields.
func TestAccountingFields(t *testing.T) {
	const record = `{"job_id": 7, "array": {"job_id": 6, "task_id": {"set": true, "number": 3}}, "het": {"job_id": 5, "job_offset": {"set": true, "number": 1}}, "name": "n", "user": "ann", "account": "a", "partition": "p", "qos": "q",
		"state": {"current": ["FAILED"], "reason": "r"}, "time": {"elapsed": 5, "submission": 1, "start": 2, "end": 3, "limit": {"set": true, "number": 4}},
		"tres": {"allocated": [{"type": "cpu", "count": 5}, {"type": "gres", "name": "gpu", "count": 6}]}, "required": {"CPUs": 9, "memory_per_cpu": {"set": true, "number": 7}, "memory_per_node": {"set": true, "number": 8}},
		"allocation_nodes": 2, "priority": {"set": true, "number": 9}, "nodes": "n1", "exit_code": {"return_code": {"set": true, "number": 1}}, "kill_request_user": "root", "steps": [{}]}`
	var whole map[string]any
	if err := json.Unmarshal([]byte(record), &whole); err != nil {
		t.Fatal(err)
	}
	part := map[string]any{}
	for _, path := range AccountingFields {
		member, inner, nested := strings.Cut(path, ".")
		if !nested {
			part[member] = whole[member]
			continue
		}
		if part[member] == nil {
			part[member] = map[string]any{}
		}
		part[member].(map[string]any)[inner] = whole[member].(map[string]any)[inner]
	}
	text, err := json.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	want, err1 := decodeAccountingJob([]byte(record))
	got, err2 := decodeAccountingJob(text)
	if err := errors.Join(err1, err2); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: %+v, want %+v", err, got, want)
	}
	notListed := map[string]bool{"ArrayTasks": true, "Description": true, "Tasks": true, "Dependency": true, "Comment": true, "Resources": true, "Suspended": true, "RanBefore": true, // not in accounting
		"Directory": true, "Command": true, "Output": true, "Error": true, "OutputPath": true, "ErrorPath": true, "Explanation": true}
	fields := reflect.ValueOf(*want)
	for i := range fields.NumField() {
		if name := fields.Type().Field(i).Name; fields.Field(i).IsZero() != notListed[name] {
			t.Errorf("%s is %v", name, fields.Field(i))
		}
	}
	for _, v := range api.Versions {
		if _, err := api.AccountingJobs.Select(schema.View{Version: v}, AccountingFields); err != nil && v >= oldestVersion {
			t.Errorf("%s: %v", v, err)
		}
	}
}

package handlers

import (
	"net/http"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
	"schedrestd/rpc/fault"
)

// TestRefusedByTheController checks that the answer names the job field to
// which the controller's error number refers.
func TestRefusedByTheController(t *testing.T) {
	tests := []struct {
		err    errs.Error
		status int
		source string
	}{
		{errs.Error{Kind: errs.Invalid, Number: 2000, Message: "there is no such partition"}, 422, "#/job/partition"},
		{errs.Error{Kind: errs.Invalid, Number: 2127, Message: "the job has no environment"}, 422, "#/job/environment"},
		{errs.Error{Kind: errs.Denied, Number: 2052, Message: "you may not use this reservation"}, 403, "#/job/reservation"},
		{errs.Error{Kind: errs.Denied, Number: 2050, Message: "over a limit"}, 403, "#/job"},
		{errs.Error{Kind: errs.Invalid, Number: 2012, Message: "a path is too long"}, 422, "#/job"},
		{errs.Error{Kind: errs.Invalid, Number: 2014, Message: "no nodes satisfy the job's request"}, 422, "#/job"},
		{errs.Error{Kind: errs.Invalid, Number: 2069, Message: "the number of CPUs is invalid"}, 422, "#/job"},
		{errs.Error{Kind: errs.Invalid, Number: 2044, Message: "the requested memory is invalid"}, 422, "#/job/memory_per_node"},
		{errs.Error{Kind: errs.Unavailable, Message: "the controller can't be reached"}, 503, ""},
		{errs.Error{Kind: errs.BadAnswer, Number: 2090, Message: "internal error of the daemon"}, 502, ""},
	}
	for _, tt := range tests {
		f := demo()
		f.submitErr = &tt.err
		w := serve(t, config(f), request(http.MethodPost, "/sched/v0.0.42/job/submit", `{"job":{"script":"x"}}`))
		body := envelope(t, w.Body.Bytes())
		if w.Code != tt.status || len(body.Errors) != 1 || body.Errors[0].Source != tt.source || body.Errors[0].Number != tt.err.Number {
			t.Errorf("%d: status %d, %+v", tt.err.Number, w.Code, body.Errors)
		}
	}
}

// TestRefusedInWords tests errors with a text. If schedctld's text begins with
// the name of a field, the client must get only this text, because Slurm's text
// for the error number might contradict it.
func TestRefusedInWords(t *testing.T) {
	for _, tt := range []struct {
		number           uint32
		text             string
		status           int
		source, wantText string
	}{
		{2012, "comment: longer than 4096 bytes", 422, "#/job/comment", "comment: longer than 4096 bytes"},
		{2009, "script: has DOS line endings; end lines with a line feed only", 422, "#/job/script", "script: has DOS line endings; end lines with a line feed only"},
		{2127, `environment: "A" is not NAME=value`, 422, "#/job/environment", `environment: "A" is not NAME=value`},
		{2069, "cpus_per_task: must be at least 1", 422, "#/job/cpus_per_task", "cpus_per_task: must be at least 1"},
		{2036, "array: this controller does not support job arrays", 501, "#/job/array", "array: this controller does not support job arrays"},
		{2000, "lua: name a partition", 422, "#/job/partition", "there is no such partition: lua: name a partition"},
		{2012, "", 422, "#/job", "a path is too long"},
	} {
		f := demo()
		f.submitErr = fault.Of(tt.number, tt.text)
		w := serve(t, config(f), request(http.MethodPost, "/sched/v0.0.42/job/submit", `{"job":{"script":"x"}}`))
		body := envelope(t, w.Body.Bytes())
		if w.Code != tt.status || len(body.Errors) != 1 || body.Errors[0].Source != tt.source || body.Errors[0].Description != tt.wantText || body.Errors[0].Number != int(tt.number) {
			t.Errorf("%d %q: status %d, %+v", tt.number, tt.text, w.Code, body.Errors)
		}
	}
}

// TestRefusedForOneOfSeveral tests error numbers that can each refer to one of
// several fields. The answer must name the field that the request has, and none
// if the request has several.
func TestRefusedForOneOfSeveral(t *testing.T) {
	for _, tt := range []struct {
		number          int
		members, source string // source: the name of the field; "" for the job
	}{
		{2051, `"time_limit": 5`, "time_limit"},
		{2051, `"deadline": 1`, "deadline"},
		{2051, `"deadline": 1, "time_limit": 5`, ""},
		{2051, `"comment": "c"`, "time_limit"}, // the partition's default is refused
		{2054, `"deadline": 1`, "deadline"},
		{2054, `"end_time": 1`, "end_time"},
		{2054, `"begin_time": 1`, "begin_time"},
		{2054, `"begin_time": 1, "deadline": 1`, ""},
		{2124, `"time_minimum": 5, "time_limit": 4`, "time_minimum"},
		{2124, `"time_limit": 4`, "time_limit"},
		{2044, `"memory_per_node": 5`, "memory_per_node"},
		{2044, `"memory_per_cpu": 5`, "memory_per_cpu"},
		{2018, `"required_nodes": "x"`, "required_nodes"},
		{2018, `"excluded_nodes": "x"`, "excluded_nodes"},
		{2018, `"excluded_nodes": "x", "required_nodes": "x"`, ""},
		{2006, `"nodes": "5-4"`, "nodes"},
		{2006, `"minimum_nodes": 5`, "minimum_nodes"},
		{2006, `"minimum_nodes": 5, "maximum_nodes": 3`, ""},
		{2025, `"tasks": 5`, "tasks"},
		{2025, `"array": "1-3"`, "array"},
		{2029, `"batch_features": "x"`, "batch_features"},
		{2165, `"user_id": "7"`, "user_id"},
		{2165, `"comment": "c"`, ""},
		{2164, `"group_id": "7"`, "group_id"},
	} {
		for _, form := range []struct{ path, body, at string }{
			{"job/submit", `{"script": "x", "job": {MEMBERS}}`, "#/job"},
			{"job/submit", `{"script": "x", "jobs": [{MEMBERS}]}`, "#/jobs/0"},
			{"job/12", `{MEMBERS}`, "#"},
		} {
			f := demo()
			f.submitErr = fault.Of(uint32(tt.number), "")
			w := serve(t, config(f), request(http.MethodPost, "/slurm/v0.0.42/"+form.path, strings.Replace(form.body, "MEMBERS", tt.members, 1)))
			want := strings.TrimSuffix(form.at+"/"+tt.source, "/")
			if body := envelope(t, w.Body.Bytes()); len(body.Errors) != 1 || body.Errors[0].Source != want {
				t.Errorf("%s: %d with %s: %+v, want %s", form.path, tt.number, tt.members, body.Errors, want)
			}
		}
	}
}

// TestRefusedFields checks that fieldOfError returns only fields that a job
// has.
func TestRefusedFields(t *testing.T) {
	known := map[string]bool{"": true}
	for _, p := range api.JobDesc.Shape(schema.View{Version: api.V43}).Fields {
		known[p.Name] = true
	}
	named := 0
	for number := 2000; number < 9000; number++ {
		field := fieldOfError(number, func(string) bool { return false })
		if !known[field] {
			t.Errorf("%d is about %q, which no job has", number, field)
		}
		if field != "" {
			named++
		}
	}
	if named < 20 {
		t.Errorf("%d numbers name a field", named)
	}
}

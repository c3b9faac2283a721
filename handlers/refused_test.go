package handlers

import (
	"net/http"
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/errs"
)

// TestRefusedByTheController: a controller refuses with a number; the client is told which field.
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
		{errs.Error{Kind: errs.Unavailable, Message: "the controller can't be reached"}, 503, ""},
		{errs.Error{Kind: errs.BadAnswer, Number: 2090, Message: "the daemon had a fault of its own"}, 502, ""},
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

// TestRefusedFields: the fields that are named are fields of a job.
func TestRefusedFields(t *testing.T) {
	known := map[string]bool{"": true}
	for _, p := range api.JobDesc.Shape(schema.View{Version: api.V43}).Fields {
		known[p.Name] = true
	}
	named := 0
	for number := 2000; number < 9000; number++ {
		field := refused(number)
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

package handlers

import (
	"cmp"
	"net/http"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

func TestUpdateJob(t *testing.T) {
	for _, tt := range []struct {
		name, job, body string
		refused         *errs.Error
		want            *model.JobDesc // nil if the controller must not be called
		status          int
		source          string
		warning         string // source of the only warning
		spelling        string // first segment of the path; "" for slurm
	}{
		{name: "fields", job: "12", body: `{"comment": "c", "time_limit": 5, "priority": {"set": true, "number": 7}}`, status: 200,
			want: &model.JobDesc{Comment: "c", TimeLimit: model.Some[uint32](5), Priority: model.Some[uint32](7)}},
		{name: "hold", job: "12", body: `{"hold": true}`, status: 200, want: &model.JobDesc{Priority: model.Some[uint32](0)}},
		{name: "release", job: "12_3", body: `{"hold": false}`, status: 200, want: &model.JobDesc{Release: true}},
		{name: "the job's own number", job: "12_3", body: `{"job_id": 12, "comment": "c"}`, status: 200, want: &model.JobDesc{Comment: "c"}},
		{name: "another number", job: "12", body: `{"job_id": 1, "comment": "c"}`, status: 422, source: "#/job_id"},
		{name: "a number in parts", job: "12", body: `{"step_id": {"job_id": 13}, "comment": "c"}`, status: 422, source: "#/job_id"},
		{name: "a token", job: "12", body: `{"environment": ["SLURM_JWT=x", "A=b"]}`, status: 200, want: &model.JobDesc{Environment: []string{"A=b"}}},
		{name: "empty texts", job: "12", body: `{"comment": "", "licenses": "", "nice": 9, "excluded_nodes": ""}`, status: 200,
			want: &model.JobDesc{Comment: model.Emptied, Licenses: model.Emptied, ExcNodes: model.Emptied, Nice: model.Some[uint32](model.NiceOffset + 9)}},
		{name: "an empty list", job: "12", body: `{"comment": "", "mail_type": []}`, status: 200, want: &model.JobDesc{Comment: model.Emptied}},
		{name: "an empty array", job: "12", body: `{"comment": "c", "array": ""}`, status: 200, want: &model.JobDesc{Comment: "c"}},
		{name: "an empty text", job: "12", spelling: "sched", body: `{"comment": ""}`, status: 200, want: &model.JobDesc{Comment: model.Emptied}},
		{name: "null", job: "12", body: `{"comment": null, "nice": 0}`, status: 200, want: &model.JobDesc{Nice: model.Some[uint32](model.NiceOffset)}},
		{name: "an infinite time", job: "12", body: `{"begin_time": {"infinite": true}, "comment": "c"}`, status: 200, warning: "#/begin_time", want: &model.JobDesc{Comment: "c"}},
		{name: "nothing", job: "12", spelling: "sched", body: `{}`, status: 422, source: "#"},
		{name: "nothing that is known", job: "12", spelling: "sched", body: `{"colour": "red"}`, status: 422, source: "#"},
		{name: "nothing, in Slurm's spelling", job: "12", body: `{}`, status: 200, warning: "#", want: &model.JobDesc{}},
		{name: "nothing, of an unknown job", job: "99", body: `{}`, refused: &errs.Error{Kind: errs.NotFound, Message: "no such job", Number: 2017}, status: 404, source: "path/job_id", want: &model.JobDesc{}},
		{name: "wrong type", job: "12", body: `{"tasks": "many", "comment": "c"}`, status: 422, source: "#/tasks"},
		{name: "no job", job: "twelve", body: `{"comment": "c"}`, status: 404, source: "path/job_id"},
		{name: "refused field", job: "12", body: `{"partition": "p"}`, refused: &errs.Error{Kind: errs.Invalid, Message: "no such partition", Number: 2000}, status: 422, source: "#/partition",
			want: &model.JobDesc{Partition: "p"}},
		{name: "unknown job", job: "99", body: `{"comment": "c"}`, refused: &errs.Error{Kind: errs.NotFound, Message: "no such job", Number: 2017}, status: 404, source: "path/job_id", want: &model.JobDesc{Comment: "c"}},
		{name: "another's job", job: "12", body: `{"comment": "c"}`, refused: &errs.Error{Kind: errs.Denied, Message: "not yours", Number: 2010}, status: 403, source: "path/job_id", want: &model.JobDesc{Comment: "c"}},
		{name: "outcome unknown", job: "12", body: `{"comment": "c"}`, refused: &errs.Error{Kind: errs.BadAnswer, Message: "no answer", Code: errs.OutcomeUnknown}, status: 502, want: &model.JobDesc{Comment: "c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			f.taskResults = nil
			if tt.refused != nil {
				f.submitErr = tt.refused
			}
			w := serve(t, config(f), request(http.MethodPost, "/"+cmp.Or(tt.spelling, "slurm")+"/v0.0.45/job/"+tt.job, tt.body))
			body := envelope(t, w.Body.Bytes())
			if w.Code != tt.status || tt.source != "" && (len(body.Errors) != 1 || body.Errors[0].Source != tt.source) {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
			if tt.warning != "" && (len(body.Warnings) != 1 || body.Warnings[0].Source != tt.warning) {
				t.Errorf("warnings %+v, want one about %s", body.Warnings, tt.warning)
			}
			var got *model.JobDesc
			if len(f.submitted) > 0 {
				got = f.submitted[0]
			}
			if d := gocmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

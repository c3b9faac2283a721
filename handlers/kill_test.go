package handlers

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// TestDeleteGoneJob tests the cancellation of a job that has ended or is
// unknown. In Slurm's spelling it succeeds, because clients rely on that. A
// refusal for any other reason is an error in both spellings.
func TestDeleteGoneJob(t *testing.T) {
	ended := &errs.Error{Kind: errs.Conflict, Message: "the job has ended", Number: 2021}
	unknown := &errs.Error{Kind: errs.NotFound, Message: "there is no such job", Number: 2017}
	denied := &errs.Error{Kind: errs.Denied, Message: "it is not yours", Number: 2002}
	for _, tt := range []struct {
		name, path string
		err        *errs.Error
		results    []model.KillResult // what the controller reports
		status     int
		want       string // error numbers in status, or what follows from their absence
	}{
		{"ended", "/slurm/v0.0.45/job/12", ended, []model.KillResult{{Code: 2021}}, 200, "2021"},
		{"unknown", "/slurm/v0.0.42/job/12", unknown, []model.KillResult{{Code: 2017}}, 200, "2017"},
		{"unknown, to an old controller", "/slurm/v0.0.42/job/12_3", unknown, nil, 200, "2017"},
		{"ended, in an old version", "/slurm/v0.0.41/job/12", ended, nil, 200, ""},
		{"unknown, in an old version", "/slurm/v0.0.40/job/12", unknown, nil, 200, ""},
		{"another user's", "/slurm/v0.0.45/job/12", denied, []model.KillResult{{Code: 2002}}, 403, "error"},
		{"ended", "/sched/v0.0.45/job/12", ended, []model.KillResult{{Code: 2021}}, 409, "error"},
		{"unknown", "/sched/v0.0.45/job/12", unknown, []model.KillResult{{Code: 2017}}, 404, "error"},
		{"unknown, in an old version", "/sched/v0.0.40/job/12", unknown, nil, 404, "error"},
	} {
		t.Run(tt.name+" "+tt.path, func(t *testing.T) {
			f := demo()
			f.killErr, f.killResults = tt.err, tt.results
			w := serve(t, config(f), request(http.MethodDelete, tt.path, ""))
			var body struct {
				Status []struct {
					Error struct{ Code json.Number }
					Step  string `json:"step_id"`
				}
				Errors, Warnings []any
			}
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			got := strings.Repeat("error", len(body.Errors)) + strings.Repeat("warning", len(body.Warnings))
			for _, s := range body.Status {
				got += s.Error.Code.String()
				if s.Step == "" {
					t.Error("no step_id")
				}
			}
			if w.Code != tt.status || got != tt.want {
				t.Errorf("status %d, %s: %s", w.Code, got, w.Body)
			}
		})
	}
}

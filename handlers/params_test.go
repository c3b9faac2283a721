package handlers

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/errs"
	"schedrestd/model"
)

func TestQuery(t *testing.T) {
	all := model.ShowAll | model.ShowDetail
	tests := []struct {
		name, path string
		want       model.Query
		warned     []string
	}{
		{"nothing said", "nodes", model.Query{Flags: all | model.ShowMixed}, nil},
		{"flags", "nodes?flags=DETAIL,mixed", model.Query{Flags: model.ShowDetail | model.ShowMixed}, nil},
		{"flags, nothing in them", "jobs?flags=", model.Query{Flags: all}, nil},
		{"flags, escaped", "node/n1?flags=ALL%2CFUTURE", model.Query{Flags: model.ShowAll | model.ShowFuture}, nil},
		{"since", "jobs?update_time=1795000000", model.Query{Since: 1_795_000_000, Flags: all}, nil},
		{"both", "job/12?update_time=7&flags=ALL", model.Query{Since: 7, Flags: model.ShowAll}, nil},
		{"unknown", "nodes?color=red&flags=ALL", model.Query{Flags: model.ShowAll}, []string{"query/color"}},
		{"a part of the path", "node/n1?node_name=n2", model.Query{Flags: all | model.ShowMixed}, []string{"query/node_name"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			w := serve(t, config(f), request(http.MethodGet, "/sched/v0.0.42/"+tt.path, ""))
			if w.Code != http.StatusOK {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if d := cmp.Diff([]model.Query{tt.want}, f.queries); d != "" {
				t.Error(d)
			}
			var warned []string
			for _, w := range envelope(t, w.Body.Bytes()).Warnings {
				warned = append(warned, w.Source)
			}
			if d := cmp.Diff(tt.warned, warned); d != "" {
				t.Errorf("warnings: %s", d)
			}
		})
	}
}

// TestParametersRefused: what can't be understood reaches no daemon but to vouch for who asks, says
// where it stands, and looks to a stranger like everything else.
func TestParametersRefused(t *testing.T) {
	tests := []struct {
		name, method, path string
		status             int
		source             string
	}{
		{"not a word", "GET", "nodes?flags=NOPE", 422, "query/flags"},
		{"given twice", "GET", "nodes?flags=ALL&flags=DETAIL", 422, "query/flags"},
		{"not a time", "GET", "jobs?update_time=yesterday", 422, "query/update_time"},
		{"a negative time", "GET", "jobs?update_time=-1", 422, "query/update_time"},
		{"not a signal", "DELETE", "job/12?signal=BANG", 422, "query/signal"},
		{"a flag of another version", "DELETE", "job/12?flags=NO_CRON_JOBS", 422, "query/flags"},
		{"not a job", "GET", "job/twelve", 404, "path/job_id"},
		{"not a job to end", "DELETE", "job/all", 404, "path/job_id"},
		{"not a query", "GET", "nodes?flags=%zz", 400, "query"},
		{"two kinds of separators", "GET", "nodes?flags=ALL;update_time=1", 400, "query"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			w := serve(t, config(f), request(tt.method, "/sched/v0.0.42/"+tt.path, ""))
			body := envelope(t, w.Body.Bytes())
			if w.Code != tt.status || len(body.Errors) != 1 || body.Errors[0].Source != tt.source {
				t.Errorf("status %d, errors %+v", w.Code, body.Errors)
			}
			if got := strings.Join(f.calls, " "); got != "vouch" {
				t.Errorf("calls: %s", got)
			}
			f.vouch = errs.New(errs.Unauthenticated, "forged")
			if w := serve(t, config(f), request(tt.method, "/sched/v0.0.42/"+tt.path, "")); w.Code != http.StatusUnauthorized {
				t.Errorf("to a stranger: status %d", w.Code)
			}
		})
	}
}

func TestSignal(t *testing.T) {
	tests := []struct {
		path string
		want [2]uint16
	}{
		{"job/12", [2]uint16{9, 8}},
		{"job/12?signal=SIGUSR1", [2]uint16{10, 8}},
		{"job/12?signal=15&flags=BATCH_JOB,FULL_JOB", [2]uint16{15, 9}},
		{"job/12?signal=0", [2]uint16{0, 8}},
	}
	for _, tt := range tests {
		f := demo()
		for _, version := range []string{"v0.0.41", "v0.0.42"} {
			if w := serve(t, config(f), request(http.MethodDelete, "/sched/"+version+"/"+tt.path, "")); w.Code != http.StatusOK {
				t.Fatalf("%s: status %d: %s", tt.path, w.Code, w.Body)
			}
		}
		if d := cmp.Diff([][2]uint16{tt.want, tt.want}, f.killed); d != "" {
			t.Errorf("%s: %s", tt.path, d)
		}
	}
}

package handlers

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/internal/errs"
)

// TestMissing tests requests for unknown names. For our own paths (/sched), the
// status must be 404. For Slurm's paths (/slurm), the gateway must answer like
// slurmrestd, which in some cases sends a 200 with an empty list.
func TestMissing(t *testing.T) {
	tests := []struct {
		path, list      string
		status          int // status in Slurm's spelling
		error           string
		number, warning int
	}{
		{"sched/VERSION/node/n9", "nodes", 200, "Invalid node name specified", 2018, 0},
		{"sched/VERSION/partition/p9", "partitions", 200, "Invalid partition name specified", 2000, 0},
		{"sched/VERSION/reservation/r9", "reservations", 200, "Requested reservation is invalid", 2053, 0},
		{"sched/VERSION/job/99", "jobs", 404, "Invalid job id specified", 2017, 0},
		{"scheddb/VERSION/job/99", "jobs", 200, "", 0, 1},
		{"scheddb/VERSION/account/a9", "accounts", 200, "", 0, 1},
		{"scheddb/VERSION/user/u9", "users", 200, "", 0, 1},
		{"scheddb/VERSION/qos/q9", "qos", 200, "", 0, 1},
		{"scheddb/VERSION/cluster/c9", "clusters", 200, "", 0, 1},
		{"scheddb/VERSION/job/nine", "jobs", 404, "Not Found", 0, 0}, // not a job number
	}
	for _, tt := range tests {
		for _, v := range api.Versions {
			version := v.String()
			path := "/" + strings.Replace(tt.path, "VERSION", version, 1)
			slurm := strings.Replace(path, "sched", "slurm", 1)
			f := demo()
			if tt.path == "sched/VERSION/job/99" {
				f.jobs = nil
			}
			w := serve(t, config(f), request(http.MethodGet, path, ""))
			if body := envelope(t, w.Body.Bytes()); w.Code != 404 || len(body.Errors) != 1 || len(body.Warnings) != 0 {
				t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
			}
			w = serve(t, config(f), request(http.MethodGet, slurm, ""))
			body := envelope(t, w.Body.Bytes())
			if w.Code != tt.status || len(body.Warnings) != tt.warning {
				t.Errorf("%s: status %d, want %d: %s", slurm, w.Code, tt.status, w.Body)
			}
			switch {
			case tt.error == "" && len(body.Errors) > 0, tt.error != "" && len(body.Errors) != 1:
				t.Errorf("%s: errors %+v", slurm, body.Errors)
			case tt.error != "" && (body.Errors[0].Error != tt.error || body.Errors[0].Number != tt.number):
				t.Errorf("%s: error %+v, want %d %q", slurm, body.Errors[0], tt.number, tt.error)
			}
			wantEmpty(t, slurm, tt.list, w.Body.Bytes())
			if prefix := "Failure to query node n9"; tt.list == "nodes" && !strings.HasPrefix(body.Errors[0].Description, prefix) {
				t.Errorf("%s: %q does not begin with %q", slurm, body.Errors[0].Description, prefix)
			}
		}
	}
}

// TestFailuresHaveEmptyLists checks that an answer with errors also contains
// the endpoint's list, and that this list is empty. Clients loop over the list
// before they check for errors.
func TestFailuresHaveEmptyLists(t *testing.T) {
	for path, list := range map[string]string{
		"/slurm/v0.0.42/nodes": "nodes", "/slurm/v0.0.42/node/n1": "nodes", "/slurm/v0.0.40/partitions": "partitions",
		"/slurm/v0.0.41/jobs": "jobs", "/slurm/v0.0.43/jobs/state": "jobs", "/sched/v0.0.42/licenses": "licenses",
		"/slurm/v0.0.42/ping": "pings", "/slurmdb/v0.0.42/users": "users", "/slurmdb/v0.0.42/associations": "associations",
	} {
		f := demo()
		f.callErr = errs.New(errs.Unavailable, "the daemon can't be reached")
		w := serve(t, config(f), request(http.MethodGet, path, ""))
		if body := envelope(t, w.Body.Bytes()); w.Code != 503 || len(body.Errors) != 1 {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
		wantEmpty(t, path, list, w.Body.Bytes())
	}
}

func wantEmpty(t *testing.T, path, list string, body []byte) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || string(members[list]) != "[]" {
		t.Errorf("%s: %v: %s is %s", path, err, list, members[list])
	}
}

package api

import (
	"testing"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// TestOrderOfMembers checks that the last of two fields in slurmrestd's table has
// its value, in whatever order the client sends them.
func TestOrderOfMembers(t *testing.T) {
	for _, body := range []string{
		`{"nodes": "2", "minimum_nodes": 12}`,
		`{"minimum_nodes": 12, "nodes": "2"}`,
	} {
		d, r := parsedJob(t, body)
		if !r.OK() || d.MinNodes != model.Some[uint32](12) || d.MaxNodes != model.Some[uint32](2) {
			t.Errorf("%s: %v to %v nodes, errors %v; want 12 to 2", body, d.MinNodes, d.MaxNodes, r.Errors)
		}
	}
}

// TestNoTasksPerSocket checks the number by which slurmctld divides.
func TestNoTasksPerSocket(t *testing.T) {
	if _, r := parsedJob(t, `{"tasks_per_socket": 0}`); r.OK() {
		t.Error("0 is accepted")
	}
	if d, r := parsedJob(t, `{"tasks_per_socket": 1}`); !r.OK() || d.NTasksPerSocket != model.Some[uint16](1) {
		t.Errorf("1 is read as %v, errors %v", d.NTasksPerSocket, r.Errors)
	}
}

func parsedJob(t *testing.T, body string) (model.JobDesc, *schema.Report) {
	t.Helper()
	doc, err := schema.ReadJSON(body, schema.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	var r schema.Report
	var d model.JobDesc
	JobDesc.Parser(schema.View{Version: V45})(&r, doc, &d)
	return d, &r
}

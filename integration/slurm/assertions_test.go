package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// An asserted request is one about whose answer a client makes an assertion that
// small differences would break.
type asserted struct {
	name, method, path, body string
	since, until             string // first and last version; "" for all
	lacks                    string // member that the answer must not have, or that must be empty
	begins                   string // how the text of a warning begins
}

// asserteds are requests that both gateways answer with the same status, and
// either both with warnings or both without.
var asserteds = []asserted{
	{name: "the user of a reason", method: "POST", path: "slurm/VERSION/node/node1", body: `{"comment": "x", "state": ["DRAIN"], "reason": "t", "reason_uid": "root"}`},
	{name: "an empty list of nodes", method: "POST", path: "slurm/VERSION/reservations/", since: "v0.0.43",
		body: `{"reservations": [{"name": "assertedSIDEVERSION", "users": ["root"], "duration": {"set": true, "number": 1}, "start_time": {"set": true, "number": 20SIDE0000000}, "partition": "debug", "node_list": []}]}`},
	{name: "no reservation any more", method: "DELETE", path: "slurm/VERSION/reservation/assertedSIDEVERSION", since: "v0.0.43"},
	{name: "no association", method: "GET", path: "slurmdb/VERSION/association/?user=nosuch", lacks: "associations"},
	{name: "no associations", method: "GET", path: "slurmdb/VERSION/associations/?user=nosuch", lacks: "associations"},
	{name: "no users", method: "GET", path: "slurmdb/VERSION/users/?default_account=nosuch", lacks: "users"},
	{name: "no workload keys", method: "GET", path: "slurmdb/VERSION/wckeys/?name=nosuch", lacks: "wckeys"},
	{name: "no accounts", method: "GET", path: "slurmdb/VERSION/accounts/?description=nosuch", lacks: "accounts"},
	{name: "no clusters", method: "GET", path: "slurmdb/VERSION/clusters/?rpc_version=9", since: "v0.0.43", lacks: "clusters"},
	{name: "no instances", method: "GET", path: "slurmdb/VERSION/instances/?instance_id=nosuch", lacks: "instances"},
	{name: "no recorded jobs", method: "GET", path: "slurmdb/VERSION/jobs/?job_name=nosuch", lacks: "jobs"},
	{name: "no new configuration", method: "GET", path: "slurm/VERSION/conf?update_time=4102444800", since: "v0.0.45", lacks: "slurm_conf"},
	{name: "the configuration", method: "GET", path: "slurm/VERSION/conf?update_time=1", since: "v0.0.45"},
	{name: "a job that is not there", method: "DELETE", path: "slurm/VERSION/job/99999"},
	{name: "a held job", method: "POST", path: "slurm/VERSION/job/submit", begins: "Job submission resulted in non-zero return code: ",
		body: `{"job": {"script": "#!/bin/sh\ntrue", "name": "held", "hold": true, "current_working_directory": "/tmp", "environment": ["PATH=/bin"]}}`},
	{name: "a job without an environment", method: "POST", path: "slurm/VERSION/job/submit", body: `{"job": {"script": "#!/bin/sh\ntrue", "current_working_directory": "/tmp"}}`},
}

// TestAssertions sends requests through both gateways, and compares what clients
// make assertions about.
func TestAssertions(t *testing.T) {
	m := freshCluster(t)
	m.reference(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	for _, version := range map[string][]string{"24.11": {"v0.0.40", "v0.0.41", "v0.0.42"}, "26.05": {"v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"}}[m.release] {
		for _, a := range asserteds {
			if a.since != "" && version < a.since || a.until != "" && version > a.until {
				continue
			}
			t.Run(a.name+"/"+version, func(t *testing.T) {
				var outcomes, texts []string
				for i, socket := range []string{referenceSocket, gatewaySocket} {
					replacer := strings.NewReplacer("VERSION", version, "SIDE", fmt.Sprint(i))
					got, err := sendRequest(m.client(socket), a.method, "/"+replacer.Replace(a.path), replacer.Replace(a.body), "X-SLURM-USER-TOKEN: "+m.admin)
					must(t, err)
					outcomes, texts = append(outcomes, a.outcome(got)), append(texts, fmt.Sprintf("%.900s", got.body))
				}
				if outcomes[0] != outcomes[1] {
					t.Errorf("slurmrestd: %s\n%s\nschedrestd: %s\n%s", outcomes[0], texts[0], outcomes[1], texts[1])
				}
			})
		}
	}
}

// outcome describes what a client makes assertions about.
func (a asserted) outcome(got answer) string {
	var body map[string]json.RawMessage
	_ = json.Unmarshal(got.body, &body) // an answer that is not JSON has no warnings
	var warnings []struct{ Description string }
	_ = json.Unmarshal(body["warnings"], &warnings)
	begins := slices.ContainsFunc(warnings, func(w struct{ Description string }) bool { return strings.HasPrefix(w.Description, a.begins) })
	has := len(body[a.lacks]) > len("[]")
	status := fmt.Sprint(got.status)
	if got.status >= http.StatusBadRequest {
		status = "an error" // the statuses of errors differ
	}
	return fmt.Sprintf("%s, warnings: %t, as expected: %t, records: %t", status, len(warnings) > 0, begins, has)
}

// TestDocumentPaths checks that the gateway's OpenAPI document has each operation
// of slurmrestd's, with the same path to the slash and the same name. To a typed
// client the path is the key of an operation. The document of one version has no
// other version.
func TestDocumentPaths(t *testing.T) {
	m := useCluster(t)
	if m.release == "22.05" {
		t.Skip("not for this run: slurmrestd of 22.05 shows its document only with a token")
	}
	m.reference(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	reference, all := m.operationIDs(t, referenceSocket, "/openapi/v3"), m.operationIDs(t, gatewaySocket, "/openapi/v3")
	if len(reference) < 60 {
		t.Fatalf("slurmrestd's document has %d operations", len(reference))
	}
	for operation, id := range reference {
		_, rest, _ := strings.Cut(operation, "/slurm")
		version := strings.Split(rest, "/")[min(1, strings.Count(rest, "/"))]
		if strings.HasPrefix(version, "v0.0.") && all[operation] != id {
			t.Errorf("%s: %q, slurmrestd has %q", operation, all[operation], id)
		}
	}
	for operation, id := range m.operationIDs(t, gatewaySocket, "/slurm/v0.0.42/openapi/v3") {
		if !strings.Contains(operation, "/v0.0.42/") || strings.Contains(operation, "/sched") || all[operation] != id {
			t.Errorf("the document of v0.0.42 has %s, %q", operation, id)
		}
	}
	t.Logf("%d operations of slurmrestd", len(reference))
}

// operationIDs returns the names of the operations of a document, by method and
// path.
func (m *machine) operationIDs(t *testing.T, socket, path string) map[string]string {
	t.Helper()
	a, err := sendRequest(m.client(socket), "GET", path, "", "X-SLURM-USER-TOKEN: "+m.token)
	must(t, err)
	var document struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(a.body, &document); err != nil || len(document.Paths) == 0 {
		t.Fatalf("%s: status %d, %v: %.300s", path, a.status, err, a.body)
	}
	list := map[string]string{}
	for path, methods := range document.Paths {
		for method, o := range methods {
			list[strings.ToUpper(method)+" "+path] = o.OperationID
		}
	}
	return list
}

package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPartlyMade sends changes of several fields of which slurmctld refuses one.
// The error must name the fields that were changed nevertheless.
func TestPartlyMade(t *testing.T) {
	m := useCluster(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	owner, err := m.createToken("alice")
	must(t, err)
	root, err := m.createToken("root")
	must(t, err)
	client := m.client(gatewaySocket)
	send := func(token, method, path, body string) answer {
		t.Helper()
		a, err := sendRequest(client, method, "/slurm/v0.0.45/"+path, body, "X-SLURM-USER-TOKEN: "+token)
		must(t, err)
		return a
	}
	id := strings.TrimSpace(m.run(t, "alice", "sbatch", "-H", "--parsable", "-t", "5", "-o", "/dev/null", "--wrap=sleep 100"))
	t.Cleanup(func() { m.try("alice", "scancel", id) })
	begin := time.Now().Add(time.Hour).Unix()
	if a := send(root, "POST", "reservations", fmt.Sprintf(`{"reservations":[{"name":"partly","start_time":{"set":true,"number":%d},"duration":{"set":true,"number":60},"users":["alice"],"node_count":{"set":true,"number":1},"partition":"debug"}]}`, begin)); a.status != http.StatusOK {
		t.Fatalf("make a reservation: status %d: %s", a.status, remarks(a.body))
	}
	t.Cleanup(func() { m.try("root", "scontrol", "delete", "reservation=partly") })
	partial := 0
	for _, tt := range []struct {
		token, path, body, shown, list string
		fields                         map[string]string // of the answer, by the field of the body
	}{
		{owner, "job/" + id, `{"minimum_nodes":1,"comment":"partly","deadline":1,"priority":{"set":true,"number":4000000}}`, "job/" + id, "jobs",
			map[string]string{"comment": "comment", "priority": "priority", "minimum_nodes": "node_count", "deadline": "deadline"}},
		{owner, "job/" + id, fmt.Sprintf(`{"deadline":%d,"minimum_nodes":3}`, begin+86400), "job/" + id, "jobs", map[string]string{"minimum_nodes": "node_count", "deadline": "deadline"}},
		{owner, "job/" + id, `{"name":"other","account":"nosuch","constraints":"nosuch"}`, "job/" + id, "jobs", map[string]string{"name": "name", "account": "account", "constraints": "features"}},
		{root, "reservation", `{"name":"partly","purge_completed":{"time":{"set":true,"number":60}},"groups":["nosuchgroup"]}`, "reservation/partly", "reservations",
			map[string]string{"purge_completed/time": "purge_completed", "groups": "groups"}},
		{root, "reservation", `{"name":"partly","features":"ssd","accounts":["nosuch"]}`, "reservation/partly", "reservations", map[string]string{"features": "features", "accounts": "accounts"}},
	} {
		record := func() map[string]any {
			var body map[string]json.RawMessage
			a := send(root, "GET", tt.shown, "")
			must(t, json.Unmarshal(a.body, &body))
			var list []map[string]any
			must(t, json.Unmarshal(body[tt.list], &list))
			return list[0]
		}
		before := record()
		a := send(tt.token, "POST", tt.path, tt.body)
		after := record()
		var changed []string
		for field, shown := range tt.fields {
			if fmt.Sprint(before[shown]) != fmt.Sprint(after[shown]) {
				changed = append(changed, field)
			}
		}
		slices.Sort(changed)
		_, text, _ := strings.Cut(remarks(a.body), "; changed nevertheless: ")
		text, _, _ = strings.Cut(text, "\n")
		var named []string
		for _, field := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(`, "];)`, r) }) {
			if _, ok := tt.fields[field]; ok {
				named = append(named, field)
			}
		}
		slices.Sort(named)
		t.Logf("%s %s: status %d, changed %v, %s", tt.path, tt.body, a.status, changed, remarks(a.body))
		if a.status != http.StatusOK && !slices.Equal(changed, named) {
			t.Errorf("%s %s: changed %v, the error names %v", tt.path, tt.body, changed, named)
		}
		if a.status != http.StatusOK && len(changed) > 0 {
			partial++
		}
	}
	t.Logf("%d refusals were partly made", partial)
}

package slurm

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestChanges makes the same changes through both gateways, before the same
// controller, and compares what scontrol shows after each. Statuses are compared
// by class: ours tells kinds of refusals apart.
func TestChanges(t *testing.T) {
	m := real(t)
	if m.release != "26.05" {
		return // only the gateway of 26.05 serves v0.0.45
	}
	m.reference(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	token, err := m.tokenOf("root")
	must(t, err)
	node, _, _ := strings.Cut(m.run(t, "root", "sinfo", "-h", "-N", "-o", "%N"), "\n")
	start := time.Now().Add(time.Hour).Unix()
	for _, tt := range []struct {
		name, method, path, body string // NAME, NODE and START are put in
		show                     []string
		token                    string // "": root's
		differ                   string // why the classes of the statuses differ
	}{
		{name: "make a reservation", method: "POST", path: "reservation", body: `{"name": "rNAME", "start_time": START, "duration": 60, "users": ["alice"], "node_list": ["NODE"], "flags": ["IGNORE_JOBS", "OVERLAP"], "comment": "c"}`, show: []string{"reservation", "rNAME"}},
		{name: "change it", method: "POST", path: "reservation", body: `{"name": "rNAME", "duration": 90, "accounts": ["lab"]}`, show: []string{"reservation", "rNAME"}},
		{name: "change it without the privilege", method: "POST", path: "reservation", body: `{"name": "rNAME", "duration": 91}`, token: m.token, show: []string{"reservation", "rNAME"}},
		{name: "several, of which one is refused", method: "POST", path: "reservations", body: `{"reservations": [{"name": "rNAME", "duration": 95}, {"name": "xNAME"}]}`, show: []string{"reservation", "rNAME"}},
		{name: "none", method: "POST", path: "reservations", body: `{"reservations": []}`, differ: "theirs warn"},
		{name: "delete it", method: "DELETE", path: "reservation/rNAME"},
		{name: "delete it again", method: "DELETE", path: "reservation/rNAME"},
		{name: "make a partition", method: "POST", path: "partitions", body: `{"partitions": [{"name": "pNAME", "nodes": {"configured": "NODE"}, "maximums": {"time": 30}, "partition": {"state": ["UP"], "oversubscribe": "YES:2", "exclusive": "USER"}}]}`, show: []string{"partition", "pNAME"}},
		{name: "change it", method: "POST", path: "partitions", body: `{"partitions": [{"name": "pNAME", "partition": {"state": ["DRAIN"]}, "priority": {"tier": 5}, "flags": ["HIDDEN"], "defaults": {"partition_memory_per_cpu": 100}}]}`, show: []string{"partition", "pNAME"}},
		{name: "of an unknown node", method: "POST", path: "partitions", body: `{"partitions": [{"name": "qNAME", "nodes": {"configured": "nosuchnode"}}]}`},
		{name: "delete it without the privilege", method: "DELETE", path: "partition/pNAME", token: m.token, show: []string{"partition", "pNAME"}},
		{name: "delete it", method: "DELETE", path: "partition/pNAME"},
		{name: "delete it again", method: "DELETE", path: "partition/pNAME"},
		{name: "resources of no job", method: "GET", path: "resources/4000000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var statuses [2]int
			var shown [2]string
			for i, socket := range []string{theirSocket, ourSocket} {
				fill := strings.NewReplacer("NAME", fmt.Sprint("of", i), "NODE", node, "START", fmt.Sprint(start)).Replace
				as := token
				if tt.token != "" {
					as = tt.token
				}
				a, err := ask(m.client(socket), tt.method, "/slurm/v0.0.45/"+fill(tt.path), fill(tt.body), "X-SLURM-USER-TOKEN: "+as)
				must(t, err)
				statuses[i] = a.status
				if len(tt.show) > 0 {
					shown[i] = strings.ReplaceAll(m.run(t, "root", "scontrol", "-a", "-o", "show", tt.show[0], fill(tt.show[1])), fmt.Sprint("of", i), "")
				}
			}
			if theirs, ours := statuses[0] < http.StatusBadRequest, statuses[1] < http.StatusBadRequest; theirs != ours && tt.differ == "" {
				t.Errorf("statuses %d and %d", statuses[0], statuses[1])
			}
			if shown[0] != shown[1] {
				t.Errorf("theirs:\n%s\nours:\n%s", shown[0], shown[1])
			}
		})
	}
	for _, tt := range []struct{ path, body string }{
		{"hostnames", `{"hostlist": "n[1-3,5],x7"}`}, {"hostnames", `{"hostlist": ""}`}, {"hostnames", `{"hostlist": "n[3-1]"}`},
		{"hostlist", `{"hostnames": ["n9", "n10", "n010", "n11", "x"]}`}, {"hostlist", `{"hostnames": []}`}, {"hostlist", `{}`},
	} {
		var got [2]string
		for i, socket := range []string{theirSocket, ourSocket} {
			a, err := ask(m.client(socket), "POST", "/util/v0.0.45/"+tt.path, tt.body, "X-SLURM-USER-TOKEN: "+token)
			must(t, err)
			if got[i] = fmt.Sprint(a.status); a.status == http.StatusOK {
				text := strings.Join(strings.Fields(string(a.body)), "")
				got[i], _, _ = strings.Cut(text, `,"meta"`)
				got[i], _, _ = strings.Cut(got[i], `,"errors"`)
			}
		}
		if got[0] != got[1] {
			t.Errorf("%s %s: theirs %s, ours %s", tt.path, tt.body, got[0], got[1])
		}
	}
}

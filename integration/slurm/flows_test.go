package slurm

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A flowStep is a request of a client, and what the client expects of the
// answer. The status must be 200, and there must be no error.
type flowStep struct {
	method, path, body string
	list               string // list in the answer; "" for none
	length             int    // length of the list
	warns              bool   // the answer must have a warning; otherwise it must have none
	has                string // text that the list must contain
}

// clientFlows are sequences of requests that clients of slurmrestd make, as
// tests of Slurm's API do. In paths and bodies, NAME is a name that no other
// flow uses.
var clientFlows = map[string][]flowStep{
	"accounts": {
		{method: "GET", path: "account/aNAME", list: "accounts", warns: true},
		{method: "POST", path: "accounts/", body: `{"accounts": [{"name": "aNAME", "description": "d", "organization": "o"}]}`},
		{method: "POST", path: "accounts/", body: `{"accounts": [{"name": "aNAME", "description": "changed", "organization": "other", "coordinators": []}]}`},
		{method: "GET", path: "account/aNAME", list: "accounts", length: 1, has: `"changed"`},
		{method: "DELETE", path: "account/aNAME", list: "removed_accounts", length: 1},
		{method: "GET", path: "account/aNAME", list: "accounts", warns: true},
	},
	"users": {
		{method: "POST", path: "users/", body: `{"users": [{"name": "uNAME", "administrator_level": ["None"], "default": {"wckey": "kNAME"}}, {"name": "vNAME", "administrator_level": ["Operator"],
			"wckeys": [{"cluster": "lab", "name": "kNAME", "user": "vNAME"}, {"cluster": "lab", "name": "lNAME", "user": "vNAME"}], "default": {"wckey": "lNAME"}}]}`},
		{method: "GET", path: "user/uNAME?with_wckeys=true", list: "users", length: 1, has: `"wckey":"kNAME"`},
		{method: "GET", path: "user/vNAME?with_wckeys=true", list: "users", length: 1, has: `"wckey":"lNAME"`},
		{method: "DELETE", path: "user/vNAME"},
		{method: "POST", path: "users/", body: `{"users": [{"name": "wNAME", "old_name": "uNAME", "administrator_level": ["Administrator"]}]}`},
		{method: "GET", path: "user/wNAME", list: "users", length: 1, has: `"Administrator"`},
		{method: "DELETE", path: "user/wNAME"},
		{method: "GET", path: "user/wNAME", list: "users", warns: true},
	},
	"workload keys": {
		{method: "POST", path: "users/", body: `{"users": [{"name": "uNAME"}, {"name": "vNAME"}]}`},
		{method: "POST", path: "wckeys/", body: `{"wckeys": [{"cluster": "lab", "name": "kNAME", "user": "uNAME"}, {"cluster": "lab", "name": "lNAME", "user": "uNAME"}, {"cluster": "lab", "name": "lNAME", "user": "vNAME"}]}`},
		{method: "GET", path: "wckey/lNAME", list: "wckeys", length: 2},
		{method: "DELETE", path: "wckey/kNAME", list: "deleted_wckeys", length: 1},
		{method: "DELETE", path: "wckey/lNAME", list: "deleted_wckeys", length: 2},
		{method: "GET", path: "wckey/lNAME", list: "wckeys", warns: true},
	},
	"clusters": {
		{method: "POST", path: "clusters/", body: `{"clusters": [{"name": "clNAME"}]}`},
		{method: "GET", path: "cluster/clNAME", list: "clusters", length: 1},
		{method: "DELETE", path: "cluster/clNAME", list: "deleted_clusters", length: 1},
		{method: "GET", path: "cluster/clNAME", list: "clusters", warns: true},
	},
	"associations": {
		{method: "POST", path: "qos/", body: `{"qos": [{"name": "qNAME"}, {"name": "rNAME"}]}`},
		{method: "POST", path: "accounts_association/", body: `{"association_condition": {"accounts": ["aNAME"], "clusters": ["lab"], "association": {"qoslevel": ["qNAME", "rNAME"]}}, "account": {"description": "d", "organization": "o"}}`},
		{method: "POST", path: "users_association/", body: `{"association_condition": {"users": ["uNAME"], "accounts": ["aNAME"], "clusters": ["lab"]}, "user": {}}`},
		{method: "POST", path: "associations/", body: `{"associations": [{"account": "aNAME", "cluster": "lab", "user": "uNAME", "partition": "debug", "default": {"qos": "qNAME"}, "qos": ["qNAME", "rNAME"], "flags": [], "shares_raw": 23,
			"max": {"jobs": {"per": {"wall_clock": {"set": true, "number": 150}}}}, "min": {"priority_threshold": {"set": true, "number": 10}}, "priority": {"set": true, "number": 9}}]}`},
		{method: "GET", path: "association/?cluster=lab&account=aNAME&user=uNAME&partition=debug", list: "associations", length: 1, has: `"shares_raw":23`},
		{method: "POST", path: "associations/", body: `{"associations": [{"account": "aNAME", "cluster": "lab", "user": "uNAME", "partition": "debug", "default": {"qos": "rNAME"}, "qos": ["rNAME"], "shares_raw": 230}]}`},
		{method: "GET", path: "association/?cluster=lab&account=aNAME&user=uNAME&partition=debug", list: "associations", length: 1, has: `"shares_raw":230`},
		{method: "DELETE", path: "association/?cluster=lab&account=aNAME&user=uNAME&partition=debug", list: "removed_associations", length: 1},
		{method: "GET", path: "association/?cluster=lab&account=aNAME&user=uNAME&partition=debug", list: "associations", warns: true},
		{method: "DELETE", path: "associations/?cluster=lab&user=uNAME", list: "removed_associations", length: 1},
		{method: "DELETE", path: "associations/?cluster=lab&account=aNAME", list: "removed_associations", length: 1},
		{method: "GET", path: "associations/?cluster=lab&account=aNAME", list: "associations", warns: true},
	},
	"QOS": {
		{method: "POST", path: "qos/", body: `{"qos": [{"name": "qNAME", "description": "test QOS", "flags": ["PARTITION_MAXIMUM_NODE", "DENY_LIMIT", "NO_DECAY"], "limits": {"min": {"tres": {"per": {"job": [{"type": "cpu", "count": 100}, {"type": "memory", "count": 100000}]}}}},
			"preempt": {"exempt_time": {"set": true, "number": 199}}, "priority": {"set": true, "number": 180}, "usage_factor": {"set": true, "number": 82382.23823}, "usage_threshold": {"set": true, "number": 929392.33}}, {"name": "rNAME", "description": "test QOS 2"}]}`},
		{method: "GET", path: "qos/qNAME", list: "qos", length: 1, has: `"test QOS"`},
		{method: "GET", path: "qos/rNAME", list: "qos", length: 1, has: `"test QOS 2"`},
		{method: "DELETE", path: "qos/qNAME", list: "removed_qos", length: 1},
		{method: "DELETE", path: "qos/rNAME", list: "removed_qos", length: 1},
		{method: "GET", path: "qos/qNAME", list: "qos", warns: true},
	},
}

// onlyOurs lists the flows that slurmrestd can't carry out, with the reasons.
var onlyOurs = map[string]string{
	"users":         "it shows no default workload key of a user without an association",
	"workload keys": "from the removal of a key on, slurmrestd 26.05 does not answer any request for two minutes",
}

// TestClientFlows makes the requests of clientFlows in each version. The same
// requests to slurmrestd show that the flows describe what clients get there.
// In slurmrestd an empty list of associations also has a warning.
func TestClientFlows(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("the gateway of 22.05 serves v0.0.36 to v0.0.38, none of which is served here")
	}
	m.reference(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	token, err := m.createToken("root")
	must(t, err)
	versions := map[string][]string{"24.11": {"v0.0.40", "v0.0.41", "v0.0.42"}, "26.05": {"v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"}}[m.release]
	for n, name := range slices.Sorted(maps.Keys(clientFlows)) {
		steps := clientFlows[name]
		for i, version := range versions {
			for side, socket := range map[string]string{"o": gatewaySocket, "t": referenceSocket} {
				if side == "t" && onlyOurs[name] != "" {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", name, version, map[string]string{"o": "schedrestd", "t": "slurmrestd"}[side]), func(t *testing.T) {
					replacer := strings.NewReplacer("NAME", fmt.Sprintf("%d%s%d", n, side, i))
					for _, step := range steps {
						checkStep(t, m.client(socket), version, token, step, replacer)
					}
				})
			}
		}
	}
}

func checkStep(t *testing.T, c *http.Client, version, token string, step flowStep, replacer *strings.Replacer) {
	t.Helper()
	path, body := replacer.Replace(step.path), replacer.Replace(step.body)
	a, err := sendRequest(c, step.method, "/slurmdb/"+version+"/"+path, body, "X-SLURM-USER-TOKEN: "+token)
	must(t, err)
	var fields map[string]json.RawMessage
	var errors, warnings, list []json.RawMessage
	must(t, json.Unmarshal(a.body, &fields))
	for name, into := range map[string]*[]json.RawMessage{"errors": &errors, "warnings": &warnings, step.list: &list} {
		if text := fields[name]; name != "" && text != nil {
			must(t, json.Unmarshal(text, into))
		}
	}
	compact := strings.NewReplacer("\n", "", " ", "").Replace(string(fields[step.list]))
	if a.status != http.StatusOK || len(errors) > 0 || (len(warnings) > 0) != step.warns || step.list != "" && (fields[step.list] == nil || len(list) != step.length) ||
		!strings.Contains(compact, strings.ReplaceAll(replacer.Replace(step.has), " ", "")) {
		t.Fatalf("%s %s %s: status %d, %d of %d elements: %s", step.method, path, body, a.status, len(list), step.length, a.body)
	}
}

package slurm

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A limitList is a list of limits of trackable resources: its path in a body,
// and its name in sacctmgr.
type limitList struct{ path, name string }

var qosLimits = []limitList{
	{"limits/max/tres/total", "GrpTRES"},
	{"limits/max/tres/minutes/total", "GrpTRESMins"},
	{"limits/max/tres/minutes/per/qos", "GrpTRESRunMins"},
	{"limits/max/tres/minutes/per/job", "MaxTRESMinsPerJob"},
	{"limits/max/tres/minutes/per/account", "MaxTRESRunMinsPerAccount"},
	{"limits/max/tres/minutes/per/user", "MaxTRESRunMinsPerUser"},
	{"limits/max/tres/per/account", "MaxTRESPerAccount"},
	{"limits/max/tres/per/job", "MaxTRESPerJob"},
	{"limits/max/tres/per/node", "MaxTRESPerNode"},
	{"limits/max/tres/per/user", "MaxTRESPerUser"},
	{"limits/min/tres/per/job", "MinTRESPerJob"},
}

var associationLimits = []limitList{
	{"max/tres/total", "GrpTRES"},
	{"max/tres/group/minutes", "GrpTRESMins"},
	{"max/tres/group/active", "GrpTRESRunMins"},
	{"max/tres/minutes/total", "MaxTRESRunMins"},
	{"max/tres/minutes/per/job", "MaxTRESMinsPerJob"},
	{"max/tres/per/job", "MaxTRESPerJob"},
	{"max/tres/per/node", "MaxTRESPerNode"},
}

// TestLimits changes each list of limits of a QOS and of an association. A
// change must not touch any other list, nor the limits of resources that it does
// not name, except those of an association in Slurm's spelling.
func TestLimits(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("the columns of sacctmgr 22.05 have other names")
	}
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	token, err := m.createToken("root")
	must(t, err)
	version := map[string]string{"24.11": "v0.0.42", "26.05": "v0.0.45"}[m.release]
	m.run(t, "root", "sacctmgr", "-i", "add", "qos", "limited")
	m.run(t, "root", "sacctmgr", "-i", "add", "account", "limited")
	steps := []struct{ list, want, replaced string }{
		{`[{"type": "cpu", "count": 12}]`, "cpu=12,mem=1000M", "cpu=12"},
		{`[{"type": "cpu", "count": 12}]`, "cpu=12,mem=1000M", "cpu=12"}, // again: with =-1 in the message, 26.05 would lower the others each time
		{`[{"type": "cpu", "count": -1}]`, "mem=1000M", ""},
		{`[{"type": "cpu", "count": -1}]`, "mem=1000M", ""},
		{`[{"type": "cpu", "count": 7}, {"type": "memory", "count": 500}]`, "cpu=7,mem=500M", "cpu=7,mem=500M"},
		{`[{"type": "mem", "count": "infinite"}]`, "cpu=7", ""},
	}
	const account = `"account": "limited", "cluster": "lab", "user": ""`
	for _, kind := range []struct {
		segment, name, list, names, where string
		lists                             []limitList
		replaces                          bool
	}{
		{"slurmdb", "qos", "qos", `"name": "limited"`, "", qosLimits, false},
		{"slurmdb", "account", "associations", account, "account=limited user=", associationLimits, true},
		{"scheddb", "account", "associations", account, "account=limited user=", associationLimits, false},
	} {
		var columns, set []string
		for _, l := range kind.lists {
			columns, set = append(columns, l.name), append(set, l.name+"=cpu=50,mem=1000")
		}
		show := "sacctmgr -nP show qos limited format=" + strings.Join(columns, ",")
		if kind.where != "" {
			show = "sacctmgr -nP show assoc where " + kind.where + " format=" + strings.Join(columns, ",")
		}
		m.run(t, "root", append([]string{"sacctmgr", "-i", "modify", kind.name, "limited", "set"}, set...)...)
		values := func() []string { return strings.Split(m.run(t, "root", "sh", "-c", show), "|") }
		want := values()
		for i, l := range kind.lists {
			for _, step := range steps {
				body := step.list
				for _, name := range reversed(strings.Split(l.path, "/")) {
					body = fmt.Sprintf("{%q: %s}", name, body)
				}
				body = fmt.Sprintf(`{%q: [{%s, %s]}`, kind.list, kind.names, body[1:])
				a, err := sendRequest(m.client(gatewaySocket), "POST", "/"+kind.segment+"/"+version+"/"+kind.list+"/", body, "X-SLURM-USER-TOKEN: "+token)
				must(t, err)
				want[i] = step.want
				if kind.replaces {
					want[i] = step.replaced
				}
				if strings.Contains(l.name, "Mins") {
					want[i] = strings.NewReplacer("1000M", "1000", "500M", "500").Replace(want[i])
				}
				got := values()
				// Only the lists that sacctmgr shows with a unit have one.
				if a.status != http.StatusOK || strings.ReplaceAll(strings.Join(got, "|"), "M", "") != strings.ReplaceAll(strings.Join(want, "|"), "M", "") {
					t.Fatalf("%s: status %d %s\n%s\n got %q\nwant %q", body, a.status, remarks(a.body), strings.Join(columns, "|"), got, want)
				}
			}
		}
	}
}

func reversed(list []string) []string {
	r := make([]string, len(list))
	for i, s := range list {
		r[len(list)-1-i] = s
	}
	return r
}

// TestAccountStays sends requests that made slurmdbd overwrite the association
// of an account. The account and the tree must stay as they are, and slurmdbd
// must start again.
func TestAccountStays(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("the gateway of 22.05 serves v0.0.36 to v0.0.38, none of which is served here")
	}
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	token, err := m.createToken("root")
	must(t, err)
	version := map[string]string{"24.11": "v0.0.42", "26.05": "v0.0.45"}[m.release]
	m.run(t, "root", "sacctmgr", "-i", "add", "account", "above", "fairshare=3")
	m.run(t, "root", "sacctmgr", "-i", "add", "account", "below", "parent=above", "fairshare=7", "grptres=cpu=50")
	const show = "sacctmgr -nP show assoc format=cluster,account,user,partition,parentname,share,grptres"
	before := m.run(t, "root", "sh", "-c", show)
	for _, row := range []string{
		`"account": "below", "cluster": "lab", "user": "", "partition": "debug"`,
		`"account": "below", "cluster": "lab", "user": "", "partition": "nosuch"`,
		`"account": "root", "cluster": "lab", "user": "", "partition": "debug"`,
		`"account": "BELOW", "cluster": "lab", "user": ""`,
		`"account": "below ", "cluster": "lab", "user": ""`,
		`"account": "below", "cluster": "LAB", "user": ""`,
		`"account": "below", "cluster": "lab", "user": "", "parent_account": "below"`,
		`"account": "above", "cluster": "lab", "user": "", "parent_account": "below"`,
		`"account": "root", "cluster": "lab", "user": "", "parent_account": "above"`,
		`"account": "root", "cluster": "lab", "user": "", "parent_account": "root"`,
		`"account": "below", "cluster": "lab", "user": ""`,
		`"account": "below", "cluster": "lab", "user": "", "parent_account": ""`,
		`"account": "root", "cluster": "lab", "user": ""`,
	} {
		body := fmt.Sprintf(`{"associations": [{%s}]}`, row)
		a, err := sendRequest(m.client(gatewaySocket), "POST", "/slurmdb/"+version+"/associations/", body, "X-SLURM-USER-TOKEN: "+token)
		must(t, err)
		if after := m.run(t, "root", "sh", "-c", show); after != before {
			t.Fatalf("%s: status %d\nbefore:\n%s\nafter:\n%s", body, a.status, before, after)
		}
	}
	for _, path := range []string{"accounts_association/", "users_association/"} {
		body := `{"association_condition": {"accounts": ["below", "root"], "users": [], "association": {"parent": "root", "fairshare": 99}}}`
		_, err := sendRequest(m.client(gatewaySocket), "POST", "/slurmdb/"+version+"/"+path, body, "X-SLURM-USER-TOKEN: "+token)
		must(t, err)
		if after := m.run(t, "root", "sh", "-c", show); after != before {
			t.Fatalf("%s %s\nbefore:\n%s\nafter:\n%s", path, body, before, after)
		}
	}
}

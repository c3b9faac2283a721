package slurm

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
)

// inheriting lists commands that make records whose answers show more than the
// tables of slurmdbd contain: inherited limits, QOS that are added to and
// removed from inherited ones, defaults that differ between clusters, inherited
// coordinators, and empty columns.
var inheriting = strings.Split(strings.TrimSpace(`
add qos rq1 flags=NoDecay
add qos rq2 preempt=rq1 preemptmode=requeue
add cluster west
modify cluster lab set maxsubmit=900
add account y1 cluster=lab,west qos=normal,rq1 defaultqos=normal maxjobs=40 maxwall=70 maxtres=cpu=50,mem=7000 maxtrespernode=cpu=8 maxtresmins=cpu=900 priority=3 grptres=cpu=77
modify account y1 set maxjobsaccrue=31 minpriothres=2
add account y2 parent=y1 cluster=lab,west maxtres=cpu=20
add account y3 parent=root cluster=lab,west
add user yu1 account=y1 cluster=lab,west
add user yu1 account=y2 cluster=lab,west
modify user yu1 where cluster=west set defaultaccount=y2
add user yu2 account=y2 cluster=lab maxjobs=5 maxtres=mem=300 qos=rq1 defaultqos=rq1
add user yu3 account=y2 cluster=lab
modify user yu3 where cluster=lab set qos+=quick
add user yu4 account=y2 cluster=lab
modify user yu4 where cluster=lab set qos-=normal defaultqos=rq1
add user yu5 account=y1 cluster=lab partition=debug
add user yu5 account=y3 cluster=lab
modify account y3 where cluster=lab set qos+=rq2
add coordinator account=y1 names=alice
modify user bob set adminlevel=operator
add user yu1 wckey=k1,k2
modify user yu1 set defaultwckey=k1
modify user yu1 where cluster=west set defaultwckey=k2
modify qos normal set gracetime=-1
add user gone account=y3
delete user gone`), "\n")

// accountingTables are the tables that a request can change. The table txn_table
// has a row for each change.
var accountingTables = strings.Fields(`acct_table acct_coord_table cluster_table qos_table tres_table user_table txn_table
	lab_assoc_table lab_wckey_table west_assoc_table west_wckey_table`)

// dump returns the content of tables of slurmdbd, a row a line.
func (m *machine) dump(t *testing.T, tables ...string) string {
	t.Helper()
	return m.run(t, "root", append([]string{"mariadb-dump", "--compact", "--no-create-info", "--skip-extended-insert", "--complete-insert", "slurm_acct_db"}, tables...)...)
}

// TestSentBack sends what answers show of all accounting records back, in each
// version, in both spellings and with the rights of several users. Slurmdbd's
// tables must be the same afterwards, without a new row in the list of changes.
func TestSentBack(t *testing.T) {
	m := freshCluster(t)
	for _, line := range inheriting {
		m.run(t, "root", append([]string{"sacctmgr", "-i", "-Q"}, strings.Fields(line)...)...)
	}
	if m.release != "22.05" {
		m.run(t, "root", strings.Fields("sacctmgr -i -Q modify account y2 set flags=UsersAreCoords")...)
	}
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	tokens := map[string]string{}
	for _, user := range []string{"slurm", "bob", "alice"} {
		var err error
		tokens[user], err = m.createToken(user)
		must(t, err)
	}
	before := m.dump(t, accountingTables...)
	for _, want := range []string{"',1,'", "yu4", "k2"} {
		if !strings.Contains(before, want) {
			t.Fatalf("the tables lack %q:\n%s", want, before)
		}
	}
	defer t.Run("config in another cluster", m.testCopiedConfig)
	for _, kind := range []struct {
		name, path string
		query, old string // parameters of the GET, and before the version since
		since      schema.Version
	}{
		{"accounts", "accounts", "WithAssociations=true&WithCoordinators=true&DELETED=true", "with_assocs=true&with_coords=true&with_deleted=true", api.V41},
		{"users", "users", "", "", 0},
		{"users with details", "users", "with_assocs=true&with_coords=true&with_deleted=true&with_wckeys=true", "", 0},
		{"quality of service", "qos", "Include%20deleted%20QOS=true", "with_deleted=true", api.V42},
		{"associations", "associations", "", "", 0},
		{"deleted associations", "associations", "Include%20deleted%20associations=true&Include%20usage=true", "with_deleted=true&with_usage=true", api.V42},
		{"associations with their own QOS", "associations", "Include%20the%20raw%20QOS%20or%20delta_qos=true", "with_raw_qos=true", api.V42},
		{"associations with their own values", "associations", "Include%20the%20raw%20QOS%20or%20delta_qos=true&Exclude%20limits%20from%20parents=true", "with_raw_qos=true&without_parent_limits=true", api.V42},
		{"associations without parents", "associations", "Include%20the%20raw%20QOS%20or%20delta_qos=true&Exclude%20parent%20id%2Fname=true", "with_raw_qos=true&without_parent_info=true", api.V42},
		{"workload keys", "wckeys", "with_deleted=true", "", 0},
		{"clusters", "clusters", "with_deleted=true", "", 0},
		{"config", "config", "", "", 0},
	} {
		for _, v := range api.Versions {
			for _, spelling := range []schema.Spelling{schema.Sched, schema.Slurm} {
				for _, user := range []string{"slurm", "bob", "alice"} { // administrator, operator, coordinator
					if user != "slurm" && v != api.Latest {
						continue
					}
					t.Run(strings.Join([]string{kind.name, v.String(), path(spelling), user}, "/"), func(t *testing.T) {
						token := tokens[user]
						prefix := "/" + path(spelling) + "/" + v.String() + "/"
						query := kind.query
						if v < kind.since {
							query = kind.old
						}
						shown, err := sendRequest(m.client(gatewaySocket), "GET", prefix+kind.path+"?"+query, "", "X-SLURM-USER-TOKEN: "+token)
						must(t, err)
						if user == "alice" && shown.status == http.StatusForbidden {
							return // a coordinator may not list workload keys
						}
						if shown.status != http.StatusOK {
							t.Fatalf("GET: status %d: %s", shown.status, remarks(shown.body))
						}
						a, err := sendRequest(m.client(gatewaySocket), "POST", prefix+kind.path, string(shown.body), "X-SLURM-USER-TOKEN: "+token)
						must(t, err)
						if a.status != http.StatusOK {
							t.Errorf("POST: status %d: %s\n%s", a.status, remarks(a.body), shown.body)
						}
						if after := m.dump(t, accountingTables...); after != before {
							t.Errorf("the request changed\n%s\nto\n%s", linesNotIn(before, after), linesNotIn(after, before))
							before = after
						}
					})
				}
			}
		}
	}
}

// path returns the first part of the paths of accounting.
func path(s schema.Spelling) string {
	if s == schema.Sched {
		return "scheddb"
	}
	return "slurmdb"
}

// testCopiedConfig loads the configuration of a cluster into a new one. What
// was inherited must be inherited there, too.
func (m *machine) testCopiedConfig(t *testing.T) {
	m.run(t, "root", strings.Fields("sacctmgr -i -Q add cluster east")...)
	prefix := "/slurmdb/" + api.Latest.String() + "/"
	shown, err := sendRequest(m.client(gatewaySocket), "GET", prefix+"config", "", "X-SLURM-USER-TOKEN: "+m.admin)
	must(t, err)
	var config struct {
		Clusters, Associations, Wckeys json.RawMessage
	}
	must(t, json.Unmarshal(shown.body, &config))
	var associations []map[string]any
	must(t, json.Unmarshal(config.Associations, &associations))
	associations = slices.DeleteFunc(associations, func(a map[string]any) bool { return a["cluster"] != "lab" })
	for _, a := range associations {
		a["cluster"] = "east"
		delete(a, "id")
	}
	body, err := json.Marshal(map[string]any{"associations": associations})
	must(t, err)
	a, err := sendRequest(m.client(gatewaySocket), "POST", prefix+"config", string(body), "X-SLURM-USER-TOKEN: "+m.admin)
	must(t, err)
	if a.status != http.StatusOK {
		t.Fatalf("status %d: %s\n%s", a.status, remarks(a.body), body)
	}
	rows := func(cluster string) []string {
		out := m.run(t, "root", "mariadb", "-N", "slurm_acct_db", "-e", "select acct, user, `partition`, parent_acct, if(user='', 0, is_def), shares, max_jobs, max_jobs_accrue, min_prio_thresh, max_submit_jobs, max_tres_pj, max_tres_pn, max_tres_mins_pj, "+
			"max_wall_pj, grp_jobs, grp_tres, priority, def_qos_id, qos, delta_qos from "+cluster+"_assoc_table where deleted=0 order by acct, user, `partition`")
		return strings.Split(out, "\n")
	}
	lab, east := rows("lab"), rows("east")
	if len(lab) != len(east) {
		t.Fatalf("%d associations became %d", len(lab), len(east))
	}
	for i := range lab {
		fields, copied := strings.Split(lab[i], "\t"), strings.Split(east[i], "\t")
		if qos, delta := len(fields)-2, len(fields)-1; fields[delta] != "" { // an answer does not show whether a QOS was added to inherited ones
			fields[qos], fields[delta], copied[qos], copied[delta] = "", "", "", ""
		}
		if !slices.Equal(fields, copied) {
			t.Errorf("an association became another:\n%q\n%q", fields, copied)
		}
	}
}

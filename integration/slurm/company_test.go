package slurm

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A contest is a record that several clients change at the same time. Each
// client changes a field of its own.
type contest struct {
	name string
	path string
	// Each function returns the request that sets a client's field to the value n.
	fields []func(n int) string
	// show is a query of the database. Its answer contains, for each client, what
	// shown returns for its last value.
	show  string
	shown []func(n int) string
	costs bool // each change takes about a second, so a client makes one in a round, in 40 rounds at most
}

func text(format string) func(int) string {
	return func(n int) string { return strings.ReplaceAll(format, "%d", strconv.Itoa(n)) }
}

const association = `{"associations":[{"account":"ca","cluster":"lab","user":"",%s}]}`

var contests = []contest{
	{name: "limits of an association", path: "associations",
		fields: []func(int) string{
			text(fmt.Sprintf(association, `"max":{"tres":{"total":[{"type":"cpu","count":%d}]}}`)),
			text(fmt.Sprintf(association, `"max":{"tres":{"minutes":{"per":{"job":[{"type":"cpu","count":%d}]}}}}`)), // of one list, the later one remains (api.LimitsReplaced)
			text(fmt.Sprintf(association, `"max":{"jobs":{"active":{"set":true,"number":%d}}}`)),
			text(fmt.Sprintf(association, `"comment":"c%d"`)),
		},
		show:  "select concat(',', grp_tres, ',', ' m', max_tres_mins_pj, ',', ' j=', ifnull(max_jobs, 0), ';', ifnull(comment, ''), ';') from lab_assoc_table where acct='ca' and user='' and deleted=0",
		shown: []func(int) string{text(",1=%d,"), text(" m1=%d,"), text(" j=%d;"), text(";c%d;")}},
	{name: "a QOS", path: "qos",
		fields: []func(int) string{
			text(`{"qos":[{"name":"cq","limits":{"max":{"tres":{"per":{"job":[{"type":"cpu","count":%d}]}}}}}]}`),
			text(`{"qos":[{"name":"cq","limits":{"max":{"tres":{"per":{"job":[{"type":"mem","count":%d}]}}}}}]}`),
			text(`{"qos":[{"name":"cq","description":"d%d"}]}`),
			text(`{"qos":[{"name":"cq","priority":{"set":true,"number":%d}}]}`),
		},
		show:  "select concat(',', max_tres_pj, ',', ' ', description, ' p=', priority, ';') from qos_table where name='cq' and deleted=0",
		shown: []func(int) string{text(",1=%d,"), text(",2=%d,"), text(" d%d "), text(" p=%d;")}},
	{name: "an account and its coordinators", path: "accounts",
		fields: []func(int) string{
			text(`{"accounts":[{"name":"ca","description":"d%d","organization":"o"}]}`), // each request must have these two fields
			func(n int) string {
				names := []string{`{"name":"alice"}`, `{"name":"bob"}`}
				return `{"accounts":[{"name":"ca","description":"d","organization":"o","coordinators":[` + names[n%2] + `]}]}`
			},
		},
		show:  "select concat('c=', ifnull((select group_concat(user) from acct_coord_table where acct='ca' and deleted=0), ''), ';')",
		shown: []func(int) string{text(""), func(n int) string { return "c=" + []string{"alice", "bob"}[n%2] + ";" }}},
	{name: "counts of an association", path: "associations",
		fields: []func(int) string{
			text(fmt.Sprintf(association, `"shares_raw":%d`)),
			text(fmt.Sprintf(association, `"priority":{"set":true,"number":%d}`)),
			text(fmt.Sprintf(association, `"max":{"jobs":{"total":{"set":true,"number":%d}}}`)),
			text(fmt.Sprintf(association, `"max":{"per":{"account":{"wall_clock":{"set":true,"number":%d}}}}`)),
		},
		show:  "select concat('s=', shares, ' p=', ifnull(priority, 0), ' m=', ifnull(max_submit_jobs, 0), ' w=', ifnull(grp_wall, 0), ';') from lab_assoc_table where acct='ca' and user='' and deleted=0",
		shown: []func(int) string{text("s=%d "), text(" p=%d "), text(" m=%d "), text(" w=%d;")}},
	{name: "workload keys", path: "wckeys",
		fields: []func(int) string{
			text(`{"wckeys":[{"name":"a%d","user":"cu","cluster":"lab"}]}`), text(`{"wckeys":[{"name":"b%d","user":"cu","cluster":"lab"}]}`),
			text(`{"wckeys":[{"name":"c%d","user":"cu","cluster":"lab"}]}`), text(`{"wckeys":[{"name":"d%d","user":"cu","cluster":"lab"}]}`),
		},
		show:  "select group_concat(',', wckey_name, ',') from lab_wckey_table where user='cu' and deleted=0",
		shown: []func(int) string{text(",a%d,"), text(",b%d,"), text(",c%d,"), text(",d%d,")}},
	{name: "a user", path: "users",
		fields: []func(int) string{
			func(n int) string {
				return `{"users":[{"name":"cu","administrator_level":["` + []string{"Operator", "None"}[n%2] + `"]}]}`
			},
			func(n int) string {
				return `{"users":[{"name":"cu","default":{"account":"` + []string{"ca", "cb"}[n%2] + `"}}]}`
			},
		},
		show:  "select concat('l=', admin_level, ' a=', ifnull((select group_concat(acct) from lab_assoc_table where user='cu' and is_def=1 and deleted=0), ''), ';') from user_table where name='cu' and deleted=0",
		shown: []func(int) string{func(n int) string { return []string{"l=2 ", "l=1 "}[n%2] }, func(n int) string { return []string{" a=ca;", " a=cb;"}[n%2] }}},
	{name: "clusters", path: "clusters",
		fields: []func(int) string{text(`{"clusters":[{"name":"a%d"}]}`), text(`{"clusters":[{"name":"b%d"}]}`), text(`{"clusters":[{"name":"c%d"}]}`), text(`{"clusters":[{"name":"d%d"}]}`)},
		show:   "select group_concat(',', name, ',') from cluster_table where deleted=0",
		shown:  []func(int) string{text(",a%d,"), text(",b%d,"), text(",c%d,"), text(",d%d,")},
		costs:  true},
}

// TestCompany lets two and four clients change fields of one record at the same
// time. A value that was answered 200 must be in the database, because no other
// client changes its field. SLURM_ROUNDS is the number of rounds, most of them
// with 20 changes by every client. SLURM_SNAPSHOT=ON turns on MariaDB's snapshot
// isolation, with which slurmdbd of Slurm 26.05 ends.
func TestCompany(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("SLURM_ROUNDS"))
	rounds = max(rounds, 1)
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("not for this run: users_association is new in 23.11")
	}
	if os.Getenv("SLURM_SNAPSHOT") == "ON" {
		m.run(t, "root", "mariadb", "-e", "set global innodb_snapshot_isolation=ON")
		m.signal(t, "slurmdbd", "TERM") // the setting is that of new connections
		eventually(t, "slurmdbd has ended", func() bool {
			_, err := m.try("root", "pgrep", "-x", "slurmdbd")
			return err != nil
		})
		m.restart(t, "slurmdbd")
	}
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	token, err := m.createToken("root")
	must(t, err)
	post := func(path, body string) answer {
		a, err := sendRequest(m.client(gatewaySocket), "POST", "/slurmdb/v0.0.42/"+path, body, "X-SLURM-USER-TOKEN: "+token)
		if err != nil {
			t.Error(err)
		}
		return a
	}
	for _, setup := range []struct{ path, body string }{
		{"accounts", `{"accounts":[{"name":"ca","description":"d","organization":"o"},{"name":"cb","description":"d","organization":"o"}]}`},
		{"associations", `{"associations":[{"account":"ca","cluster":"lab","user":""},{"account":"cb","cluster":"lab","user":""}]}`},
		{"users_association", `{"association_condition":{"users":["cu"],"accounts":["ca","cb"],"clusters":["lab"]},"user":{}}`},
		{"qos", `{"qos":[{"name":"cq","description":"d"}]}`},
	} {
		if a := post(setup.path, setup.body); a.status != http.StatusOK {
			t.Fatalf("%s: status %d: %s", setup.path, a.status, remarks(a.body))
		}
	}
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewSource(seed))
	for _, c := range contests {
		t.Run(c.name, func(t *testing.T) {
			counts, rounds, changes := map[int]int{}, rounds, 20
			if c.costs {
				rounds, changes = min(rounds, 40), 1
			}
			for round := range rounds {
				clients := chance.Perm(len(c.fields))[:min(len(c.fields), 2+2*(round%2))]
				last := make([]int, len(c.fields))
				var wg sync.WaitGroup
				var mu sync.Mutex
				for _, i := range clients {
					first := 1 + chance.Intn(1000)
					wg.Go(func() {
						for n := first; n < first+changes; n++ {
							a := post(c.path, c.fields[i](n))
							mu.Lock()
							counts[a.status]++
							mu.Unlock()
							switch {
							case a.status == http.StatusOK:
								last[i] = n
							case a.status != http.StatusServiceUnavailable || !isRetryable(a.body):
								t.Errorf("client %d: status %d: %s", i, a.status, remarks(a.body))
							default:
								t.Logf("client %d: %s", i, remarks(a.body))
							}
						}
					})
				}
				wg.Wait()
				row := m.run(t, "root", "mariadb", "-N", "slurm_acct_db", "-e", c.show)
				for _, i := range clients {
					if last[i] != 0 && !strings.Contains(row, c.shown[i](last[i])) {
						t.Errorf("round %d: %q lacks %q, which was answered 200", round, row, c.shown[i](last[i]))
					}
				}
			}
			t.Logf("answers by status: %v", counts)
		})
	}
}

func isRetryable(body []byte) bool {
	var a struct {
		Errors []struct {
			Retryable bool `json:"retryable"`
			Number    int  `json:"error_number"`
		} `json:"errors"`
	}
	return json.Unmarshal(body, &a) == nil && len(a.Errors) > 0 && a.Errors[0].Retryable && a.Errors[0].Number == 0
}

// TestAfterRefusals makes another change after each refused request with a new
// cluster. slurmdbd can't roll back a new cluster, and then refuses the other
// change, too.
func TestAfterRefusals(t *testing.T) {
	m := freshCluster(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	token, err := m.createToken("root")
	must(t, err)
	long := strings.Repeat("x", 70)
	for i, tt := range []struct {
		path, body string
		status     int
		clusters   string // that exist afterwards
	}{
		{"config", `{"clusters":[{"name":"half"}],"qos":[{"name":"qz","preempt":{"list":["nosuch"]}}]}`, 422, "lab"},
		{"config", `{"clusters":[{"name":"half"}],"accounts":[{"name":"ra","description":"d","organization":"o"}],"associations":[{"account":"ra","cluster":"half","user":"","parent_account":"nosuch"}]}`, 404, "lab"},
		{"config", `{"clusters":[{"name":"` + long + `"}]}`, 422, "lab"},
		{"clusters", `{"clusters":[{"name":"half"},{"name":"` + long + `"}]}`, 422, "lab"},
		{"clusters", `{"clusters":[{"name":"half"},{"name":"a b"}]}`, 422, "lab"},
		{"config", `{"clusters":[{"name":"whole"}],"accounts":[{"name":"ra","description":"d","organization":"o"}],"users":[{"name":"ru","default":{"account":"ra"}}],
			"associations":[{"account":"ra","cluster":"whole","user":""},{"account":"ra","cluster":"whole","user":"ru"}]}`, 200, "lab whole"},
		{"clusters", `{"clusters":[{"name":"one"},{"name":"` + strings.Repeat("y", 40) + `"}]}`, 200, "lab one whole " + strings.Repeat("y", 40)},
	} {
		a, err := sendRequest(m.client(gatewaySocket), "POST", "/slurmdb/v0.0.42/"+tt.path, tt.body, "X-SLURM-USER-TOKEN: "+token)
		must(t, err)
		if a.status != tt.status {
			t.Errorf("%s %s: status %d, want %d: %s", tt.path, tt.body, a.status, tt.status, remarks(a.body))
		}
		if got := strings.Join(strings.Fields(m.run(t, "root", "sacctmgr", "-nP", "show", "cluster", "format=cluster")), " "); got != tt.clusters {
			t.Errorf("%s %s: clusters %q, want %q", tt.path, tt.body, got, tt.clusters)
		}
		if out, err := m.try("root", "sacctmgr", "-i", "add", "account", fmt.Sprintf("after%d", i)); err != nil {
			t.Errorf("after %s %s: %v: %s", tt.path, tt.body, err, out)
		}
	}
}

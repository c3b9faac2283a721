package cli

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// usageServer answers requests for usage, and stores their parameters.
type usageServer struct{ query url.Values }

func (s *usageServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/v0.0.45/ping/"):
		fmt.Fprint(w, `{"pings": []}`)
	case r.URL.Path == "/scheddb/v0.0.45/usage/" && r.Header.Get("Accept") == "text/csv":
		s.query = r.URL.Query()
		w.Header().Set("Content-Type", "text/csv")
		fmt.Fprint(w, "cluster,user,allocated\ndemo,\"a,b\x1b[2J\",90\n")
	case r.URL.Path == "/scheddb/v0.0.45/usage/" && r.URL.Query().Get("account") == "secret":
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"errors": [{"description": "no access"}]}`)
	case strings.HasSuffix(r.URL.Path, "db/v0.0.45/accounts/"):
		fmt.Fprint(w, `{"accounts": [{"name": "idle"}, {"name": "a"}, {"name": "b"}]}`)
	case strings.HasSuffix(r.URL.Path, "db/v0.0.45/users/"):
		fmt.Fprint(w, `{"users": []}`)
	case strings.HasSuffix(r.URL.Path, "db/v0.0.45/clusters/"):
		fmt.Fprint(w, `{"clusters": [{"name": "west"}]}`)
	case strings.HasSuffix(r.URL.Path, "db/v0.0.45/qos/"):
		fmt.Fprint(w, `{"qos": [{"name": "fast"}]}`)
	case r.URL.Path == "/scheddb/v0.0.45/usage/" && strings.Contains(r.URL.Query().Get("account"), "idle"):
		s.query = r.URL.Query()
		fmt.Fprint(w, `{"usage": []}`)
	case r.URL.Path == "/scheddb/v0.0.45/usage/":
		s.query = r.URL.Query()
		fmt.Fprint(w, `{"usage": [
			{"cluster": "demo", "account": "a b", "user": "", "partition": "", "accounts": ["x", "y"], "tres": "cpu", "start": 0, "end": 3600, "allocated": 90, "jobs": 7, "min_size": 50, "max_size": 249},
			{"cluster": "demo", "account": "c\u001b[2J", "user": "ann", "partition": "p", "accounts": [], "tres": "gres/gpu", "start": 3600, "end": 7200, "allocated": 18446744073709551615, "jobs": 0, "min_size": 1000}], "rolled_up": [{"cluster": "demo", "until": 7200}]}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"errors": [{"description": "no such path"}]}`)
	}
}

// TestUsage checks the parameters of the request, and the output in each format.
func TestUsage(t *testing.T) {
	t.Setenv("TZ", "UTC")
	for _, tt := range []struct {
		args   string
		status int
		want   string
		query  string
		errOut string
	}{
		{"usage associations --unit seconds", 0, `CLUSTER  ACCOUNT   USER  PARTITION  TRES                 ALLOCATED
demo     a_b       -     -          cpu                         90
demo     c\x1b[2J  ann   p          gres/gpu  18446744073709551615
`, "report=associations&tres=cpu", "note: usage is rolled up to 1970-01-01T02:00\n"},
		{"usage associations --by hour --since 2026-01-02 --until 2026-01-03T04:00", 0, `CLUSTER  ACCOUNT   USER  PARTITION  TRES      START                         ALLOCATED
demo     a_b       -     -          cpu       1970-01-01T00:00:00                   2
demo     c\x1b[2J  ann   p          gres/gpu  1970-01-01T01:00:00  307445734561825856
`, "by=hour&end=1767412800&report=associations&start=1767312000&tres=cpu", "note: usage"},
		{"usage job_sizes --unit hours --sizes 50,250 --account a,b --tres all", 0, `CLUSTER  ACCOUNT   MIN_SIZE  MAX_SIZE  JOBS  TRES             ALLOCATED
demo     a_b             50       249     7  cpu                      0
demo     c\x1b[2J      1000         -     0  gres/gpu  5124095576030431
`, "account=a,b&report=job_sizes&sizes=50,250", "note: usage"},
		{"usage top_users --top 3 -u ann --cluster demo,west -o json", 0, "", "cluster=demo,west&report=top_users&top=3&tres=cpu&user=ann", ""},
		{"usage wckeys --wckey k --tres cpu,mem -o yaml", 0, "", "report=wckeys&tres=cpu,mem&wckey=k", ""},
		{"usage qos --qos fast -o csv", 0, "cluster,user,allocated\ndemo,\"a,b\\x1b[2J\",90\n", "qos=fast&report=qos&tres=cpu", ""},
		{"usage associations --account idle", 0, "CLUSTER  ACCOUNT  USER  PARTITION  TRES  ALLOCATED\n", "account=idle&report=associations&tres=cpu", "note: nothing is recorded for this time"},
		{"usage associations --account idle,idel", statusUnknown, "", "account=idle,idel&report=associations&tres=cpu", "error: account idel is unknown\nhint: did you mean idle?\n"},
		{"usage --account y -u ann --cluster demo -o json", 0, "", "account=y&cluster=demo&report=cluster&tres=cpu&user=ann", ""}, // all are in the records
		{"usage -u annn", statusUnknown, "", "report=cluster&tres=cpu&user=annn", "error: user annn is unknown"},
		{"usage -u ann,bobb -o csv", statusUnknown, "cluster,user,allocated\ndemo,\"a,b\\x1b[2J\",90\n", "report=cluster&tres=cpu&user=ann,bobb", "user bobb is unknown"},
		{"usage --cluster wset -o json", statusUnknown, "", "cluster=wset&report=cluster&tres=cpu", "error: cluster wset is unknown\nhint: did you mean west?\n"},
		{"usage accounts --account secret", statusDenied, "", "", "no access"},
		{"usage nosuch", statusUsage, "", "", "unknown report nosuch"},
		{"usage users more", statusUsage, "", "", "unexpected argument"},
		{"usage --by week", statusUsage, "", "", "no such period"},
		{"usage --unit weeks", statusUsage, "", "", "unknown unit"},
		{"usage --since soon", statusUsage, "", "", "not a time"},
		{"usage --since 2999-01-01", statusUsage, "", "", "in the future"},
		{"usage -o wide", statusUsage, "", "", "unknown format"},
	} {
		s := &usageServer{}
		status, out, errOut := runAgainst(t, s, strings.Fields(tt.args)...)
		query, _ := url.QueryUnescape(s.query.Encode())
		if status != tt.status || query != tt.query || !strings.Contains(errOut, tt.errOut) || tt.errOut == "" && errOut != "" {
			t.Errorf("%s: status %d, query %s, %s", tt.args, status, query, errOut)
		}
		if diff := gocmp.Diff(tt.want, out); tt.want != "" && diff != "" {
			t.Errorf("%s: -want +got\n%s", tt.args, diff)
		}
		if tt.want == "" && tt.status == 0 && (!strings.Contains(out, "18446744073709551615") || strings.Contains(out, "\x1b")) {
			t.Errorf("%s: %s", tt.args, out)
		}
	}
	for _, format := range []string{"table", "csv"} {
		status, out, errOut := runCommand(t, &gateway{}, "usage", "-o", format)
		if status != statusFailed || out != "" || !strings.Contains(errOut, "has no reports of usage") || !strings.Contains(errOut, "use sreport") {
			t.Errorf("slurmrestd, %s: status %d, %s%s", format, status, out, errOut)
		}
	}
}

// TestUsageEnd checks that a period without an end ends by the clock of this machine,
// whatever the time zone of the gateway is.
func TestUsageEnd(t *testing.T) {
	now := time.Date(2026, 3, 5, 10, 30, 15, 0, time.FixedZone("IST", 19800))
	midnight := time.Date(2026, 3, 5, 0, 0, 0, 0, now.Location()).Unix()
	for _, tt := range []struct {
		period
		want int64
	}{
		{period{"today", ""}, now.Unix()}, {period{"2h", ""}, now.Unix()}, {period{"yesterday", ""}, midnight}, {period{"4w", ""}, midnight},
		{period{"4w", "yesterday"}, midnight - 86400}, {period{"", ""}, 0},
	} {
		u := usageRequest{period: tt.period, unit: "minutes"}
		query, err := u.query("cluster", now)
		if end, _ := strconv.ParseInt(query.Get("end"), 10, 64); err != nil || end != tt.want {
			t.Errorf("%+v: ends at %d, %v; want %d", tt.period, end, err, tt.want)
		}
	}
}

// TestSeenNames checks which names count as seen in a record of usage and in a priority:
// only those that the filter names, of the same kind.
func TestSeenNames(t *testing.T) {
	values := map[string]string{"accounts": "a,b", "account": "c", "user": "ann", "cluster": "demo", "qos": "fast"}
	u := usageRequest{filter: filter{accounts: []string{"b", "c", "ann"}, users: []string{"ann", "c"}, clusters: []string{"demo"}, qos: []string{"slow"}}}
	u.seeUsage(func(field string) string { return values[field] })
	want := map[seenName]bool{{&accountKind, "b"}: true, {&accountKind, "c"}: true, {&userKind, "ann"}: true, {&clusterKind, "demo"}: true}
	if !maps.Equal(u.seen, want) {
		t.Errorf("usage: %v", u.seen)
	}
	f := filter{users: []string{"p"}, partitions: []string{"p", "q"}, qos: []string{"fast"}}
	f.seePriority(record{{"user_name", "ann"}, {"partition", "p"}, {"qos", "fast"}, {"account", "q"}})
	if !maps.Equal(f.seen, map[seenName]bool{{&partitionKind, "p"}: true, {&qosKind, "fast"}: true}) {
		t.Errorf("priority: %v", f.seen)
	}
}

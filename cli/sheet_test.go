package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// A recordServer answers requests for priorities, shares and accounting records,
// and stores their parameters.
type recordServer struct{ queries []string }

func (s *recordServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, operation, _ := strings.Cut(r.URL.Path, "/v0.0.45/")
	query := r.URL.Query()
	if query.Del("fields"); len(query) > 0 {
		s.queries = append(s.queries, operation+" "+strings.NewReplacer("%2C", ",", "%5B", "[", "%5D", "]").Replace(query.Encode()))
	}
	jobs := map[string]string{
		"13": `{"job_id": 15, "array_job_id": {"set": true, "number": 13}, "array_task_id": {"set": true, "number": 4}, "job_state": ["PENDING"], "user_name": "ann"}`,
		"14": `{"job_id": 14, "job_state": ["RUNNING"], "user_name": "ann"}`,
	}
	record := `{"job_id": 21, "cluster": "lab", "user": "ann", "account": "a", "state": {"current": ["COMPLETED"]}, "exit_code": {"return_code": {"set": true, "number": 3}},
		"time": {"elapsed": 100, "limit": {"set": true, "number": 10}}, "required": {"CPUs": 3}, "tres": {"allocated": [{"type": "cpu", "count": 4}, {"type": "mem", "count": 512}, {"type": "node", "count": 2}],
		"requested": [{"type": "mem", "count": 256}]}, "steps": [
		{"state": ["COMPLETED"], "time": {"total": {"seconds": 15, "microseconds": 1300000}}, "tres": {"requested": {"total": [{"type": "mem", "count": 104857600}]}}},
		{"state": ["COMPLETED"], "time": {"total": {"seconds": 102, "microseconds": 200000}}, "tres": {"requested": {"total": [{"type": "mem", "count": 1000}]}}}]}`
	running := strings.NewReplacer(`"job_id": 21`, `"job_id": 23, "het": {"job_id": 22, "job_offset": {"set": true, "number": 1}}`, `["COMPLETED"]}, "exit`, `["RUNNING"]}, "exit`).Replace(record)
	waiting := `{"job_id": 24, "cluster": "lab", "user": "b\u001b[2J", "state": {"current": ["PENDING"]}, "time": {"elapsed": 0, "limit": {"set": false}}, "required": {"CPUs": 1}, "tres": {}, "steps": []}`
	unmeasured := strings.ReplaceAll(strings.Replace(waiting, "PENDING", "FAILED", 1), `"steps": []`, `"steps": [{"state": ["FAILED"], "time": {"total": {"seconds": 0, "microseconds": 0}}, "tres": {}}]`)
	requeued := strings.NewReplacer(`"job_id": 21`, `"job_id": 26`, `["COMPLETED"]}, "exit`, `["PENDING", "REQUEUED"]}, "exit`, `"elapsed": 100,`, `"elapsed": 3, "end": 9,`).Replace(record) + ", " +
		strings.Replace(record, `"job_id": 21`, `"job_id": 26`, 1)
	switch {
	case operation == "ping/":
		fmt.Fprint(w, `{"pings": []}`)
	case operation == "jobs/priority/" && strings.HasPrefix(r.URL.Path, "/sched/"):
		fmt.Fprint(w, `{"priorities": [
			{"job_id": 12, "user_name": "bob", "account": "b", "partition": "p", "qos": "", "priority": 7, "set": true, "parts": {"age": 0.0, "association": 0.0, "fairshare": 0.0, "job_size": 0.0, "partition": 0.0, "qos": 0.0, "tres": [], "site": 0, "nice": 0}},
			{"job_id": 15, "user_name": "ann", "account": "a\u001b[2J", "partition": "p", "qos": "fast", "priority": 1263, "set": false, "parts": {"age": 0.6, "association": 1.5, "fairshare": 1234.75, "job_size": 2.5, "partition": 3.0, "qos": 4.0, "tres": [{"name": "cpu", "value": 7.25}, {"name": "mem", "value": 0.6}], "site": 5, "nice": -6}}]}`)
	case operation == "shares":
		share := func(name, kind, parent, shares, factor, level string) string {
			return fmt.Sprintf(`{"id": 1, "cluster": "lab", "name": %q, "parent": %q, "type": [%q], "partition": "", "shares_normalized": {"set": true, "infinite": false, "number": 0.25}, "shares": %s, "effective_usage": {"set": true, "infinite": false, "number": 0.5},
				"usage_normalized": {"set": false, "infinite": false, "number": 0}, "usage": 1234567, "fairshare": {"factor": {"set": true, "infinite": false, "number": %s}, "level": %s}}`, name, parent, kind, shares, factor, level)
		}
		set := func(n string) string { return `{"set": true, "infinite": false, "number": ` + n + `}` }
		fmt.Fprintf(w, `{"shares": {"shares": [%s], "total_shares": 9}}`, strings.Join([]string{
			share("root", "ASSOCIATION", "", `{"set": false, "infinite": false, "number": 0}`, "0", `{"set": false, "infinite": false, "number": 0}`), share("a", "ASSOCIATION", "root", set("10"), "0", set("0.5")),
			share("b", "ASSOCIATION", "a", set("1"), "0", set("2")), share("ann", "USER", "b", set("2147483647"), "0.125", set("9")), share("bob", "USER", "a", set("3"), "1", `{"set": false, "infinite": true, "number": 0}`),
		}, ", "))
	case strings.HasPrefix(operation, "job/") && jobs[strings.TrimPrefix(operation, "job/")] != "":
		fmt.Fprintf(w, `{"jobs": [%s]}`, jobs[strings.TrimPrefix(operation, "job/")])
	case operation == "jobs/" && strings.HasSuffix(strings.Split(r.URL.Path, "/v0")[0], "db"):
		list := map[string]string{"21": record, "22": running, "24": waiting, "26": requeued, "25": strings.Replace(unmeasured, "24", "25", 1)}[r.URL.Query().Get("step")]
		fmt.Fprintf(w, `{"jobs": [%s]}`, list)
	case operation == "accounts/", operation == "qos/", operation == "partitions/":
		fmt.Fprintf(w, `{"%s": [{"name": "a"}, {"name": "q"}]}`, strings.TrimSuffix(operation, "/"))
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"errors": [{"description": "no such path"}]}`)
	}
}

// TestSheets checks what the commands priority, shares and seff print in each
// format, and the parameters of their requests.
func TestSheets(t *testing.T) {
	for _, tt := range []struct {
		args   string
		status int
		want   string
		query  string // the last
		errOut string
	}{
		{"priority --user ann,bob -A a -p p,q --qos fast", 0, `JOBID  PARTITION  QOS   USER  ACCOUNT   PRIORITY  SITE  AGE  ASSOC  FAIRSHARE  JOBSIZE  PARTFACTOR  QOSFACTOR  NICE  TRES
15     p          fast  ann   a\x1b[2J      1263     5    1      2       1235        2           3          4    -6  cpu=7,mem=1
12     p          -     bob   b                7     0    0      0          0        0           0          0     0  -
`, "jobs/priority/ account=a&partition=p,q&qos=fast&users=ann,bob", ""},
		{"priority 13 14", 0, "13_4   p  ", "jobs/priority/ job_id=15", "warning: job 14 has no priority: it does not wait"},
		{"priority --me -o csv", 0, "job_id,partition,qos,user_name,account,priority,set,parts.site,parts.age,", "jobs/priority/ users=ann", ""},
		{"priority 14 -o json", 0, `{"priorities": []}`, "", "warning: job 14 has no priority"},
		{"priority -A a,zz --qos none", statusUnknown, "", "jobs/priority/ account=a,zz&qos=none", "account zz is unknown\nqos none is unknown\n"},
		{"priority -p p,zz", statusUnknown, "15     p  ", "jobs/priority/ partition=p,zz", "partition zz is unknown"},
		{"priority 77", statusUnknown, "", "", "job 77 is unknown"},
		{"priority -o wide", statusUsage, "", "", "unknown format"},
		{"shares", 0, `ACCOUNT  USER  RAWSHARES  NORMSHARES  RAWUSAGE  NORMUSAGE  EFFECTVUSAGE  FAIRSHARE   LEVELFS
root     -             -    0.250000   1234567          -      0.500000          -         -
 a       -            10    0.250000   1234567          -      0.500000          -  0.500000
  b      -             1    0.250000   1234567          -      0.500000          -  2.000000
   b     ann      parent    0.250000   1234567          -      0.500000   0.125000         -
  a      bob           3    0.250000   1234567          -      0.500000   1.000000       inf
`, "", ""},
		{"shares -A a,x", statusUnknown, `ACCOUNT  USER  RAWSHARES  NORMSHARES  RAWUSAGE  NORMUSAGE  EFFECTVUSAGE  FAIRSHARE   LEVELFS
a        -            10    0.250000   1234567          -      0.500000          -  0.500000
 a       bob           3    0.250000   1234567          -      0.500000   1.000000       inf
`, "shares accounts=a,x", "account x is unknown"}, // the server sends all of them, as slurmrestd does
		{"shares -u bob", 0, "ACCOUNT  USER  RAWSHARES  NORMSHARES  RAWUSAGE  NORMUSAGE  EFFECTVUSAGE  FAIRSHARE   LEVELFS\nroot     -             -    0.250000   1234567          -      0.500000          -         -\n a       -            10    0.250000   1234567          -      0.500000          -  0.500000\n" +
			"  b      -             1    0.250000   1234567          -      0.500000          -  2.000000\n  a      bob           3 ", "shares users=bob", ""},
		{"shares --me -o csv", 0, "lab,USER,ann,b,,2147483647,0.25,1234567,,0.5,0.125,9\n", "shares users=ann", ""},
		{"shares -o yaml", 0, "  cluster: lab\n", "", ""},
		{"shares extra", statusUsage, "", "", "unexpected argument"},
		{"seff 24 22 21 25", 0, `JOBID  USER      STATE      NODES  CPUS  TIME  LIMIT  TIME%  CPUTIME   CPU%  MEMORY  PEAK   MEM%
21     ann       COMPLETED      2     4  1:40  10:00  16.7%     1:59  29.8%    512M  100M  19.5%
22+1   ann       RUNNING        2     4  1:40  10:00  16.7%     1:59      -    512M  100M      -
24     b\x1b[2J  PENDING        0     0  0:00      -      -        -      -       -     -      -
25     b\x1b[2J  FAILED         0     0  0:00      -      -     0:00      -       -     -      -
`, "jobs/ step=25", "warning: what the steps that run have used is not known before they end"},
		{"seff 21 -o json", 0, `"cpu_time": {
    "allocated": 400,
    "used": 119,
    "efficiency": 0.2975
  }`, "", ""},
		{"seff 26 --output csv", 0, "\n26,26,lab,ann,a,COMPLETED,3,2,3,4,100,", "", ""}, // its last run
		{"seff 24 -o csv", 0, `24,24,lab,b\x1b[2J,,PENDING,0,0,1,0,0,,,0,,,0,0,,` + "\n", "", ""},
		{"seff 99", statusUnknown, "", "", "job 99 is unknown"},
		{"seff 99 -o json", statusUnknown, `{"jobs": []}`, "", "job 99 is unknown"},
		{"seff x", statusUsage, "", "", "is not a job id"},
		{"seff", statusUsage, "", "", "no job is named"},
	} {
		s := &recordServer{}
		status, out, errOut := runAgainst(t, s, strings.Fields(tt.args)...)
		if status != tt.status || !strings.Contains(out, tt.want) || !strings.Contains(errOut, tt.errOut) {
			t.Errorf("%s: status %d\n%s%s%s", tt.args, status, out, errOut, gocmp.Diff(tt.want, out))
		}
		if tt.args == "seff 99" && out != "" {
			t.Errorf("%s: %s", tt.args, out)
		}
		if strings.HasSuffix(tt.args, "json") && !json.Valid([]byte(out)) {
			t.Errorf("%s: %s", tt.args, out)
		}
		if tt.query != "" && (len(s.queries) == 0 || s.queries[len(s.queries)-1] != tt.query) {
			t.Errorf("%s: requests %q", tt.args, s.queries)
		}
	}
}

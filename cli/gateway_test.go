package cli

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/internal/errs"
)

// A gateway is a test server with a few jobs. If states is set, the server
// answers each request for job 5 with the next element of states. After the
// last element, it repeats that element. An element contains the job's state,
// and may contain the job's exit code.
type gateway struct {
	t *testing.T

	mu          sync.Mutex // guards the fields below
	states      []string
	submitted   map[string]any
	headers     http.Header
	cancelled   []string
	limited     bool // only capacity jobs can be cancelled, then the server fails
	capacity    int
	started     string   // id of a job that has started since the list was read
	queries     []string // of requests for accounting records
	changed     []string // ids of jobs, each followed by the body of the request
	jobs        string   // the list of jobs; "" for jobList
	failures    int      // number of initial requests for job 5 that are answered with 503
	description string   // state_description of job 5
	explanation string   // why job 5 waits, if the server explains it
	openapi     string   // the OpenAPI document; "" for none
}

const jobList = `{"jobs": [
 {"job_id": 12, "name": "train\u001b[2J", "user_name": "ann", "account": "a", "partition": "gpu", "job_state": ["RUNNING"], "start_time": {"set": true, "number": 100}, "time_limit": {"infinite": true}, "node_count": {"set": true, "number": 2}, "cpus": {"set": true, "number": 64}, "nodes": "node[1-2]"},
 {"job_id": 3, "name": "wait", "user_name": "bob", "account": "b", "partition": "cpu,gpu", "job_state": ["PENDING"], "state_reason": "Priority", "time_limit": {"set": true, "number": 90}, "cpus": {"set": true, "number": 1}},
 {"job_id": 4, "name": "done", "user_name": "ann", "partition": "cpu", "job_state": ["FAILED"], "start_time": {"set": true, "number": 100}, "end_time": {"set": true, "number": 90165}, "nodes": "node7"},
 {"job_id": 20, "name": "task", "user_name": "bob", "partition": "cpu", "job_state": ["COMPLETED", "COMPLETING"], "array_job_id": {"set": true, "number": 19}, "array_task_id": {"set": true, "number": 4}, "start_time": {"set": true, "number": 100}, "end_time": {"set": true, "number": 105}, "nodes": "node7"}
]}`

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodDelete && g.limited && len(g.cancelled) == g.capacity {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	path, _ := strings.CutPrefix(r.URL.Path, "/slurm/v0.0.44/")
	switch r.Method + " " + path {
	case "GET ping/":
		fmt.Fprint(w, `{"pings": [{"hostname": "head", "responding": true, "primary": true, "latency": 120}]}`)
	case "GET jobs/":
		fmt.Fprint(w, cmp.Or(g.jobs, jobList))
	case "GET nodes/":
		fmt.Fprint(w, `{"nodes": [{"name": "node1", "state": ["MIXED", "DRAIN"], "cpus": 64, "alloc_cpus": 32, "cpu_load": 1234, "real_memory": 512000, "free_mem": {"set": true, "infinite": false, "number": 900}, "partitions": ["gpu", "cpu"], "gres": "gpu:a100:4(S:0-1),gpu:2,nic:1", "gres_used": "gpu:a100:2(IDX:0-1),gpu:1(IDX:4),nic:0", "reason": "a \u001b]0;title\u0007"},
			{"name": "node2", "state": ["IDLE"], "cpus": 8, "real_memory": 800, "partitions": ["cpu"]}, {"name": "$(evil)", "state": ["IDLE"]}]}`)
	case "GET /slurmdb/v0.0.44/jobs/":
		g.queries = append(g.queries, r.URL.RawQuery)
		fmt.Fprint(w, accountingList)
	case "GET reservations/":
		fmt.Fprint(w, `{"reservations": [{"name": "maint", "start_time": {"set": true, "infinite": false, "number": 0}, "node_list": "n1", "users": "root"}]}`)
	case "GET shares":
		fmt.Fprint(w, `{"shares": {"shares": [{"name": "root", "type": ["ASSOCIATION"], "shares_normalized": {"set": true, "infinite": false, "number": 2.3283064376228985e-10}, "effective_usage": {"set": true, "infinite": false, "number": 1.0}, "fairshare": {"factor": {"set": true, "infinite": false, "number": 0.0}}},
			{"name": "ann", "parent": "a", "type": ["USER"], "shares": {"set": true, "infinite": false, "number": 3}, "fairshare": {"factor": {"set": true, "infinite": false, "number": 0.8333333333333334}}}]}}`)
	case "GET /slurmdb/v0.0.44/qos/":
		fmt.Fprint(w, `{"qos": [{"name": "normal", "description": "the usual one", "priority": {"set": true, "infinite": false, "number": 7}, "limits": {"max": {"wall_clock": {"per": {"job": {"set": true, "infinite": false, "number": 90}}}}}}]}`)
	case "POST node/n3", "POST node/n4": // schedrestd names the node, slurmrestd does not
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"errors": [{"description": %q}]}`, map[string]string{"node/n3": "node n3: you are not allowed to change it", "node/n4": "Invalid user id"}[path])
	case "POST node/n1", "POST node/n2":
		body, _ := io.ReadAll(r.Body)
		g.changed = append(g.changed, path, strings.TrimSpace(string(body)))
		fmt.Fprint(w, `{"errors": []}`)
	case "GET /slurmdb/v0.0.44/users/":
		fmt.Fprint(w, `{"users": [{"name": "ann"}, {"name": "bob"}, {"name": "carol"}]}`)
	case "GET /slurmdb/v0.0.44/accounts/":
		fmt.Fprint(w, `{"accounts": [{"name": "root"}, {"name": "physics"}]}`)
	case "GET node/node2":
		fmt.Fprint(w, `{"nodes": [{"name": "node2", "state": ["IDLE"]}]}`)
	case "GET partitions/":
		fmt.Fprint(w, `{"partitions": [{"name": "cpu", "partition": {"state": ["UP"]}, "nodes": {"configured": "node[1-2]", "total": 2}, "cpus": {"total": 72}, "maximums": {"time": {"set": true, "number": 2880}}}]}`)
	case "GET job/5":
		if g.failures > 0 {
			g.failures--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		state := g.states[0]
		if len(g.states) > 1 {
			g.states = g.states[1:]
		}
		state, exit, _ := strings.Cut(state, " ")
		details, _ := json.Marshal(g.description)
		explanation := ""
		if g.explanation != "" && r.FormValue("explain") == "true" {
			explanation = fmt.Sprintf(`"explanation": {"why": %q, "change": "Ask."}, "state_reason": "Licenses",`, g.explanation)
		}
		fmt.Fprintf(w, `{"jobs": [{"job_id": 5, "name": "sub", "job_state": [%q], %s "state_description": %s, "exit_code": %s}]}`, state, explanation, details, cmp.Or(exit, "{}"))
	case "GET /openapi/v3":
		if g.openapi == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, g.openapi)
	case "POST job/submit":
		g.headers = r.Header
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &g.submitted); err != nil {
			g.t.Error(err)
		}
		if r.URL.RawQuery == "dry_run=true" {
			fmt.Fprint(w, `{"job_id": 0, "job_submit_user_msg": "welcome", "estimate": {"start_time": {"set": true, "number": 100}, "nodes": "node[1-2]", "partition": "gpu", "cpus": 4, "preempted_jobs": [7, 8]}}`)
			return
		}
		fmt.Fprint(w, `{"job_id": 5, "job_submit_user_msg": "welcome\u001b[2J", "warnings": [{"description": "field x is unknown"}], "errors": []}`)
	case "DELETE job/3", "DELETE job/12", "DELETE job/19_4", "DELETE job/30", "DELETE job/30_2", "DELETE job/30_5", "DELETE job/30_6", "DELETE job/40",
		"DELETE job/30+1", "DELETE job/31", "DELETE job/33", "DELETE job/33+1", "DELETE job/33+2":
		g.cancelled = append(g.cancelled, strings.TrimPrefix(path, "job/")+r.URL.RawQuery)
		fmt.Fprint(w, `{"errors": []}`)
	case "POST job/3", "POST job/12", "POST job/30_5", "POST job/30_6":
		body, _ := io.ReadAll(r.Body)
		g.changed = append(g.changed, strings.TrimPrefix(path, "job/")+string(body))
		fmt.Fprint(w, `{"results": [], "errors": []}`)
	case "POST job/30":
		fmt.Fprint(w, `{"results": [{"step_id": "30_[5]", "error": "Job/step already completing", "error_code": 2021}, {"step_id": "30_6", "error": "No error", "error_code": 0}], "errors": []}`)
	default:
		if id, ok := strings.CutPrefix(r.Method+" "+path, "GET job/"); ok && g.serveJob(w, id) {
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"errors": [{"error_number": 2017, "description": "no such thing"}]}`)
	}
}

// serveJob answers with the jobs of the list that id selects. It returns false
// if there are none. The job that has started since the list was read is
// running.
func (g *gateway) serveJob(w http.ResponseWriter, id string) bool {
	var list struct {
		Jobs []json.RawMessage `json:"jobs"`
	}
	if err := json.Unmarshal([]byte(cmp.Or(g.jobs, jobList)), &list); err != nil {
		g.t.Error(err)
	}
	var found []string
	for _, text := range list.Jobs {
		var j rest.Job
		if err := json.Unmarshal(text, &j); err != nil {
			g.t.Error(err)
		}
		if j.Selects(id) {
			if g.started == id {
				text = bytes.Replace(text, []byte(`["PENDING"]`), []byte(`["RUNNING"]`), 1)
			}
			found = append(found, string(text))
		}
	}
	if found == nil {
		return false
	}
	fmt.Fprintf(w, `{"jobs": [%s]}`, strings.Join(found, ","))
	return true
}

// testToken is a token of the user ann.
var testToken = "eyJhbGciOiJIUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(`{"sun":"ann","iat":1,"exp":4102444800}`)) + "." + strings.Repeat("A", 43)

// runCommand runs a command as the user ann against the server g. It returns
// the command's exit status, output and errors.
func runCommand(t *testing.T, g *gateway, args ...string) (status int, out, errOut string) {
	t.Helper()
	g.t = t
	return runAgainst(t, g, args...)
}

// runAgainst does the same as runCommand, against a server with the handler h.
func runAgainst(t *testing.T, h http.Handler, args ...string) (status int, out, errOut string) {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	t.Setenv("SCHED_JWT", testToken)
	t.Setenv("SLURM_JWT", "")
	t.Setenv("SCHED_URL", s.URL)
	return runHere(t, args...)
}

// runHere runs a command with the present environment.
func runHere(t *testing.T, args ...string) (status int, out, errOut string) {
	t.Helper()
	root := &cobra.Command{Use: "schedctl", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().StringP("config", "f", "", "")
	root.AddCommand(Commands()...)
	RefuseEmptyValues(root)
	var stdout, stderr bytes.Buffer
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err := root.ExecuteContext(t.Context())
	if exitErr, ok := errors.AsType[*ExitError](err); ok {
		if status = exitErr.Status; exitErr.Err != nil {
			fmt.Fprintf(&stderr, "error: %s\nhint: %s\n", exitErr.Err, errs.HintOf(exitErr.Err))
		}
	} else if err != nil {
		t.Errorf("%v: no status: %v", args, err)
	}
	return status, stdout.String(), stderr.String()
}

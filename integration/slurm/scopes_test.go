package slurm

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
)

// TestScopes sends a request for every operation of slurmrestd with a token of each
// scope, in each mode of gateway tokens. Only the token with the scope that the
// OpenAPI document names may succeed: so the table of operations agrees with that of
// messages, by which the keeper decides.
//
// Then it does the same with a captured worker, which ignores scopes. Only the modes bound
// and signed withstand it.
func TestScopes(t *testing.T) {
	m := freshCluster(t)
	m.allowMoreNodes(t)
	_, issue := setUpGatewayTokens(t, m, func() {})
	m.giveKey(t, "jwt_hs256.key")
	m.run(t, "slurm", "sacctmgr", "-i", "-Q", "add", "user", "rest", "account=physics", "adminlevel=administrator")
	m.run(t, "slurm", "sacctmgr", "-i", "-Q", "add", "user", "alice", "wckey=one")
	m.wckey, _, _ = strings.Cut(m.run(t, "root", "sacctmgr", "-nP", "show", "wckey", "where", "wckey=one", "format=id"), "\n")
	x := &scopeTest{machine: m, tokens: map[scope.Set]string{}, record: m.run(t, "alice", append(sbatchCommand, "-H")...)}
	eventually(t, "the job is recorded", func() bool { return m.run(t, "root", "sacct", "-nXP", "-j", x.record, "-o", "jobid") != "" })
	for s := scope.Set(1); s < scope.All; s <<= 1 {
		x.tokens[s], _ = issue(gatewaytoken.Token{User: "rest", Scopes: s})
	}
	all := func(modes ...string) {
		for _, mode := range modes {
			t.Run(mode, func(t *testing.T) { x.run(t, mode, false) })
		}
		t.Run("captured worker", func(t *testing.T) {
			m.captureWorkers(t)
			for _, mode := range modes {
				t.Run(mode, func(t *testing.T) { x.run(t, mode, true) })
			}
		})
	}
	all("bearer", "bound")
	if m.release == "22.05" { // auth/slurm is new in 23.11
		return
	}
	m.useAuthSlurm(t)
	if _, err := m.try("root", "timeout", "60", "env", "SLURM_JWT=daemon", "SCHEDRESTD_TOKEN_REGISTER=/etc/slurm/tokens", "SCHEDRESTD_TOKEN_MODE=signed",
		"/opt/gateway/schedrestd", "-f", m.conf(), "-u", "nobody", "-g", "nogroup", "unix:"+gatewaySocket); err == nil || !strings.Contains(err.Error(), "can't read the key of the cluster") {
		t.Errorf("without slurm.key: %v", err)
	}
	m.giveKey(t, "slurm.key")
	all("signed")
}

// captureWorkers replaces the program of the workers by one that ignores scopes.
func (m *machine) captureWorkers(t *testing.T) {
	t.Helper()
	m.replaceWorkers(t, "handlers/rest/scope.go", "if c.Permits(needed) {", "if listener != 0 {", nil)
}

// replaceWorkers builds the program of the workers with a change of one source file and with
// other files, and replaces the program by it.
func (m *machine) replaceWorkers(t *testing.T, file, from, to string, add map[string]string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	must(t, err)
	text, err := os.ReadFile(filepath.Join(root, file))
	must(t, err)
	changed := strings.Replace(string(text), from, to, 1)
	if changed == string(text) {
		t.Fatalf("%s has no %q", file, from)
	}
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/changed.go", []byte(changed), 0o644))
	replace := map[string]string{filepath.Join(root, file): dir + "/changed.go"}
	for name, source := range add {
		replace[filepath.Join(root, name)] = filepath.Join(root, source)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	must(t, err)
	must(t, os.WriteFile(dir+"/overlay.json", overlay, 0o644))
	build := exec.Command("go", "build", "-buildvcs=false", "-overlay", dir+"/overlay.json", "-o", dir+"/schedrestd-worker", "../../cmd/schedrestd-worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program := filepath.Join(m.root, "opt/gateway/schedrestd-worker")
	must(t, os.Rename(program, program+".honest"))
	t.Cleanup(func() { must(t, os.Rename(program+".honest", program)) })
	m.run(t, "root", "true") // the machine runs
	worker, err := os.ReadFile(dir + "/schedrestd-worker")
	must(t, err)
	must(t, os.WriteFile(program, worker, 0o755))
}

// scopeTest is what the requests of TestScopes need.
type scopeTest struct {
	*machine
	tokens map[scope.Set]string
	record string // number of a recorded job
	round  int
}

func (x *scopeTest) run(t *testing.T, mode string, captured bool) {
	x.start(t, "gateway", gatewaySocket, []string{"SLURM_JWT=daemon", "SCHEDRESTD_TOKEN_REGISTER=/etc/slurm/tokens", "SCHEDRESTD_TOKEN_MODE=" + mode},
		"/opt/gateway/schedrestd", "-v", "-f", x.conf(), "-u", "nobody", "-g", "nogroup", "unix:"+gatewaySocket)
	c := x.client(gatewaySocket)
	needs := scopesOfOperations(t, c)
	x.round++
	statuses := map[string]int{}
	for _, row := range declaredOperations(t) {
		if row[0] != "v0.0.42" && (row[0] != "v0.0.40" || mode == "signed") { // versions differ in objects, not in messages; v0.0.40 has operations that are gone
			continue
		}
		bare := bareOperation(row)
		needed, known := needs[row[1]+" "+row[2]]
		if !known {
			t.Errorf("%s %s is not in the OpenAPI document", row[1], row[2])
			continue
		}
		for _, s := range slices.Sorted(maps.Keys(x.tokens)) {
			switch {
			case needed == scope.None && s != scope.ComputeRead, captured && s == needed, captured && calls[bare].status != 0: // the last ask no daemon
				continue
			case !captured:
				x.check(t, c, row, needed, s, s == needed || needed == scope.None, statuses)
			case mode == "bearer":
				if bare == "GET /slurm/jobs/" || bare == "GET /slurmdb/accounts/" { // nothing stops this worker
					x.check(t, c, row, needed, s, true, statuses)
				}
			default:
				accounting := scope.SlurmdbRead | scope.SlurmdbWrite
				lent := accounting&needed != 0 && accounting&s != 0 || needed == scope.None || bare == "GET /slurm/ping/" || // slurmdbd asks for a credential only once
					bare == "GET /slurm/job/{job_id}" && (scope.ComputeModify|scope.ComputeCancel)&s != 0
				if x.release == "22.05" && bare == "DELETE /slurm/jobs/" { // it has no message for this
					continue
				}
				x.check(t, c, row, needed, s, lent, statuses)
			}
		}
	}
	t.Logf("statuses: %v", statuses)
}

// check sends one request, and checks whether it was carried out.
func (x *scopeTest) check(t *testing.T, c *http.Client, row [3]string, needed, s scope.Set, permitted bool, statuses map[string]int) {
	t.Helper()
	call := calls[bareOperation(row)]
	path := row[2]
	if call.path != "" {
		path = strings.NewReplacer("/slurm/", "/slurm/"+row[0]+"/", "/slurmdb/", "/slurmdb/"+row[0]+"/").Replace(call.path)
	}
	number := fmt.Sprint(row[0][len(row[0])-2:], x.round)
	run, job := "1", "1"
	if permitted {
		if strings.Contains(call.path+call.body, "RUNS") {
			run = x.machine.run(t, "alice", sbatchCommand...)
			eventually(t, "the job runs", func() bool { return x.machine.run(t, "root", "squeue", "-h", "-j", run, "-o", "%T") == "RUNNING" })
		}
		job = x.prepareCall(t, call, number)
	}
	words := strings.NewReplacer("opN", "op"+number, "newN", "new"+number, "moreN", "more"+number, "dynN", "dyn"+number, "uN", "u"+number,
		"assocN", "assoc"+number, "confN", "conf"+number, "WCKEY", x.wckey, "RECORD", x.record, "RUNS", run, "JOB", job)
	a, err := sendRequest(c, row[1], words.Replace(path), words.Replace(call.body), "X-SLURM-USER-TOKEN: "+x.tokens[s])
	must(t, err)
	if run != "1" {
		x.machine.run(t, "alice", "scancel", run)
	}
	want := http.StatusOK
	switch {
	case !permitted:
		want = http.StatusForbidden
	case call.since > x.release:
		want = http.StatusNotImplemented
	case call.status != 0:
		want = call.status
	}
	statuses[fmt.Sprintf("permitted %t: %d", permitted, a.status)]++
	if a.status != want {
		t.Errorf("%s %s, which needs %s, with %s: %d, want %d: %s", row[1], path, needed, s, a.status, want, remarks(a.body))
	}
}

// scopesOfOperations returns the scopes that the OpenAPI document of the gateway names
// for its operations, in Slurm's spelling.
func scopesOfOperations(t *testing.T, c *http.Client) map[string]scope.Set {
	t.Helper()
	a, err := sendRequest(c, "GET", "/openapi.json", "")
	must(t, err)
	var doc struct {
		Paths map[string]map[string]struct {
			Scope string `json:"x-scope"`
		}
	}
	must(t, json.Unmarshal(a.body, &doc))
	needs := map[string]scope.Set{}
	for path, methods := range doc.Paths {
		for method, operation := range methods {
			var s scope.Set
			if operation.Scope != "" {
				s, err = scope.Parse(operation.Scope)
				must(t, err)
			}
			needs[strings.ToUpper(method)+" "+path] = s
		}
	}
	if len(needs) < 100 {
		t.Fatalf("the OpenAPI document has only %d operations", len(needs))
	}
	return needs
}

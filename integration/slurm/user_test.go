package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"schedrestd/integration/harness"
)

// versions are the versions of the API.
var versions = harness.APIVersions

// backend is a cluster behind the gateway, as a user sees it.
type backend struct {
	conf  string   // path of the gateway's configuration in the machine
	token string   // token of alice
	nodes []string // names of its nodes
}

// slurmBackend returns the machine's Slurm.
func (m *machine) slurmBackend() backend {
	return backend{m.conf(), m.token, []string{"n01", "n02", "n03", "n04", "n05", "n06", "node1"}}
}

// bundledBackend starts the bundled daemons in the same machine.
func (m *machine) bundledBackend(t *testing.T) backend {
	t.Helper()
	must(t, m.install("schedctl", "schedctld", "scheddbd"))
	const etc = "/etc/shipped"
	for _, dir := range []string{etc, "/run/shipped", "/var/lib/shipped"} {
		must(t, os.RemoveAll(filepath.Join(m.root, dir)))
		must(t, os.Mkdir(filepath.Join(m.root, dir), 0o755))
	}
	must(t, os.CopyFS(filepath.Join(m.root, etc), os.DirFS("testdata/shipped")))
	must(t, os.WriteFile(filepath.Join(m.root, etc, "jwt.key"), []byte(strings.Repeat("not a secret. ", 3)), 0o600))
	for _, name := range []string{"scheddbd", "schedctld"} {
		conf := etc + "/" + name + ".conf"
		must(t, os.Chmod(filepath.Join(m.root, conf), 0o600)) // because with a permissive umask, other users could write to the file
		m.start(t, name, "/run/shipped/"+name+".sock", nil, "/opt/gateway/"+name, "-f", conf)
	}
	token := m.run(t, "root", "/opt/gateway/schedctl", "-f", etc+"/schedctld.conf", "token", "username=alice", "lifespan=86400")
	return backend{etc + "/schedctld.conf", strings.TrimPrefix(token, "SCHED_JWT="), []string{"head"}}
}

// TestUser does what a user does in a day, with a token from the cluster: it
// lists, submits, lists again and cancels jobs, in every API version. It uses
// first Slurm, and then the bundled daemons.
func TestUser(t *testing.T) {
	m := useCluster(t)
	for _, cluster := range []struct {
		name string
		up   func(*testing.T) backend
	}{
		{"Slurm " + m.release, func(*testing.T) backend { return m.slurmBackend() }},
		{"shipped daemons", m.bundledBackend},
	} {
		t.Run(cluster.name, func(t *testing.T) {
			b := cluster.up(t)
			m.start(t, "gateway", gatewaySocket, []string{"SLURM_JWT=daemon", "SCHEDRESTD_NAMES=slurm"},
				"/opt/gateway/schedrestd", "-v", "-f", b.conf, "-u", "nobody", "-g", "nogroup", "unix:"+gatewaySocket)
			for _, version := range versions {
				t.Run(version, func(t *testing.T) {
					d := userSession{t, m.client(gatewaySocket), version, "X-SLURM-USER-TOKEN: " + b.token}
					d.checkLists(b.nodes)
					d.checkSubmit(m.root)
					d.checkCancel()
					d.checkRefused()
				})
			}
		})
	}
}

// userSession sends one user's requests in one version of the API.
type userSession struct {
	t       *testing.T
	c       *http.Client
	version string
	token   string // as a header line
}

// response holds the parts of an answer that the tests check.
type response struct {
	Errors []struct{ Error, Description string }
	Pings  []struct {
		Pinged     string // before v0.0.45
		Responding bool   // from v0.0.42 on
	}
	Nodes []struct {
		Name  string
		State []string
	}
	Partitions []struct{ Name string }
	Jobs       []struct {
		UserName string `json:"user_name"`
		Name     string
		JobState []string `json:"job_state"`
	}
	JobID   json.Number `json:"job_id"`
	UserMsg string      `json:"job_submit_user_msg"`
}

// request sends a request, and fails the test unless the answer has the given
// status. It replaces "…" in path, such as "/slurm/…/ping", with the API
// version.
func (d userSession) request(method, path, body string, status int, headers ...string) (s response) {
	d.t.Helper()
	a, err := sendRequest(d.c, method, strings.Replace(path, "…", d.version, 1), body, headers...)
	must(d.t, err)
	if a.status != status {
		d.t.Fatalf("%s %s: status %d, want %d: %.500s", method, path, a.status, status, a.body)
	}
	if err := json.Unmarshal(a.body, &s); err != nil {
		d.t.Fatalf("%s %s: %v: %.500s", method, path, err, a.body)
	}
	if failed := len(s.Errors) > 0; failed != (status >= 400) {
		d.t.Errorf("%s %s: status %d with the errors %v", method, path, status, s.Errors)
	}
	return s
}

func (d userSession) get(path string) response {
	d.t.Helper()
	return d.request("GET", path, "", http.StatusOK, d.token)
}

func (d userSession) checkLists(nodes []string) {
	d.t.Helper()
	if s := d.get("/slurm/…/ping"); len(s.Pings) != 1 || s.Pings[0].Pinged != "UP" && !s.Pings[0].Responding {
		d.t.Errorf("ping: %v", s.Pings)
	}
	var names []string
	for _, n := range d.get("/slurm/…/nodes").Nodes {
		if !strings.HasPrefix(n.Name, "c") { // before 23.02, a cloud node that is powered down is hidden
			names = append(names, n.Name)
		}
	}
	if slices.Sort(names); !slices.Equal(names, nodes) {
		d.t.Errorf("nodes: %q, want %q", names, nodes)
	}
	last := nodes[len(nodes)-1]
	if s := d.get("/slurm/…/node/" + last); len(s.Nodes) != 1 || s.Nodes[0].Name != last || slices.Contains(s.Nodes[0].State, "DOWN") {
		d.t.Errorf("node %s: %v", last, s.Nodes)
	}
	if s := d.get("/slurm/…/partition/debug"); len(s.Partitions) != 1 || s.Partitions[0].Name != "debug" {
		d.t.Errorf("partition debug: %v", s.Partitions)
	}
	for _, list := range []string{"jobs", "partitions", "reservations", "licenses", "shares", "diag"} {
		d.get("/slurm/…/" + list)
	}
	for _, list := range []string{"ping", "jobs", "users", "accounts", "associations", "qos", "clusters", "tres"} {
		d.get("/slurmdb/…/" + list)
	}
	d.request("GET", "/slurm/…/job/4000000", "", http.StatusNotFound, d.token)
}

// checkSubmit submits a job and waits until it has run as alice and written its
// file.
func (d userSession) checkSubmit(root string) {
	d.t.Helper()
	output := "/tmp/day-" + d.version
	os.Remove(filepath.Join(root, output))
	job := d.request("POST", "/slurm/…/job/submit", submission(output), http.StatusOK, d.token).JobID
	d.awaitState(job, "COMPLETED")
	s := d.get(fmt.Sprint("/slurm/…/job/", job))
	if j := s.Jobs[0]; j.UserName != users[0].name || j.Name != "who" {
		d.t.Errorf("job %s: %v", job, j)
	}
	text, err := os.ReadFile(filepath.Join(root, output))
	must(d.t, err)
	info, err := os.Stat(filepath.Join(root, output))
	must(d.t, err)
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid != users[0].id || strings.TrimSpace(string(text)) != users[0].name {
		d.t.Errorf("the job ran as %q and its file belongs to uid %d", text, uid)
	}
	nowhere := strings.Replace(submission("/dev/null"), `"name":"who"`, `"name":"who","partition":"none"`, 1)
	a, err := sendRequest(d.c, "POST", "/slurm/"+d.version+"/job/submit", nowhere, d.token)
	if err != nil || a.status < 400 || a.status >= 500 || !strings.Contains(string(a.body), "artition") {
		d.t.Errorf("for an unknown partition: %v, status %d: %s", err, a.status, a.body)
	}
}

// awaitState waits for a job's state.
func (d userSession) awaitState(job json.Number, state string) {
	d.t.Helper()
	eventually(d.t, fmt.Sprintf("job %s is %s", job, state), func() bool {
		s := d.get(fmt.Sprint("/slurm/…/job/", job))
		return len(s.Jobs) == 1 && slices.Contains(s.Jobs[0].JobState, state)
	})
}

func (d userSession) checkCancel() {
	d.t.Helper()
	sleeps := strings.Replace(submission("/dev/null"), `id -un\n`, `sleep 1000\n`, 1)
	job := d.request("POST", "/slurm/…/job/submit", sleeps, http.StatusOK, d.token).JobID
	d.awaitState(job, "RUNNING")
	d.request("DELETE", fmt.Sprint("/slurm/…/job/", job), "", http.StatusOK, d.token)
	d.awaitState(job, "CANCELLED")
	d.request("DELETE", "/slurm/…/job/4000000", "", http.StatusOK, d.token)
}

func (d userSession) checkRefused() {
	d.t.Helper()
	d.request("GET", "/slurm/…/jobs", "", http.StatusUnauthorized)
	d.request("GET", "/slurm/…/jobs", "", http.StatusUnauthorized, d.token[:len(d.token)-4]+"AAAA")
	d.request("GET", "/slurm/…/jobs", "", http.StatusUnauthorized, d.token, "X-SLURM-USER-NAME: root")
}

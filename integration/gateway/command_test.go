package gateway

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"schedrestd/integration/harness"
)

// TestPicked checks the options that select the version, the plugins and the
// layout. The gateway must serve only what these options select. Paths must
// have the spelling of the configuration.
func TestPicked(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, harness.WithOptions([]string{"-d", "v0.0.42+fast", "-s", "schedctld"}, "SCHEDRESTD_JSON=pretty", "SLURMRESTD_DATA_PARSER_PLUGINS=v0.0.40"))
	a := l.Request("GET", "/sched/v0.0.42/ping", "").Want(t, 200)
	if !strings.Contains(a.Text, "\n  \"pings\": [") {
		t.Errorf("not in lines:\n%s", a.Text)
	}
	a = l.Request("GET", "/sched/v0.0.43/ping", "").Want(t, 404)
	if !strings.Contains(a.Text, "v0.0.42") {
		t.Errorf("the answer does not name the version that is served:\n%s", a.Text)
	}
	l.Request("GET", "/sched/v0.0.40/ping", "").Want(t, 404) // the option overrides the variable
	l.Request("GET", "/scheddb/v0.0.42/diag", "").Want(t, 404)
	l.Request("GET", "/slurm/v0.0.42/ping", "").Want(t, 404)
	l.Eventually(t, "a line for a request", func() bool { return strings.Contains(l.Logged(), " level=INFO msg=request ") })
}

// TestQuiet checks that SLURMRESTD_DEBUG sets the log level of the parent and
// the workers.
func TestQuiet(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, harness.WithOptions(nil, "SLURMRESTD_DEBUG=error"))
	l.Request("GET", "/sched/v0.0.43/ping", "").Want(t, 200)
	l.Request("GET", "/sched/v0.0.43/ping", "", "X-SCHED-USER-TOKEN: x.y.z").Want(t, 401)
	harness.Must(t, l.Daemons["schedrestd"].Stop())
	if log := l.Logged(); log != "" {
		t.Errorf("logged at error:\n%s", log)
	}
}

// TestNoTokensInLogs checks that no token is logged, even at the highest
// verbosity. It also searches the log for a word that must be there, to show
// that the search works.
func TestNoTokensInLogs(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, harness.WithOptions([]string{"-vvvvvv"}))
	const planted = "planted-word-that-is-logged"
	forged := "eyJhbGciOiJIUzI1NiJ9.forgedpayload.forgedsignature"
	l.Request("GET", "/sched/v0.0.43/node/"+planted, "").Want(t, 404)
	l.Request("GET", "/sched/v0.0.43/ping", "", "X-SCHED-USER-TOKEN: "+forged).Want(t, 401)
	l.Request("GET", "/sched/v0.0.43/ping", "", "Authorization: Bearer "+l.OwnToken).Want(t, 200)
	l.Request("GET", "/sched/v0.0.43/ping", "", "Authorization: Bearer "+forged).Want(t, 401)
	l.Request("GET", "/sched/v0.0.43/ping?token="+forged, "", "X-SCHED-USER-TOKEN: "+l.OwnToken, "X-SCHED-USER-TOKEN: "+forged).Want(t, 401)
	l.Request("POST", "/sched/v0.0.43/job/submit", `{"job":{"environment":["SCHED_JWT=`+forged+`"],"current_working_directory":"/nowhere"},"script":`)
	harness.Must(t, l.Daemons["schedrestd"].Stop())
	log := l.Logged()
	if !strings.Contains(log, planted) {
		t.Fatalf("a word that must be in the log was not found:\n%s", log)
	}
	for _, part := range []string{"forgedpayload", "forgedsignature", strings.Split(l.OwnToken, ".")[1], strings.Split(l.OwnToken, ".")[2]} {
		if strings.Contains(log, part) {
			t.Errorf("a token is in the log:\n%s", log)
		}
	}
}

// TestReread checks that after SIGHUP the gateway uses the changed
// configuration, or keeps the old configuration if the new one is unusable.
func TestReread(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	text, err := os.ReadFile(l.Conf())
	harness.Must(t, err)
	cluster := func() string {
		var answer struct {
			Meta struct {
				Sched struct{ Cluster string }
			}
		}
		http.DefaultClient.CloseIdleConnections() // an open connection stays with its worker
		a := l.Request("GET", "/sched/v0.0.43/ping", "").Want(t, 200)
		harness.Must(t, json.Unmarshal([]byte(a.Text), &answer))
		return answer.Meta.Sched.Cluster
	}
	reload := func(text, logged string) {
		t.Helper()
		before := strings.Count(l.Logged(), logged)
		harness.Must(t, os.WriteFile(l.Conf(), []byte(text), 0o600))
		harness.Must(t, syscall.Kill(l.Daemons["schedrestd"].PID(), syscall.SIGHUP))
		l.Eventually(t, "the log says "+logged, func() bool { return strings.Count(l.Logged(), logged) > before })
	}
	if got := cluster(); got != "demo" {
		t.Fatalf("cluster %q", got)
	}
	reload(strings.Replace(string(text), "ClusterName=demo", "ClusterName=renamed", 1), "configuration reloaded")
	if got := cluster(); got != "renamed" {
		t.Errorf("cluster %q after it was renamed", got)
	}
	reload("ClusterName=broken\nSchedctldPort=none\n", "new configuration rejected")
	if log := l.Logged(); !strings.Contains(log, filepath.Base(l.Conf())+":2: SchedctldPort") {
		t.Errorf("the log does not have the reason:\n%s", log)
	}
	if got := cluster(); got != "renamed" {
		t.Errorf("cluster %q after a bad file", got)
	}
	if os.Geteuid() != 0 {
		return // the next configuration names another SchedUser, with which this user's key file would be refused
	}
	reload(strings.Replace(string(text), "SchedUser="+l.Owner, "SchedUser=daemon", 1), "needs a restart")
	// Without capabilities, root can't read a file that only another user may
	// read.
	harness.Must(t, os.Chown(l.Conf(), int(harness.OrdinaryUser(t).UID), -1))
	reload(string(text), "the running parent can only reread files that root may read without privileges")
	if got := cluster(); got != "demo" {
		t.Errorf("cluster %q in the end", got)
	}
}

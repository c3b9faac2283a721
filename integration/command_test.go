package integration

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// with makes the lab's gateway one with these options and variables. The last argument stays what
// it listens on.
func with(args []string, env ...string) func(*lab) {
	return func(l *lab) {
		last := len(l.restd.Args) - 1
		l.restd.Args = append(append(append([]string{}, l.restd.Args[:last]...), args...), l.restd.Args[last])
		l.restd.Env = append(l.restd.Env, env...)
		l.restd.Answers = func(context.Context) error { // whatever it serves
			_, err := l.try(http.DefaultClient, "GET", "/healthz", "")
			return err
		}
	}
}

// log is what the gateway has logged so far.
func (l *lab) log() string {
	data, err := os.ReadFile(l.restd.Log)
	must(l.t, err)
	return string(data)
}

// TestPicked: the versions, contents, ways and layouts that options pick are served, and no others.
func TestPicked(t *testing.T) {
	l := newLab(t, with([]string{"-d", "v0.0.42+fast", "-s", "schedctld"}, "SCHEDRESTD_JSON=pretty", "SLURMRESTD_DATA_PARSER_PLUGINS=v0.0.40"))
	a := l.ask("GET", "/sched/v0.0.42/ping", "").want(t, 200)
	if !strings.Contains(a.text, "\n  \"pings\": [") {
		t.Errorf("not in lines:\n%s", a.text)
	}
	a = l.ask("GET", "/sched/v0.0.43/ping", "").want(t, 404)
	if !strings.Contains(a.text, "v0.0.42") {
		t.Errorf("the version that is served is not named:\n%s", a.text)
	}
	l.ask("GET", "/sched/v0.0.40/ping", "").want(t, 404) // the flag goes before the variable
	l.ask("GET", "/scheddb/v0.0.42/diag", "").want(t, 404)
	l.ask("GET", "/slurm/v0.0.42/ping", "").want(t, 404)
	eventually(t, "a line for a request", func() bool { return strings.Contains(l.log(), " level=INFO msg=request ") })
}

// TestQuiet: SCHEDRESTD_DEBUG is how much is logged, of the workers too.
func TestQuiet(t *testing.T) {
	l := newLab(t, with(nil, "SLURMRESTD_DEBUG=error"))
	l.ask("GET", "/sched/v0.0.43/ping", "").want(t, 200)
	l.ask("GET", "/sched/v0.0.43/ping", "", "X-SCHED-USER-TOKEN: x.y.z").want(t, 401)
	must(t, l.daemons["schedrestd"].Stop())
	if log := l.log(); log != "" {
		t.Errorf("logged at error:\n%s", log)
	}
}

// TestNoTokensInLogs: at the highest verbosity no token is logged. That the search would find one
// is shown by a word that is known to be logged.
func TestNoTokensInLogs(t *testing.T) {
	l := newLab(t, with([]string{"-vvvvvv"}))
	const planted = "planted-word-that-is-logged"
	forged := "eyJhbGciOiJIUzI1NiJ9.forgedpayload.forgedsignature"
	l.ask("GET", "/sched/v0.0.43/node/"+planted, "").want(t, 404)
	l.ask("GET", "/sched/v0.0.43/ping", "", "X-SCHED-USER-TOKEN: "+forged).want(t, 401)
	l.ask("GET", "/sched/v0.0.43/ping", "", "Authorization: Bearer "+l.userToken).want(t, 200)
	l.ask("GET", "/sched/v0.0.43/ping", "", "Authorization: Bearer "+forged).want(t, 401)
	l.ask("GET", "/sched/v0.0.43/ping?token="+forged, "", "X-SCHED-USER-TOKEN: "+l.userToken, "X-SCHED-USER-TOKEN: "+forged).want(t, 401)
	l.ask("POST", "/sched/v0.0.43/job/submit", `{"job":{"environment":["SCHED_JWT=`+forged+`"],"current_working_directory":"/nowhere"},"script":`)
	must(t, l.daemons["schedrestd"].Stop())
	log := l.log()
	if !strings.Contains(log, planted) {
		t.Fatalf("what is certainly logged is not found:\n%s", log)
	}
	for _, part := range []string{"forgedpayload", "forgedsignature", strings.Split(l.userToken, ".")[1], strings.Split(l.userToken, ".")[2]} {
		if strings.Contains(log, part) {
			t.Errorf("a token is in the log:\n%s", log)
		}
	}
}

// TestReread: SIGHUP has a changed configuration served, and one that can't be used changes nothing.
func TestReread(t *testing.T) {
	l := newLab(t)
	text, err := os.ReadFile(l.Conf())
	must(t, err)
	cluster := func() string {
		var answer struct {
			Meta struct {
				Sched struct{ Cluster string }
			}
		}
		http.DefaultClient.CloseIdleConnections() // one that is open stays with the worker it has
		a := l.ask("GET", "/sched/v0.0.43/ping", "").want(t, 200)
		must(t, json.Unmarshal([]byte(a.text), &answer))
		return answer.Meta.Sched.Cluster
	}
	reread := func(text, logged string) {
		t.Helper()
		before := strings.Count(l.log(), logged)
		must(t, os.WriteFile(l.Conf(), []byte(text), 0o600))
		must(t, syscall.Kill(l.daemons["schedrestd"].PID(), syscall.SIGHUP))
		eventually(t, "the log says "+logged, func() bool { return strings.Count(l.log(), logged) > before })
	}
	if got := cluster(); got != "demo" {
		t.Fatalf("cluster %q", got)
	}
	reread(strings.Replace(string(text), "ClusterName=demo", "ClusterName=renamed", 1), "configuration is reread")
	if got := cluster(); got != "renamed" {
		t.Errorf("cluster %q after it was renamed", got)
	}
	reread("ClusterName=broken\nSchedctldPort=none\n", "nothing is changed")
	if log := l.log(); !strings.Contains(log, filepath.Base(l.Conf())+":2: SchedctldPort") {
		t.Errorf("the log does not say what is wrong:\n%s", log)
	}
	if got := cluster(); got != "renamed" {
		t.Errorf("cluster %q after a bad file", got)
	}
	if os.Geteuid() != 0 {
		return // a key file of our own suits no other SchedUser
	}
	reread(strings.Replace(string(text), "SchedUser="+l.Owner, "SchedUser=daemon", 1), "needs a restart")
	// Root without privileges may not read what is another's.
	must(t, os.Chown(l.Conf(), int(someUser(t).uid), -1))
	reread(string(text), "the running parent can only reread files that root may read without privileges")
	if got := cluster(); got != "demo" {
		t.Errorf("cluster %q in the end", got)
	}
}

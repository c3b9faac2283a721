package slurm

import (
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// TestStatusPage uses the page at /status as a user and as an administrator do:
// each view, submission of an array and of a held job, its release and its end,
// cancelling, what accounting has recorded, a text that attacks the page, and
// draining and resuming a node, which the user may not do.
func TestStatusPage(t *testing.T) {
	m := freshCluster(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	gateway := m.client(gatewaySocket)
	gateway.Timeout = 0
	proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Transport: gateway.Transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: "gateway"})
	}})
	t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	nodes := m.slurmBackend().nodes
	p := harness.OpenStatus(t, proxy.URL)
	p.SignIn("SLURM_JWT=" + m.token)
	p.Await("the nodes are shown", `document.querySelector(".legend li") !== null`)
	p.Await("changes arrive as a stream", `document.querySelector(".fresh.live") !== null`)
	p.Screenshot("slurm-overview")
	for _, view := range []struct{ name, want string }{
		{"nodes", nodes[0]}, {"node/" + nodes[0], "Jobs on this node"}, {"partitions", "Open to"}, {"reservations", ""}, {"shares", ""}, {"qos", "normal"}, {"usage?scope=cluster", "CPU hours of the cluster lab"}, {"usage?scope=account", "CPU hours of the account physics"}, {"overview", "Why jobs wait"},
	} {
		p.Show(view.name)
		p.AwaitText(view.want)
		p.Screenshot("slurm-" + strings.NewReplacer("/", "-", "?", "-").Replace(view.name))
	}

	submit := func(lines string) string {
		t.Helper()
		p.Show("submit")
		p.Fill("Working directory", "/tmp")
		p.Fill("Script", "#!/bin/sh\n"+lines)
		p.Await("the script is read", `document.querySelector(".directives .error") === null && document.querySelector(".directives li") !== null`)
		p.Click("Submit")
		p.AwaitText("The job was submitted.")
		id := regexp.MustCompile(`#/job/(\d+)`).FindStringSubmatch(fmt.Sprint(p.Eval(`location.hash`)))
		if id == nil {
			t.Fatalf("the page shows %v", p.Eval(`location.hash`))
		}
		return id[1]
	}
	ended := func(id string) {
		t.Helper()
		p.Show("job/" + id)
		p.Await("job "+id+" has completed", `document.querySelector(".sub .state.done") !== null`)
	}

	const markup = `<img src=x onerror=window.injected=1>`
	held := submit("#SBATCH --hold -o /dev/null --time=10\n#SBATCH --job-name='" + markup + "' --comment='" + markup + "'\ntrue\n")
	p.AwaitText("JobHeldUser")
	p.AwaitText(markup)
	p.Ask("Release")
	p.Click("Release job")
	p.AwaitText("Done: 1.")
	p.CloseDialog()
	ended(held)
	p.Await("accounting has the job", `[...document.querySelectorAll("h2")].some((e) => e.textContent === "Steps")`)
	p.Screenshot("slurm-ended")

	array := submit("#SBATCH --array=1-3 -o /dev/null --time=10 -J tasks\ntrue\n")
	p.Show("job/" + array + "_2")
	p.Await("the task has completed", `document.querySelector(".sub .state.done") !== null`)

	long := submit("#SBATCH -o /dev/null --time=10 -J long\nsleep 600\n")
	p.Await("the job runs", `document.querySelector(".sub .state.running, .sub .state.ending") !== null`)
	p.Screenshot("slurm-running")
	p.Ask("Cancel")
	p.Click("Cancel job")
	p.AwaitText("Done: 1.")
	p.CloseDialog()
	p.Await("the job was cancelled", `document.querySelector(".sub .state.cancelled") !== null`)
	if state := m.run(t, "root", "squeue", "-h", "-t", "all", "-j", long, "-o", "%T"); state != "CANCELLED" && state != "COMPLETING" {
		t.Errorf("squeue shows %q", state)
	}

	// A user may not drain a node, and is not offered it again.
	p.Show("node/" + nodes[0])
	p.Ask("Drain")
	p.Fill("Reason", "a test")
	p.Click("Drain node")
	p.AwaitText("Refused or failed: 1.")
	p.CloseDialog()
	p.AwaitText("You may not change nodes.")
	if p.Eval(`window.injected === undefined && document.querySelector("main img") === null`) != true {
		t.Error("a text has become a part of the page")
	}
	p.Check(m.token)

	p.Click("Sign out")
	p.Await("the page asks for a token", `document.querySelector(".signin textarea") !== null`)
	p.SignIn(m.admin)
	idle, _, _ := strings.Cut(m.run(t, "root", "sinfo", "-h", "-N", "-t", "idle", "-o", "%N"), "\n") // a node that is down stays down
	p.Show("node/" + idle)
	p.Ask("Drain")
	p.Fill("Reason", "a test")
	p.Click("Drain node")
	p.AwaitText("Done: 1.")
	p.CloseDialog()
	p.Await("the node drains", `document.querySelector(".sub .state.drained, .sub .state.draining") !== null`)
	p.AwaitText("a test")
	p.Ask("Resume")
	p.Click("Resume node")
	p.AwaitText("Done: 1.")
	p.CloseDialog()
	p.Await("the node is in service", `document.querySelector(".sub .state.drained, .sub .state.draining") === null`)
	p.Check(m.admin)
}

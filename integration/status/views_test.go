package status

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// TestPage uses the page with the bundled daemons as a user does: signs in with
// a wrong token and with a good one, looks at each view, submits a script with
// #SBATCH lines, follows the job, cancels it, and signs out. The page must cause
// no error, violate no policy, store nothing and keep the token to itself.
func TestPage(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	p := harness.OpenStatus(t, l.URL)
	p.Screenshot("signin")
	p.Eval(`(() => { const field = document.querySelector(".signin textarea"); field.value = "eyJhbGciOiJIUzI1NiJ9.e30.AAAA"; field.form.requestSubmit(); })()`)
	p.AwaitText("The gateway does not accept this token")
	p.SignIn("SCHED_JWT=" + l.OwnToken)
	p.AwaitText("token: ")
	p.Await("the nodes are shown", `document.querySelector(".legend li") !== null`)
	p.Await("changes arrive as a stream", `document.querySelector(".fresh.live") !== null`)
	p.Screenshot("overview")

	for _, view := range []struct{ name, want string }{
		{"jobs", "There are no jobs"}, {"nodes", l.Node}, {"node/" + l.Node, "Jobs on this node"}, {"partitions", "batch"}, {"reservations", "There are no reservations"},
		{"shares", "There are no fair shares"}, {"qos", "normal"}, {"job/99", "There is no job 99"}, {"node/nowhere", "There is no node nowhere"}, {"nonsense", "There is no such view"},
	} {
		p.Eval(fmt.Sprintf(`location.hash = "#/" + %q`, view.name))
		p.AwaitText(view.want)
	}

	// Submit a script. While a line is not understood, it must be named, and
	// nothing must be submitted.
	p.Show("submit")
	script := "#!/bin/sh\n#SBATCH -J followed --time=7\n#SBATCH -o " + l.Work + "/out-%j\nsleep 600\n"
	p.Fill("Script", strings.Replace(script, "--time=7", "--time=7 --walltime=5", 1))
	p.AwaitText("Line 2 is not understood. There is no such option: --walltime")
	if disabled := p.Eval(`document.querySelector("form.submit button[type=submit]").disabled`); disabled != true {
		t.Error("the script can be submitted")
	}
	p.Eval(`document.querySelector("form.submit").requestSubmit()`)
	p.Fill("Script", script)
	p.AwaitText("Enter a working directory")
	p.Fill("Working directory", l.Work)
	p.AwaitText(`"time_limit"`)
	p.Click("When would it start?")
	p.AwaitText("Nothing was submitted. The job would start at")
	p.Screenshot("submit")
	p.Click("Submit")
	p.AwaitText("The job was submitted.")
	id := regexp.MustCompile(`#/job/(\d+)`).FindStringSubmatch(p.Eval(`location.hash`).(string))
	if id == nil {
		t.Fatalf("the page shows %v", p.Eval(`location.hash`))
	}
	p.Await("the job runs", `document.querySelector(".sub .state.running") !== null`)
	p.Await("the gateway was asked for the output", `performance.getEntriesByType("resource").some((e) => e.name.endsWith("/stdout"))`)
	if p.Eval(`document.querySelector('section[aria-label="Output"]') === null`) != true {
		t.Error("the page shows the output of a job, which this gateway does not read")
	}
	p.Screenshot("job")
	var list struct {
		Jobs []struct {
			Name      string
			TimeLimit struct{ Number int } `json:"time_limit"`
			Output    string               `json:"stdout_expanded"`
		}
	}
	if id[1] != "1" {
		t.Errorf("the first job is %s", id[1])
	}
	harness.Must(t, json.Unmarshal([]byte(l.Request("GET", "/sched/v0.0.45/job/"+id[1], "").Text), &list))
	if j := list.Jobs[0]; j.Name != "followed" || j.TimeLimit.Number != 7 || j.Output != l.Work+"/out-"+id[1] {
		t.Errorf("the job is %+v", j)
	}
	p.Show("jobs")
	p.Await("the list shows the job", fmt.Sprintf(`document.querySelector('a[href="#/job/%s"]') !== null`, id[1]))
	p.Show("node/" + l.Node)
	p.Await("the node shows the job", fmt.Sprintf(`document.querySelector('a[href="#/job/%s"]') !== null`, id[1]))

	// Cancel it. The page must ask first, and name the job.
	p.Show("job/" + id[1])
	p.Click("Cancel")
	p.AwaitText("Cancel this job?")
	if named, _ := p.Eval(`document.querySelector("dialog .targets").innerText`).(string); !strings.Contains(named, id[1]) || !strings.Contains(named, "followed") {
		t.Errorf("the question names %q", named)
	}
	p.Changes = nil
	p.Click("Cancel job")
	p.AwaitText("Done: 1.")
	p.CloseDialog()
	if want := "DELETE " + l.URL + "/sched/v0.0.45/job/" + id[1] + " "; len(p.Changes) != 1 || p.Changes[0] != want {
		t.Errorf("the page sent %q, want %q", p.Changes, want)
	}
	p.Await("the job has ended", `document.querySelector(".sub .state.cancelled") !== null && document.querySelector(".actions button.danger") === null`)
	p.Screenshot("ended")
	p.Show("overview")
	p.Await("the change is listed", `document.querySelector(".changes li") !== null`)

	p.Check(l.OwnToken)
	p.Click("Sign out")
	p.Await("the page asks for a token", `document.querySelector(".signin textarea") !== null`)
	if field := p.Eval(`document.querySelector(".signin textarea").value`); field != "" {
		t.Error("the token is still there")
	}
}

// TestKeptToken checks that a token outlives a reload if the user has chosen so,
// that signing out removes it, and that a page without it asks again.
func TestKeptToken(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	p := harness.OpenStatus(t, l.URL)
	p.Click("More options")
	p.Eval(`document.querySelector('.signin input[type="checkbox"]').click()`)
	p.SignIn(l.OwnToken)
	p.Call("Page.reload", nil, nil)
	p.Await("the reloaded page shows the cluster", `document.querySelector(".legend li") !== null`)
	p.Click("Sign out")
	p.Await("the page asks for a token", `document.querySelector(".signin textarea") !== null`)
	p.Check(l.OwnToken)
	p.SignIn(l.OwnToken)
	p.Call("Page.reload", nil, nil)
	p.Await("the page asks for a token again", `document.querySelector(".signin textarea") !== null`)
}

// TestOtherClusters checks that the page links to the other clusters of the site, not
// to itself, before and after the sign-in, and that their names are shown as text.
func TestOtherClusters(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	name := `<img src onerror><script>window.injected</script>`
	l.Restd.Env = append(l.Restd.Env, "SCHEDRESTD_CLUSTERS=own="+l.URL+","+name+"=https://sched.example.org/clusters/b/,c=http://127.0.0.1:1")
	l.Up(l.Restd)
	p := harness.OpenStatus(t, l.URL)
	const links = `JSON.stringify([...document.querySelectorAll(".others a")].map((a) => [a.innerText, a.href]))`
	want := fmt.Sprintf(`[[%q,"https://sched.example.org/clusters/b/status"],["c","http://127.0.0.1:1/status"]]`, name)
	check := func(step string) {
		t.Helper()
		if got := p.Eval(links); got != want || p.Eval(`document.querySelectorAll("img").length === 0 && document.querySelectorAll(".others script").length === 0`) != true {
			t.Errorf("%s: %v, want %s", step, got, want)
		}
		p.Screenshot("clusters-" + step)
	}
	p.Await("the page asks for a token", `document.querySelector(".signin textarea") !== null`)
	check("signed out")
	p.SignIn(l.OwnToken)
	p.AwaitText("Other clusters")
	check("signed in")
	p.Check(l.OwnToken)
}

// TestStatusPageIsOff checks that the page can be disabled, and that a browser
// is then sent to the page about the API.
func TestStatusPageIsOff(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, harness.WithOptions(nil, "SCHEDRESTD_STATUS=off"))
	l.Request("GET", "/status", "").Want(t, 404)
	l.Request("GET", "/status/zone.json", "").Want(t, 404)
	if a := l.Request("GET", "/docs", ""); a.Status != 200 {
		t.Errorf("/docs: %d", a.Status)
	}
}

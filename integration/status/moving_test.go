package status

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
	"schedrestd/model"
)

// TestMovedRow checks that a key acts on the row that has the focus, also if new
// rows have moved it.
func TestMovedRow(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(4, 30)
	for i := range jobs {
		jobs[i].ArrayJobID, jobs[i].ArrayTaskID = 0, model.Opt[uint32]{}
	}
	c := newController(t, nodes, jobs, partitions)
	g := startFor(t, c)
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	p.Show("jobs?scope=all")
	p.Await("the rows are shown", `document.querySelector('[data-row="3"]') !== null`)
	p.Eval(`document.querySelector('[data-row="3"]').focus()`)
	c.change(func() {
		c.jobs = append(c.jobs, model.Job{StepID: model.StepID{JobID: 200_000}, Name: "new-job", UserName: "ann", Partition: "batch", Detailed: true})
	})
	p.AwaitText("new-job")
	key := func(name string) {
		p.Eval(fmt.Sprintf(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: %q, bubbles: true, cancelable: true }))`, name))
	}
	key(" ")
	p.AwaitText("1 selected")
	if chosen := p.Eval(`document.querySelector("tr.chosen th").textContent + " " + document.activeElement.textContent`); chosen != "100027 100027" {
		t.Errorf("the chosen row and the one with the focus: %v", chosen)
	}
	if p.Eval(`document.querySelector("table [aria-selected]") === null`) != true {
		t.Error("a row has aria-selected, which only those of a grid may have")
	}
	key("ArrowDown")
	p.Await("the next row has the focus", `document.activeElement.textContent === "100026"`)
	p.Check(g.Lab.OwnToken)
}

// TestPolledChange checks that the overview lists a change of a job among many,
// also where the page asks for lists.
func TestPolledChange(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(4, 1200) // two pages
	c := newController(t, nodes, jobs, partitions)
	g := startFor(t, c)
	p := harness.OpenStatus(t, startProxy(t, "http://"+g.Address, func(r *http.Request) {
		if r.Header.Get("Accept") == "text/event-stream" {
			r.Header.Set("Accept", "application/json")
		}
	}))
	p.SignIn(g.Lab.OwnToken)
	p.AwaitText("Every 5 s") // of a list, perhaps that of the nodes
	p.Await("the jobs are shown", `document.querySelector(".ranking") !== null`)
	c.change(func() { c.jobs[0].State = model.JobNodeFail })
	p.Await("the change is listed", `document.querySelector(".changes li a")?.textContent === "100001"`)

	// After a change, the page asks again although an answer, which it may miss, is under way.
	c.change(func() { c.permits, c.jobs[0].State, c.jobs[0].UserName = true, model.JobRunning, "root" })
	p.Show("jobs?scope=all&q=100001")
	p.Await("the job runs", `document.querySelector(".table .state.running") !== null`)
	p.Eval(`(() => {
		const real = window.fetch;
		window.ages = [];
		window.fetch = async (url, init) => {
			const list = /\/jobs\//.test(url) && init.headers["Cache-Control"];
			if (list) window.ages.push(list + (/continue=/.test(url) ? " next" : ""));
			const answer = await real(url, init);
			if (list && !window.held) await new Promise((resolve) => { window.held = resolve; });
			return answer;
		};
	})()`)
	p.Await("an answer is under way", `window.held !== undefined`)
	p.Eval(`document.querySelector(".table tbody input").click()`)
	p.Ask("Cancel")
	p.Click("Cancel job")
	p.AwaitText("Done: 1.")
	p.CloseDialog()
	p.Eval(`window.held()`)
	// The other pages come from what the gateway has read for the first.
	p.Await("the page asks for the list again", `window.ages.indexOf("max-age=0") > 0 && window.ages.at(-1) !== "max-age=0"`)
	if ages := p.Eval(`window.ages.slice(window.ages.indexOf("max-age=0")).join()`); ages != "max-age=0,max-age=5 next" {
		t.Errorf("the page accepts answers of the ages %v", ages)
	}
	p.Check(g.Lab.OwnToken)
}

// TestUnknownState checks that the list of jobs is shown whatever its address names.
func TestUnknownState(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(4, 5)
	g := startFor(t, newController(t, nodes, jobs, partitions))
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	for _, state := range []string{"valueOf", "constructor", "__proto__", "none"} {
		p.Show("jobs?scope=all&state=" + state)
		p.Await(state+": all jobs are shown", `document.querySelector(".table table")?.getAttribute("aria-rowcount") === "6" && document.querySelector(".tools [aria-pressed=true]")?.textContent.startsWith("All")`)
	}
	p.Check(g.Lab.OwnToken)
}

// TestStopped checks that changes which have not been made when the user stops
// them, are not made.
func TestStopped(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(4, 40)
	for i := range jobs {
		jobs[i].State = model.JobRunning
	}
	c := newController(t, nodes, jobs, partitions)
	c.permits = true
	g := startFor(t, c)
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	p.Eval(`(() => {
		const real = window.fetch;
		window.fetch = async (url, init) => {
			if (init.method === "DELETE") await new Promise((resolve) => setTimeout(resolve, 1000));
			return real(url, init);
		};
	})()`)
	p.Show("jobs?scope=all")
	p.Await("the rows are shown", `document.querySelector('[data-row="3"]') !== null`)
	p.Eval(`document.querySelector(".table thead input").click()`)
	p.Ask("Cancel")
	p.Click("Cancel 40 jobs")
	p.Click("Stop")
	p.Await("the dialog is closed", `document.querySelector("dialog") === null`)
	time.Sleep(4 * time.Second)
	p.Eval(`0`) // reads the events so far
	if n := len(p.Changes); n == 0 || n > 12 {
		t.Errorf("the page has sent %d changes", n)
	}
	p.Check(g.Lab.OwnToken)
}

// TestSuspended checks the times of jobs that are or were suspended: as those of
// squeue, they have only what the jobs ran.
func TestSuspended(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(4, 3)
	now := model.Time(time.Now().Unix())
	for i := range jobs {
		j := &jobs[i]
		j.State, j.StartTime, j.EndTime, j.Nodes, j.TimeLimit = model.JobSuspended, now-5000, now+5000, nodes[0].Name, model.Some(uint32(60))
		j.PreSusTime, j.SuspendTime, j.ArrayJobID, j.ArrayTaskID = 1000, now-3000, 0, model.Opt[uint32]{}
	}
	jobs[1].State = model.JobRunning
	jobs[2].State, jobs[2].EndTime = model.JobComplete, now-2500
	g := startFor(t, newController(t, nodes, jobs, partitions))
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	p.Show("jobs?scope=all")
	p.Await("the rows are shown", `document.querySelectorAll(".table td.roomy").length === 3`)
	times, _ := p.Eval(`[...document.querySelectorAll(".table td.roomy")].map((e) => e.textContent).join(" ")`).(string)
	if times = strings.Replace(times, "1:07:", "1:06:", 1); !strings.HasPrefix(times, "25:00 1:06:") || !strings.HasSuffix(times, " 16:40") {
		t.Errorf("the list shows %s", times)
	}
	p.Show("job/100001")
	p.Await("the page of the job shows its times", `document.querySelector(".timekeys")?.textContent.endsWith("ran 16:40left 43:20")`)
	p.Check(g.Lab.OwnToken)
}

// TestSubmissionNotes checks that the user sees the messages of the site's policy,
// and the warnings, about a submission.
func TestSubmissionNotes(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	p := harness.OpenStatus(t, l.URL)
	p.SignIn(l.OwnToken)
	p.Eval(`(() => {
		const real = window.fetch;
		window.fetch = (url, init) => (/\/job\/submit$/.test(url) ? Promise.resolve(new Response(JSON.stringify({ job_id: 7, job_submit_user_msg: "moved to\nthe partition small <b>", warnings: [{ description: "a field is ignored" }] }))) : real(url, init));
	})()`)
	p.Show("submit")
	p.Fill("Working directory", "/")
	p.Click("Submit")
	p.AwaitText("There is no job 7")
	p.Show("overview")
	for _, id := range []string{"8", "7"} {
		p.Eval(`(() => {
			const real = window.fetch;
			window.fetch = (url, init) => (/\/job\/\d\?/.test(url) ? Promise.resolve(new Response(JSON.stringify({ jobs: [{ ...window.job, job_id: ` + id + ` }] }))) : real(url, init));
			window.job = { name: "x", user_name: "root", account: "", partition: "p", qos: "", job_state: ["PENDING"], state_reason: "None", hold: false, array_job_id: { number: 0 }, het_job_id: { number: 0 }, time_limit: { set: true, number: 1 }, tres_req_str: "", tres_alloc_str: "", nodes: "" };
			for (const name of ["submit_time", "start_time", "end_time", "suspend_time", "pre_sus_time", "eligible_time", "deadline", "cpus", "node_count", "priority"]) window.job[name] = { number: 0 };
		})()`)
		p.Show("job/" + id + "?submitted=yes")
		p.AwaitText("The job was submitted.")
		shown := strings.Contains(p.Text(), "moved to\nthe partition small <b>") && strings.Contains(p.Text(), "a field is ignored")
		if shown != (id == "7") {
			t.Errorf("job %s: the notes are shown: %v", id, shown)
		}
	}
	p.Check(l.OwnToken)
}

// TestFewerWaitingTasks checks that the page of an array's waiting tasks still
// shows these when one of them has started, and not another task.
func TestFewerWaitingTasks(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(4, 2)
	for i := range jobs {
		jobs[i].ArrayJobID = 100_001
	}
	jobs[0].State, jobs[0].ArrayTasks = model.JobPending, "4-9%2"
	jobs[1].State, jobs[1].ArrayTaskID = model.JobComplete, model.Some(uint32(1))
	c := newController(t, nodes, jobs, partitions)
	g := startFor(t, c)
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	p.Show("job/100001_%5B4-9%252%5D")
	p.Await("the waiting tasks are shown", `document.querySelector(".crumbs")?.textContent.endsWith("100001_[4-9%2]")`)
	c.change(func() {
		c.jobs[0].StepID.JobID, c.jobs[0].ArrayTasks = 100_003, "5-9%2"
		c.jobs[1], c.jobs[0] = c.jobs[0], c.jobs[1]
		started := c.jobs[0]
		started.StepID.JobID, started.State, started.ArrayTaskID = 100_001, model.JobRunning, model.Some(uint32(4))
		c.jobs = append(c.jobs, started)
	})
	p.Await("those that still wait are shown", `document.querySelector(".crumbs")?.textContent.endsWith("100001_[5-9%2]")`)
	p.Check(g.Lab.OwnToken)
}

// TestSelectionInDialog checks that a dialog stays open when the user selects a
// text in it with the mouse, and ends outside.
func TestSelectionInDialog(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(4, 2)
	nodes[0].State = model.NodeIdle
	g := startFor(t, newController(t, nodes, jobs, partitions))
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	p.Show("node/" + nodes[0].Name)
	p.Ask("Drain")
	p.Fill("Reason", "replace a disk")
	place := func(of string) float64 {
		n, _ := p.Eval(`document.querySelector("dialog input").getBoundingClientRect().` + of).(float64)
		return n + 9
	}
	x, y := place("left"), place("top") // a click outside may close the dialog at once
	mouse := func(kind string, x float64) {
		p.Call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}, nil)
	}
	mouse("mousePressed", x)
	mouse("mouseMoved", 5)
	mouse("mouseReleased", 5)
	if open := p.Eval(`document.querySelector("dialog[open] input")?.value`); open != "replace a disk" {
		t.Errorf("the reason is %v", open)
	}
	mouse("mousePressed", 5)
	mouse("mouseReleased", 5)
	p.Await("a click outside closes the dialog", `document.querySelector("dialog") === null`)
	p.Check(g.Lab.OwnToken)
}

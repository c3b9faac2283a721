package status

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"schedrestd/integration/harness"
	"schedrestd/model"
)

// TestLargeCluster checks the page with 5000 nodes and 20,000 jobs: it must show
// all of them, but render only the rows in view, and stay usable while jobs
// change all the time. It logs the times and the memory that the page needs. They
// depend on the machine, so nothing is asserted about them. The variable
// STATUS_CHANGES sets the number of rounds of changes.
func TestLargeCluster(t *testing.T) {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("STATUS_CHANGES")); err == nil {
		rounds = n
	}
	nodes, jobs, partitions := cluster(5000, 20_000)
	c := newController(t, nodes, jobs, partitions)
	g := startFor(t, c)
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.Eval(`window.marks = {}; (function look() {
			const done = (name, yes) => { if (yes && !(name in window.marks)) window.marks[name] = performance.now(); };
			done("shell", document.querySelector(".shell")); done("nodes", document.querySelector(".legend li")); done("jobs", document.querySelector(".ranking"));
			requestAnimationFrame(look);
		})()`)
	tasks := traceTasks(t, p)
	token, err := g.Lab.Token(t.Context(), "", 3*time.Hour) // STATUS_CHANGES may make the test that long
	harness.Must(t, err)
	p.SignIn(token)
	p.Await("the nodes and jobs are shown", `document.querySelector(".legend li") !== null && document.querySelector(".ranking") !== null`)
	p.Screenshot("large-overview")
	report := func(what string) {
		var marks map[string]float64
		text, _ := p.Eval(`JSON.stringify(window.marks)`).(string)
		harness.Must(t, json.Unmarshal([]byte(text), &marks))
		p.Call("HeapProfiler.collectGarbage", nil, nil)
		var heap struct{ UsedSize float64 }
		p.Call("Runtime.getHeapUsage", nil, &heap)
		longest, over := tasks()
		t.Logf("%-30s longest task %3.0f ms of processor time, %d over 100 ms; heap %.1f MB; signed in at %.0f ms, nodes at %.0f ms, jobs at %.0f ms", what, longest, over, heap.UsedSize/1e6, marks["shell"], marks["nodes"], marks["jobs"])
	}
	report("overview")

	p.Show("jobs?scope=all")
	p.Await("all jobs are listed", `document.querySelector(".table table").getAttribute("aria-rowcount") === "20001"`)
	rendered := func() float64 {
		n, _ := p.Eval(`document.querySelectorAll(".table tbody tr").length`).(float64)
		return n
	}
	if n := rendered(); n > 120 {
		t.Errorf("%v rows are rendered", n)
	}
	report("list of jobs")
	// Scroll from the first row to the last, a screen at a time.
	p.Eval(`new Promise((resolve) => { const box = document.querySelector(".table"); (function step() {
		if (box.scrollTop + box.clientHeight >= box.scrollHeight - 1) return resolve();
		box.scrollTop += 12 * box.clientHeight; requestAnimationFrame(step); })(); })`)
	p.Await("the last row is shown", `document.querySelector('.table tr[aria-rowindex="20001"]') !== null`)
	if n := rendered(); n > 120 {
		t.Errorf("%v rows are rendered at the end", n)
	}
	report("scrolling")
	for _, sort := range []string{"Name", "User", "Submitted", "Elapsed"} {
		p.Eval(fmt.Sprintf(`[...document.querySelectorAll(".table thead button")].find((e) => e.textContent.startsWith(%q)).click()`, sort))
		p.Eval(`new Promise((resolve) => setTimeout(resolve, 100))`)
	}
	report("sorting")
	p.Show("jobs?scope=all&q=train+bob")
	p.Await("the search finds fewer", `Number(document.querySelector(".table table").getAttribute("aria-rowcount")) < 2000`)
	report("searching")
	p.Show("nodes")
	p.Await("all nodes are listed", `document.querySelector(".table table").getAttribute("aria-rowcount") === "5001"`)
	report("list of nodes")

	// A thousand jobs change in each round.
	p.Show("jobs?scope=all")
	for round := range rounds {
		name := fmt.Sprintf("round-%d", round)
		c.change(func() {
			for i := range 1000 {
				j := &c.jobs[(round*1000+i)%len(c.jobs)]
				j.Name = name
				j.State = []model.JobState{model.JobPending, model.JobRunning, model.JobComplete}[(round+i)%3]
			}
			c.jobs[len(c.jobs)-1].Name = name
		})
		p.Await("the changes are shown", fmt.Sprintf(`document.body.innerText.includes(%q)`, name))
		if round%20 == 2 {
			report(fmt.Sprintf("after %d rounds of changes", round+1))
		}
	}
	p.Show("overview")
	p.Await("the overview is shown", `document.querySelector(".ranking") !== null`)
	report("overview after changes")
	p.Check(token)
}

// traceTasks records the tasks of the page's main thread. The returned function
// returns the processor time of the longest one since its last call, in
// milliseconds, and the number of those with more than 100. The time is that of
// the thread, so other work of the machine does not count.
func traceTasks(t *testing.T, p *harness.StatusPage) func() (longest float64, over int) {
	type event struct {
		Name, Ph string
		Pid, Tid int
		TDur     float64
		Args     struct{ Name string }
	}
	var events []event
	complete := false
	p.Event = func(method string, params json.RawMessage) {
		switch method {
		case "Tracing.dataCollected":
			var data struct{ Value []event }
			harness.Must(t, json.Unmarshal(params, &data))
			for _, e := range data.Value {
				if e.Ph == "M" || e.Name == "ThreadControllerImpl::RunTask" || e.Name == "RunTask" {
					events = append(events, e)
				}
			}
		case "Tracing.tracingComplete":
			complete = true
		}
	}
	start := func() {
		events, complete = nil, false
		p.Call("Tracing.start", map[string]any{"transferMode": "ReportEvents", "traceConfig": map[string]any{"includedCategories": []string{"toplevel", "disabled-by-default-devtools.timeline", "__metadata"}, "excludedCategories": []string{"*"}}}, nil)
	}
	start()
	return func() (longest float64, over int) {
		p.Call("Tracing.end", nil, nil)
		harness.Eventually(t, "the trace is complete", func() bool { p.Eval("1"); return complete })
		main := map[[2]int]bool{}
		for _, e := range events {
			if e.Ph == "M" && e.Name == "thread_name" && e.Args.Name == "CrRendererMain" {
				main[[2]int{e.Pid, e.Tid}] = true
			}
		}
		for _, e := range events {
			if ms := e.TDur / 1000; main[[2]int{e.Pid, e.Tid}] {
				longest = max(longest, ms)
				if ms > 100 {
					over++
				}
			}
		}
		start()
		return longest, over
	}
}

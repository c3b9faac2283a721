package status

import (
	"fmt"
	"strings"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/model"
)

// TestLongNames checks that tables stay in their place with names of any length:
// while the rows are scrolled, and on a narrow screen.
func TestLongNames(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(40, 600)
	for i := range 300 { // the list begins with the others
		j := &jobs[i]
		j.Name, j.UserName, j.Account = strings.Repeat("variant-calling_chr17:", 5), "maximiliane.von-und-zu-hohenfels", strings.Repeat("climate-", 6)
		j.Partition, j.StateDescription = "batch,gpu,long", "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
		j.ArrayJobID, j.ArrayTaskID, j.ArrayTasks = 0, model.Opt[uint32]{}, ""
	}
	for i := range jobs {
		if jobs[i].State == model.JobRunning {
			jobs[i].StartTime -= 100_000 // more than a day
		}
	}
	failed, array := &jobs[0], &jobs[299] // the array is in the middle, because its number is long, too
	failed.State, failed.ExitCode, failed.StateDescription = model.JobFailed, 53, "RaisedSignal:53(Real-time signal 19)"
	array.State, array.ArrayJobID, array.ArrayTasks = model.JobPending, array.StepID.JobID, "0-499%20"
	c := newController(t, nodes, jobs, partitions)
	c.shares = []model.Share{{Name: "root", Factor: model.FloatNotSet}, {Name: strings.Repeat("climate-", 6), Parent: "root"}, {Name: "maximiliane.von-und-zu-hohenfels", Parent: strings.Repeat("climate-", 6), User: true}}
	g := startFor(t, c)
	p := harness.OpenStatus(t, "http://"+g.Address)
	size := func(width int) {
		p.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	}
	size(1440)
	p.SignIn(g.Lab.OwnToken)
	p.Show("jobs?scope=all")
	p.Await("the rows are shown", `document.querySelector('.table tr[aria-rowindex="2"]') !== null`)
	text := func(expression string) string {
		found, _ := p.Eval(expression).(string)
		return found
	}
	// The numbers of the columns of texts and of those before them do not depend on the rows.
	const columns = `[...document.querySelectorAll(".table thead th")].slice(1, 7).map((th) => Math.round(th.getBoundingClientRect().width)).join(" ")`
	before := text(columns)
	p.Eval(`document.querySelector(".table").scrollTop = 1e6`)
	p.Await("the last row is shown", `document.querySelector('.table tr[aria-rowindex="601"]') !== null`)
	p.Await("the columns have their widths", `document.querySelectorAll(".table tbody tr:not(.space)").length > 10`)
	if after := text(columns); after != before {
		t.Errorf("the widths of the columns change from %s to %s", before, after)
	}
	const beyond = `document.querySelector(".table").scrollWidth - document.querySelector(".table").clientWidth`
	if n := p.Eval(beyond); n != 0.0 {
		t.Errorf("the table is %v pixels too wide", n)
	}
	p.AwaitText("The file for input, output or errors")
	p.Eval(`document.querySelector(".table thead input").click()`)
	p.AwaitText("1,099 selected") // the tasks of the array, too
	p.Show("jobs?scope=all&q=raisedsignal")
	p.Await("what the search finds is announced", `[...document.querySelectorAll("[role=status]")].some((e) => e.textContent === "0 found")`)
	p.Show(fmt.Sprintf("job/%d", failed.StepID.JobID))
	p.AwaitText("The file for input, output or errors, or its directory, can't be opened (0:53)")

	for i, view := range []string{"jobs?scope=all", "nodes", "shares", "jobs?scope=all"} {
		size([]int{390, 390, 390, 320}[i])
		p.Show(view)
		p.Await("the rows are shown", `document.querySelector('.table tr[aria-rowindex="2"]') !== null`)
		if n := p.Eval(beyond); n != 0.0 {
			t.Errorf("%s: the table is %v pixels too wide", view, n)
		}
		if heights := text(`[...new Set([...document.querySelectorAll(".table tbody tr:not(.space)")].map((tr) => Math.round(tr.getBoundingClientRect().height)))].join(" ")`); heights != "34" {
			t.Errorf("%s: the rows are %s pixels high", view, heights)
		}
	}
	size(390)
	p.Show("overview")
	if n := p.Eval(`[...document.querySelectorAll(".card .scroll")].map((e) => e.scrollWidth - e.clientWidth).join()`); n != "0" {
		t.Errorf("the partitions are %v pixels too wide", n)
	}
	p.Check(g.Lab.OwnToken)
}

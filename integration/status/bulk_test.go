package status

import (
	"fmt"
	"strings"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/model"
)

// TestSaveLargeTable checks that the page saves all rows of a table without showing
// them, which would stop it for half a minute.
func TestSaveLargeTable(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(4, 5000)
	g := startFor(t, newController(t, nodes, jobs, partitions))
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	p.Show("jobs?scope=all")
	p.Await("all jobs are listed", `document.querySelector(".table table").getAttribute("aria-rowcount") === "5001"`)
	checkPlace(t, p)
	p.Eval(`(() => {
		window.saved = "";
		window.most = 0;
		URL.createObjectURL = (blob) => { void blob.text().then((text) => { window.saved = text; }); return "#"; };
		new MutationObserver(() => { window.most = Math.max(window.most, document.querySelectorAll(".table tr").length); }).observe(document.querySelector(".table"), { childList: true, subtree: true });
	})()`)
	p.Eval(`document.querySelector(".csv").click()`)
	p.Await("the table is saved", `window.saved !== ""`)
	saved, _ := p.Eval(`window.saved`).(string)
	if n := strings.Count(saved, "\r\n"); n != 5001 {
		t.Errorf("%d lines are saved", n)
	}
	if most, _ := p.Eval(`window.most`).(float64); most > 120 {
		t.Errorf("%v rows were shown", most)
	}
	p.Check(g.Lab.OwnToken)
}

// checkPlace checks that the list of 5000 jobs has its order and place again after Back
// from a job, and that a link leads to its beginning.
func checkPlace(t *testing.T, p *harness.StatusPage) {
	t.Helper()
	const place = `[document.querySelector(".table").scrollTop, document.querySelector(".table [aria-sort]").textContent, document.querySelector('[data-row="4002"]')?.textContent].join()`
	p.Eval(`[...document.querySelectorAll(".table thead button")].find((e) => e.textContent === "Name").click()`)
	p.Await("the jobs are sorted", `document.querySelector(".table [aria-sort]").textContent === "Name↑"`)
	p.Eval(`document.querySelector(".table").scrollTop = 34 * 4000`)
	p.Await("the row is shown", `document.querySelector('[data-row="4002"]') !== null`)
	before := p.Eval(place)
	p.Eval(`document.querySelector('[data-row="4002"]').click()`)
	p.Await("the job is shown", `document.querySelector(".crumbs") !== null`)
	p.Eval(`history.back()`)
	p.Await("the list is in its order and place again", fmt.Sprintf(`document.querySelector(".table.tall") !== null && %s === %q`, place, before))
	p.Show("overview")
	p.Show("jobs?scope=all")
	if after := p.Eval(place); after != "0,Job↓," {
		t.Errorf("after a link the list is at %v", after)
	}
}

// TestManyChanges checks that a dialog about many jobs lists some of them and those
// that fail, and stays fast enough to be stopped.
func TestManyChanges(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(4, 3000)
	for i := range jobs {
		jobs[i].State, jobs[i].UserName, jobs[i].ArrayJobID, jobs[i].ArrayTaskID = model.JobRunning, "root", 0, model.Opt[uint32]{}
	}
	g := startFor(t, newController(t, nodes, jobs, partitions))
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	p.Eval(`(() => { // the last two jobs can't be cancelled
		const real = window.fetch;
		window.fetch = (url, init) => init.method !== "DELETE" ? real(url, init) : Promise.resolve(/10299[89]$/.test(url) ? new Response(JSON.stringify({ errors: [{ description: "not yours" }] }), { status: 403 }) : new Response("{}"));
	})()`)
	p.Show("jobs?scope=all")
	p.Await("all jobs are listed", `document.querySelector(".table table").getAttribute("aria-rowcount") === "3001"`)
	p.Eval(`document.querySelector(".table thead input").click()`)
	p.AwaitText("3,000 selected")
	p.Ask("Cancel")
	p.AwaitText("and 2,900 others")
	const lines = `document.querySelectorAll("dialog .targets li").length`
	if n := p.Eval(lines); n != 101.0 {
		t.Errorf("the dialog has %v lines", n)
	}
	p.Click("Cancel 3,000 jobs")
	p.AwaitText("Done: 2,998. Refused or failed: 2.")
	if n := p.Eval(lines); n != 103.0 {
		t.Errorf("the dialog has %v lines at the end", n)
	}
	p.AwaitText("and 2,898 others")
	p.AwaitText("not yours")
	p.CloseDialog()
	p.Check(g.Lab.OwnToken)
}

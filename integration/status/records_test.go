package status

import (
	"testing"

	"schedrestd/integration/harness"
)

// playRecords is a script that answers the page's requests for accounting records
// of the array 77 as a gateway does: with those of all its tasks, of which the first
// one has the number of the array and was requeued.
const playRecords = `(() => {
	const real = window.fetch;
	const record = (id, task, name) => ({ job_id: id, array: { job_id: 77, task_id: { set: true, number: task } }, name, user: "ann", account: "a", partition: "p", qos: "q", nodes: "n1", allocation_nodes: 1, state: { current: ["COMPLETED"], reason: "None" }, required: { CPUs: 1 },
		exit_code: { return_code: { number: 0 }, signal: { id: { number: 0 } } }, steps: [], tres: { requested: [], allocated: [] }, comment: {},
		time: { submission: 100, start: 200, end: 300, elapsed: 100, limit: { set: true, number: 10 }, eligible: 100, suspended: 0, total: { seconds: 1, microseconds: 0 } } });
	window.fetch = (address, init) => {
		const url = new URL(address, location.href);
		if (!url.pathname.includes("db/") || url.searchParams.get("step") !== "77") return real(address, init);
		const jobs = [record(77, 1, "the run that was requeued"), record(77, 1, "the last run"), record(78, 2, "another task")];
		return Promise.resolve(new Response(JSON.stringify({ errors: [], warnings: [], jobs }), { headers: { "Content-Type": "application/json" } }));
	};
})()`

// TestRecord checks which of several accounting records the page of a job shows.
func TestRecord(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	p := harness.OpenStatus(t, l.URL)
	p.SignIn(l.OwnToken)
	p.Eval(playRecords)
	p.Show("job/77")
	p.Await("a record is shown", `/^(the|another) /.test(document.querySelector(".viewhead h1")?.textContent)`)
	if shown := p.Eval(`document.querySelector(".viewhead h1").textContent + ", " + document.querySelector(".crumbs").textContent`); shown != "the last run, Jobs / 77_1" {
		t.Errorf("the page shows %v", shown)
	}
	p.Check(l.OwnToken)
}

package status

import (
	"fmt"
	"testing"
	"time"

	"schedrestd/integration/harness"
	"schedrestd/model"
)

// TestWrongClock checks that the clock of the user's computer makes no difference:
// it is two hours off, and is then set. The page shows the times of the cluster
// with the gateway's clock, and the token stays valid.
func TestWrongClock(t *testing.T) {
	t.Parallel()
	for _, hours := range []int{2, -2} {
		t.Run(fmt.Sprintf("%+dh", hours), func(t *testing.T) {
			t.Parallel()
			nodes, jobs, partitions := cluster(4, 3)
			now := model.Time(time.Now().Unix())
			for i := range jobs {
				jobs[i].State, jobs[i].StartTime, jobs[i].ArrayJobID, jobs[i].ArrayTaskID = model.JobRunning, now-1500, 0, model.Opt[uint32]{}
			}
			jobs[0].State, jobs[0].StartTime = model.JobPending, now+1500
			c := newController(t, nodes, jobs, partitions)
			g := startFor(t, c)
			b := harness.StartBrowser(t)
			b.Call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": fmt.Sprintf(`window.off = %d * 3_600_000;
				window.Date = class extends Date {
					constructor(...args) { args.length > 0 ? super(...args) : super(window.Date.now()); }
					static now() { return super.now() + window.off; }
				};`, hours)}, nil)
			p := harness.OpenStatusIn(b, t, "http://"+g.Address)
			p.SignIn(g.Lab.OwnToken)
			check := func() {
				t.Helper()
				p.AwaitText("token: 59:") // minutes
				p.Show("jobs?scope=all")
				p.Await("the list shows for how long jobs have run", `/^25:\d\d$/.test(document.querySelector(".table td.roomy")?.textContent)`)
				p.Show("job/100002")
				p.Await("the page of a job shows for how long it has run", `/ran 25:\d\d/.test(document.querySelector(".timekeys")?.textContent)`)
				p.Show("job/100001")
				p.Await("the page of a job shows when it may start", `/\(in 2[45]:\d\d\)/.test(document.querySelector(".why")?.textContent)`)
				p.Show("submit")
				p.Fill("Script", "#!/bin/sh\n#SBATCH --begin=now+60\n#SBATCH --comment="+fmt.Sprint(p.Eval(`String(window.off)`))+"\n")
				p.Await("the script is read", `document.querySelector("pre.source").textContent.includes('"comment": "' + window.off)`)
				begin, _ := p.Eval(`JSON.parse(/-d '([^']*)'/.exec(document.querySelector("pre.source").textContent)[1]).job.begin_time.number`).(float64)
				if in := time.Until(time.Unix(int64(begin), 0)); in < 30*time.Second || in > 70*time.Second {
					t.Errorf("a job that is to begin in a minute begins in %v", in)
				}
			}
			check()
			p.Eval(`window.off = 0`)
			check()
			c.change(func() { c.jobs[2].State = model.JobNodeFail })
			p.Show("overview")
			p.Await("the change is listed", `document.querySelector(".changes time") !== null`)
			at, _ := p.Eval(`document.querySelector(".changes time").dateTime`).(string)
			if changed, err := time.Parse(time.RFC3339, at); err != nil || time.Since(changed).Abs() > time.Minute {
				t.Errorf("the change was at %s, %v", at, err)
			}
			p.Check(g.Lab.OwnToken)
		})
	}
}

package status

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/model"
)

// notSet matches -2 as a number. A user's name may contain it.
var notSet = regexp.MustCompile(`(^|[\s/])-2\b`)

// TestNumbers checks what the page shows of a cluster of which only a small part
// works: the share in use is that of what jobs can use, waiting tasks of an array
// count each, and states have their own words.
func TestNumbers(t *testing.T) {
	t.Parallel()
	nodes, _, partitions := cluster(43, 1)
	for i := range nodes {
		n := &nodes[i]
		n.State, n.AllocCPUs, n.GRES, n.GRESUsed = model.NodeDown, 0, "", ""
	}
	nodes[0].State, nodes[0].CPUs, nodes[0].EffectiveCPUs, nodes[0].AllocCPUs = model.NodeAllocated, 12, 12, 12
	nodes[1].State, nodes[1].CPUs, nodes[1].EffectiveCPUs = model.NodeIdle|model.NodePlanned, 2, 2
	nodes[2].State, nodes[2].CPUs, nodes[2].EffectiveCPUs = model.NodeIdle|model.NodePoweredDown, 2, 2 // a job switches it on
	_, jobs, _ := cluster(43, 3)
	jobs[0].State, jobs[0].StateReason, jobs[0].UserName, jobs[0].Partition = model.JobPending, 3, "root", "batch"
	jobs[0].ArrayJobID, jobs[0].ArrayTasks = jobs[0].StepID.JobID, "0-38,45%4"
	jobs[0].StateDescription = "Nodes required for job are DOWN"
	long := strings.Repeat("y", 300) // the table shows less
	jobs[1].State, jobs[1].UserName, jobs[1].Partition, jobs[1].Name = model.JobRunning, "root", "batch", `=1+cmd("x")`+long
	jobs[2].State, jobs[2].UserName, jobs[2].Partition = model.JobComplete, "root", "gpu"
	c := newController(t, nodes, jobs, partitions)
	g := startFor(t, c)
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	p.Await("the nodes and jobs are shown", `document.querySelector(".legend li") !== null && document.querySelector(".ranking") !== null`)
	has := func(view string, texts ...string) {
		t.Helper()
		p.Show(view)
		for _, text := range texts {
			p.AwaitText(text)
		}
	}
	has("overview", "75 %", "40 jobs wait", "Planned", "default", "Resources", "The job waits until enough resources are free.")
	if order := p.Eval(`(() => { const of = (label) => document.querySelector('section[aria-label="' + label + '"]').getBoundingClientRect().top; return of("Why jobs wait") < of("Nodes") && of("Partitions") < of("Last hour"); })()`); order != true {
		t.Error("the reasons are not shown first")
	}
	has("partitions", "default")
	has("nodes", "Planned")
	has("jobs?scope=all", "×40", "Nodes required for job are DOWN")
	if tabs, _ := p.Eval(`[...document.querySelectorAll(".segments button")].map((e) => e.textContent).join(", ")`).(string); !strings.Contains(tabs, "All 42") || !strings.Contains(tabs, "Waiting 40") {
		t.Errorf("the tabs are %s", tabs)
	}
	has(fmt.Sprintf("job/%d_[0-38,45%%4]", jobs[0].ArrayJobID), "Nodes required for job are DOWN", "Waiting tasks")
	if text := p.Text(); strings.Contains(text, "4294967294") || notSet.MatchString(text) {
		t.Errorf("the page shows what is not set:\n%s", text)
	}

	// A saved table has all columns, and all of each text. No cell may be a formula.
	p.Show("jobs?scope=all")
	p.Eval(`window.saved = ""; URL.createObjectURL = (blob) => { void blob.text().then((text) => { window.saved = text; }); return "#"; }`)
	p.Await("the table is shown", `document.querySelector(".csv") !== null`)
	p.Eval(`document.querySelector(".csv").click()`)
	p.Await("the table is saved", `window.saved !== ""`)
	saved, _ := p.Eval(`window.saved`).(string)
	if lines := strings.Split(strings.TrimSpace(saved), "\r\n"); len(lines) != 4 || !strings.HasPrefix(strings.TrimPrefix(lines[0], "\ufeff"), `"Job","Name","State"`) || !strings.Contains(saved, `"'=1+cmd(""x"")`+long+`"`) {
		t.Errorf("saved:\n%s", saved)
	}
	p.Check(g.Lab.OwnToken)
}

// TestPrint checks that a printed list has all rows, and none of the controls. It
// makes pictures of the views: wide, dark, narrow and printed.
func TestPrint(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(400, 1000)
	for i := range jobs {
		if j := &jobs[i]; j.State == model.JobPending && i%9 == 0 {
			j.ArrayJobID, j.ArrayTasks, j.ArrayTaskID = j.StepID.JobID, "1-40%10", model.Opt[uint32]{}
		}
	}
	c := newController(t, nodes, jobs, partitions)
	g := startFor(t, c)
	p := harness.OpenStatus(t, "http://"+g.Address)
	media := func(media, scheme string) {
		p.Call("Emulation.setEmulatedMedia", map[string]any{"media": media, "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	}
	size := func(width, height int) {
		p.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	}
	size(1280, 900)
	p.SignIn(g.Lab.OwnToken)
	p.Await("the nodes and jobs are shown", `document.querySelector(".legend li") !== null && document.querySelector(".ranking") !== null`)
	for _, view := range []string{"overview", "jobs?scope=all", "nodes", "partitions", "submit", "job/100001"} {
		name := strings.NewReplacer("/", "-", "?", "-").Replace(view)
		p.Show(view)
		for _, kind := range []struct {
			name          string
			width, height int
			scheme        string
		}{{"wide", 1280, 900, "light"}, {"dark", 1280, 900, "dark"}, {"narrow", 390, 800, "light"}} {
			size(kind.width, kind.height)
			media("screen", kind.scheme)
			p.Eval(`new Promise((resolve) => setTimeout(resolve, 300))`)
			p.Screenshot(name + "-" + kind.name)
			if width := p.Eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); width != 0.0 {
				t.Errorf("%s %s is %v pixels too wide", view, kind.name, width)
			}
		}
	}
	p.Show("jobs?scope=all")
	p.Await("all jobs are listed", `document.querySelector(".table table").getAttribute("aria-rowcount") === "1001"`)
	size(1000, 1300)
	media("print", "dark")
	p.Eval(`dispatchEvent(new Event("beforeprint"))`)
	p.Await("all rows are printed", `document.querySelectorAll(".table tbody tr:not(.space)").length === 1000`)
	p.Screenshot("jobs-printed")
	if shown, _ := p.Eval(`[...document.querySelectorAll(".side, .top, .tools, .csv, input")].filter((e) => e.getClientRects().length > 0).map((e) => e.className).join(", ")`).(string); shown != "" {
		t.Errorf("printed: %s", shown)
	}
	if colour := p.Eval(`getComputedStyle(document.body).backgroundColor`); colour != "rgb(255, 255, 255)" {
		t.Errorf("the paper is %v", colour)
	}
	media("screen", "light")
	p.Eval(`dispatchEvent(new Event("afterprint"))`)
	p.Await("the list is short again", `document.querySelectorAll(".table tbody tr").length < 120`)
	p.Check(g.Lab.OwnToken)
}

package status

import (
	"fmt"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/model"
)

// focusOn waits until an element that matches a selector and has this text has the
// focus. Without a text, any will do.
func focusOn(t *testing.T, p *harness.StatusPage, selector, text string) {
	t.Helper()
	p.Await("the focus is on "+selector+" "+text, fmt.Sprintf(`document.activeElement.matches(%q) && [%q, ""].includes(%[2]q && document.activeElement.textContent)`, selector, text))
}

// TestFocusInDialog checks that a user of the keyboard stays where they are while a
// dialog opens, makes changes and closes.
func TestFocusInDialog(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(4, 30)
	jobs[0].UserName, jobs[0].State = "root", model.JobRunning
	c := newController(t, nodes, jobs, partitions)
	c.permits = true
	g := startFor(t, c)
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	p.Show("job/100001")
	press := func(text string) {
		t.Helper()
		p.Await("there is a button "+text, fmt.Sprintf(`(() => {
			const found = [...(document.querySelector("dialog[open]") ?? document).querySelectorAll("button")].find((e) => e.textContent === %q);
			found?.focus();
			found?.click();
			return found !== undefined;
		})()`, text))
	}
	ask := func() {
		t.Helper()
		press("Cancel")
		focusOn(t, p, "dialog[open] button", "Change nothing")
	}
	ask()
	press("Change nothing")
	p.Await("the dialog is closed", `document.querySelector("dialog") === null`)
	focusOn(t, p, ".actions button", "Cancel")
	ask()
	press("Cancel job")
	focusOn(t, p, "dialog button", "Close")
	press("Close")
	focusOn(t, p, ".actions button", "Cancel")
	p.Await("the dialog is gone", `document.querySelector("dialog") === null`)
	c.change(func() { c.jobs[0].State = model.JobComplete })
	p.Await("the job is over, and can't be cancelled", `document.querySelector(".actions button.danger") === null`)
	focusOn(t, p, "#main", "")
	c.change(func() { c.jobs[0].State = model.JobRunning })

	// The selection, with the button that opened the dialog, goes only after a change.
	p.Show("jobs?scope=all&q=100001")
	p.Await("the job is listed", `document.querySelector(".table tbody input") !== null`)
	p.Eval(`document.querySelector(".table tbody input").click()`)
	p.AwaitText("1 selected")
	ask()
	press("Change nothing")
	p.Await("the dialog is closed", `document.querySelector("dialog") === null`)
	focusOn(t, p, ".bulk button", "Cancel")
	ask()
	press("Cancel job")
	press("Close")
	focusOn(t, p, "#main", "")
	p.Await("nothing is selected", `document.querySelector(".bulk") === null`)
	p.Show("nodes?q=r01n02") // idle
	p.Await("the node is listed", `document.querySelector(".table tbody input") !== null`)
	p.Eval(`document.querySelector(".table tbody input").click()`)
	press("Drain")
	focusOn(t, p, "dialog[open] input", "")
	press("Change nothing")
	p.Await("the dialog is closed", `document.querySelector("dialog") === null`)
	focusOn(t, p, ".bulk button", "Drain")
	press("Clear the selection")
	focusOn(t, p, "#main", "")
	p.Check(g.Lab.OwnToken)
}

// TestFocusStays checks that a control keeps the focus while the page is busy with
// what it asked for, and that Tab leads to the rows in view.
func TestFocusStays(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(4, 400)
	g := startFor(t, newController(t, nodes, jobs, partitions))
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	p.Show("submit")
	p.Fill("Working directory", "/")
	p.Await("the form can be sent", `!document.querySelector(".formfoot button").disabled`)
	for _, button := range []string{"When would it start?", "Submit"} { // the controller refuses both
		p.Eval(fmt.Sprintf(`(() => { const found = [...document.querySelectorAll(".formfoot button")].find((e) => e.textContent === %q); found.focus(); found.click(); })()`, button))
		p.Await("the answer is shown", `document.querySelector(".problem") !== null`)
		focusOn(t, p, ".formfoot button", button)
	}
	p.Show("jobs?scope=all")
	p.Await("the rows are shown", `document.querySelector('[data-row="3"]') !== null`)
	p.Eval(`document.querySelector(".table").scrollTop = 6000`)
	p.Await("Tab leads to a row in view", `document.querySelector('.table [data-row="0"]') === null && document.querySelectorAll('.table tbody [tabindex="0"]').length === 1`)

	p.Click("Sign out")
	focusOn(t, p, "textarea", "")
	p.SignIn(g.Lab.OwnToken)
	p.Eval(`window.fetch = async () => new Response("{}", { status: 401 })`)
	p.Show("partitions")
	p.Await("a screen reader reads why the page asks for a token", `document.querySelector(".signin [role=alert]")?.textContent.startsWith("Your token is no longer accepted")`)
	focusOn(t, p, "textarea", "")
	p.Check(g.Lab.OwnToken)
}

// TestPhone uses the menu of a narrow screen, and checks that large numbers fit.
func TestPhone(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(60, 20_000)
	for i := range jobs {
		jobs[i].State, jobs[i].UserName = model.JobRunning, "root"
	}
	g := startFor(t, newController(t, nodes, jobs, partitions))
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 360, "height": 640, "deviceScaleFactor": 1, "mobile": false}, nil)
	p.SignIn(g.Lab.OwnToken)
	p.Await("the numbers are shown", `document.querySelector(".tile .down") !== null`)
	if wide := p.Eval(`[...document.querySelectorAll(".tile")].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText).join("\n")`); wide != "" {
		t.Errorf("too wide: %v", wide)
	}
	menu := func(what string) {
		t.Helper()
		p.Eval(`document.querySelector(".menu").focus(); document.querySelector(".menu").click()`)
		p.Await("the menu is open", `document.querySelector("#nav").getClientRects().length === 1`)
		p.Eval(what)
		p.Await("the menu is closed", `document.querySelector("#nav").getClientRects().length === 0`)
	}
	follow := func(link string) string {
		return fmt.Sprintf(`(() => { const a = document.querySelector("#nav [href='%s']"); a.focus(); a.click(); })()`, link)
	}
	menu(follow("#/jobs"))
	p.AwaitText("Submit a job")
	focusOn(t, p, "#main", "")
	menu(follow("#/jobs")) // the view that is shown
	focusOn(t, p, "#main", "")
	menu(`document.querySelector("main h1").click()`)
	menu(`document.querySelector("#nav a").focus(); document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }))`)
	focusOn(t, p, ".menu", "")

	p.Show("jobs?scope=all")
	p.Await("the rows are shown", `document.querySelector('[data-row="3"]') !== null`)
	p.Eval(`document.querySelector(".table thead input").click()`)
	p.AwaitText("20,000 selected")
	p.Ask("Requeue")
	if wide := p.Eval(`document.querySelector("dialog").scrollWidth - document.querySelector("dialog").clientWidth`); wide != 0.0 {
		t.Errorf("the dialog is %v pixels too wide", wide)
	}
	p.Check(g.Lab.OwnToken)
}

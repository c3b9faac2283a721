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

	// The button that opened the dialog goes with the selection.
	p.Show("jobs?scope=all&q=100001")
	p.Await("the job is listed", `document.querySelector(".table tbody input") !== null`)
	p.Eval(`document.querySelector(".table tbody input").click()`)
	p.AwaitText("1 selected")
	ask()
	press("Change nothing")
	focusOn(t, p, "#main", "")
	p.Check(g.Lab.OwnToken)
}

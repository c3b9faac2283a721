package status

import (
	"fmt"
	"os/user"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/integration/harness"
	"schedrestd/model"
)

// TestActions checks the request of each change that the page offers, and that
// the page offers changes only where they make sense. After an answer has refused
// a change of another user's job, or of a node, the page must not offer such
// changes again until the user signs in again.
func TestActions(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(40, 40)
	self, err := user.Current()
	harness.Must(t, err)
	jobs[0].State, jobs[0].Priority, jobs[0].UserName = model.JobPending, 7, self.Username
	jobs[1].State, jobs[1].Priority, jobs[1].UserName = model.JobPending, 0, self.Username
	jobs[2].State, jobs[2].UserName, jobs[2].ArrayJobID, jobs[2].ArrayTaskID = model.JobRunning, self.Username, 100_003, model.Some(uint32(4))
	jobs[3].State, jobs[3].UserName = model.JobRunning, "bob"
	jobs[4].State, jobs[4].UserName = model.JobRunning, "bob"
	nodes[0].State, nodes[1].State = model.NodeIdle, model.NodeIdle|model.NodeDrain
	c := newController(t, nodes, jobs, partitions)
	c.permits = true
	g := startFor(t, c)
	url := "http://" + g.Address
	p := harness.OpenStatus(t, url)
	p.SignIn(g.Lab.OwnToken)

	offered := func() (names []string) {
		text, _ := p.Eval(`[...document.querySelectorAll("main .actions button")].map((e) => e.textContent).join(" ")`).(string)
		return strings.Fields(text)
	}
	for _, tt := range []struct {
		view    string
		offered []string
		button  string
		reason  string
		want    string
	}{
		{"job/100001", []string{"Cancel", "Hold"}, "Hold", "", `POST /sched/v0.0.45/job/100001 {"hold":true}`},
		{"job/100002", []string{"Cancel", "Release"}, "Release", "", `POST /sched/v0.0.45/job/100002 {"hold":false}`},
		{"job/100003_4", []string{"Cancel", "Requeue"}, "Cancel", "", `DELETE /sched/v0.0.45/job/100003_4 `},
		{"job/100003_4", []string{"Cancel", "Requeue"}, "Requeue", "", `POST /sched/v0.0.45/jobs/requeue {"jobs":["100003_4"]}`},
		{"node/r01n01", []string{"Drain"}, "Drain", " disk ", `POST /sched/v0.0.45/node/r01n01 {"state":["DRAIN"],"reason":"disk"}`},
		{"node/r01n02", []string{"Resume"}, "Resume", "", `POST /sched/v0.0.45/node/r01n02 {"state":["RESUME"]}`},
	} {
		p.Show(tt.view)
		p.Await("changes are offered", `document.querySelector("main .actions button") !== null`)
		if diff := cmp.Diff(tt.offered, offered()); diff != "" {
			t.Errorf("%s offers: (-want +got)\n%s", tt.view, diff)
		}
		p.Changes = nil
		p.Ask(tt.button)
		if tt.reason != "" {
			if p.Eval(`document.querySelector("dialog .primary").disabled`) != true {
				t.Error("the change needs no reason")
			}
			p.Fill("Reason", tt.reason)
		}
		p.Screenshot("confirm-" + tt.button)
		p.Click(tt.button + map[bool]string{true: " job", false: " node"}[strings.HasPrefix(tt.view, "job")])
		p.AwaitText("Done: 1.")
		p.CloseDialog()
		if got := strings.ReplaceAll(strings.Join(p.Changes, "\n"), url, ""); got != tt.want {
			t.Errorf("%s of %s: the page sent %s, want %s", tt.button, tt.view, got, tt.want)
		}
	}

	// Several at once: every one is named, and each gets a request of its own.
	p.Show("jobs?scope=mine&q=100001")
	p.Await("one row", `document.querySelectorAll(".table tbody tr:not(.space)").length === 1`)
	p.Show("jobs?scope=all&state=running")
	rows, _ := p.Eval(`document.querySelector(".table table").getAttribute("aria-rowcount") - 1`).(float64)
	p.Eval(`document.querySelector(".table thead input").click()`)
	p.AwaitText(fmt.Sprintf("%v selected", rows))
	p.Changes = nil
	p.Ask("Cancel")
	p.Click(fmt.Sprintf("Cancel %v jobs", rows))
	p.AwaitText(fmt.Sprintf("Done: %v.", rows))
	if named := p.Eval(`document.querySelectorAll("dialog .targets li").length`); named != rows || len(p.Changes) != int(rows) {
		t.Errorf("%v jobs are named, %d requests sent, want %v", named, len(p.Changes), rows)
	}
	p.CloseDialog()

	// Refused changes.
	c.change(func() { c.permits = false })
	p.Show("job/100004")
	p.Ask("Cancel")
	p.Click("Cancel job")
	p.AwaitText("Refused or failed: 1.")
	p.CloseDialog()
	p.AwaitText("You may not change jobs of other users.")
	p.Show("job/100005")
	p.AwaitText("You may not change jobs of other users.")
	if got := offered(); len(got) > 0 {
		t.Errorf("the page still offers %v", got)
	}
	p.Show("job/100001") // the user's own
	p.Await("changes are offered", `document.querySelector("main .actions button") !== null`)
	p.Show("node/r01n01")
	p.Ask("Drain")
	p.Fill("Reason", "disk")
	p.Click("Drain node")
	p.AwaitText("Refused or failed: 1.")
	p.CloseDialog()
	p.Show("node/r01n02")
	p.AwaitText("You may not change nodes.")
	if got := offered(); len(got) > 0 {
		t.Errorf("the page still offers %v", got)
	}
	p.Check(g.Lab.OwnToken)
	p.Click("Sign out")
	p.Await("the page asks for a token", `document.querySelector(".signin textarea") !== null`)
	p.SignIn(g.Lab.OwnToken)
	p.Await("changes are offered again", `document.querySelector("main .actions button") !== null`)
}

// TestReadOnly checks that the page offers nothing that the scopes of the address
// do not permit, and shows that.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(4, 4)
	self, err := user.Current()
	harness.Must(t, err)
	jobs[0].State, jobs[0].Priority, jobs[0].UserName = model.JobPending, 7, self.Username
	c := newController(t, nodes, jobs, partitions)
	l := harness.NewDaemons(t)
	l.Controller = c.port
	tests := []struct {
		scopes, tag string
		actions     string // that are offered in the list of jobs, for the waiting job, and for a node
	}{
		{"compute.read", "read only", ""},
		{"compute.read+slurmdb.read", "read only", ""},
		{"compute.read+compute.create", "limited", "Submit a job"},
		{"compute.read+compute.cancel", "limited", "Cancel"},
		{"compute.read+compute.modify", "limited", "Hold"},
	}
	var addresses, listeners []string
	for _, tt := range tests {
		address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
		addresses, listeners = append(addresses, address), append(listeners, tt.scopes+"="+address)
	}
	l.StartCounted(t, listeners...)
	for i, tt := range tests {
		t.Run(tt.scopes, func(t *testing.T) { // the page is closed at the end
			p := harness.OpenStatus(t, "http://"+addresses[i])
			p.SignIn(l.OwnToken)
			p.AwaitText(tt.tag)
			var offered []string
			for _, view := range []string{"jobs?scope=all", "job/100001", "node/r01n01"} {
				p.Show(view)
				p.Await("the view is shown", `document.querySelector("main .table tbody tr, main .cards") !== null`)
				text, _ := p.Eval(`[...document.querySelectorAll("main .actions button, main .actions a")].map((e) => e.textContent).join(",")`).(string)
				if text != "" {
					offered = append(offered, text)
				}
			}
			if got := strings.Join(offered, ","); got != tt.actions {
				t.Errorf("the page offers %q, want %q", got, tt.actions)
			}
			p.Show("submit")
			p.Await("submission is offered, or not", fmt.Sprintf(`(document.querySelector("main textarea") !== null) === %t && (document.querySelector("nav [href='#/submit']") !== null) === %[1]t`, strings.Contains(tt.scopes, "create")))
			if !strings.Contains(tt.scopes, "slurmdb.read") {
				p.Show("qos")
				p.AwaitText("does not permit this")
			}
			p.Check("")
		})
	}
}

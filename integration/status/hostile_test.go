package status

import (
	"fmt"
	"strings"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/model"
)

// TestHostileTexts checks that texts of users are shown as text in every view:
// markup, characters that hide other text or change its direction, and very long
// texts. None may become a part of the page, and none may make it unusable.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const (
		markup = `<img src=x onerror="window.injected=1"><script>window.injected=1</script>`
		bidi   = "safe\u202egnp.exe\u2066\u200b\u0007\x1b[2J\u00ad\u034f\U000e0101"
	)
	long := strings.Repeat("x", 100<<10)
	nodes, jobs, partitions := cluster(40, 12)
	texts := []string{markup, bidi, long, "javascript:alert(1)", "${7*7}{{7*7}}", `"><svg onload=window.injected=1>`, "a\nb\tc", "'; window.injected=1; //", strings.Repeat("x", 79) + "😀"}
	for i := range jobs {
		text := texts[i%len(texts)]
		j := &jobs[i]
		j.Name, j.Account, j.Comment, j.AdminComment, j.SystemComment, j.WorkDir, j.Command = text, text, text, text, text, "/"+text, text
		j.State, j.UserName, j.QOS, j.Dependency, j.StateDescription, j.Features, j.Licenses, j.Container = model.JobPending, "root", text, text, text, text, text, text
	}
	for i := range nodes {
		text := texts[i%len(texts)]
		n := &nodes[i]
		n.Reason, n.Comment, n.Features, n.GRES, n.OS, n.Version, n.Architecture = text, text, text, text, text, text, text
		if i%10 == 0 {
			n.State |= model.NodeDrain
		}
	}
	partitions[0].AllowAccounts, partitions[0].AllowQOS = markup, bidi
	c := newController(t, nodes, jobs, partitions)
	g := startFor(t, c)
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	elements := func(view string) {
		t.Helper()
		if got := p.Eval(`document.querySelectorAll("main img, main script, main iframe, main a[href^='javascript'], main [onload], main [onerror]").length`); got != 0.0 || p.Eval(`window.injected === undefined`) != true {
			t.Errorf("%s: a text has become a part of the page", view)
		}
		if strings.ContainsAny(p.Text(), "\u202e\u2066\u200b\u0007\x1b\u034f\U000e0101") {
			t.Errorf("%s shows a hidden character", view)
		}
		if strings.Contains(p.Text(), "⟨D83D⟩") {
			t.Errorf("%s shows half of a character", view)
		}
	}
	for _, view := range []string{"overview", "jobs?scope=all", "jobs?scope=all&q=" + "%3Cimg", "job/100001", "job/100002", "job/100003", "job/100006", "nodes", "node/r01n01", "node/r01n02", "node/r01n03", "partitions",
		"job/%3Cimg%20src%3Dx%20onerror%3Dwindow.injected%3D1%3E", "node/%22%3E%3Csvg%20onload%3Dwindow.injected%3D1%3E"} {
		p.Eval(fmt.Sprintf(`location.hash = "#/" + %q`, view))
		p.Await(view+" is shown", `document.querySelector("main .loading") === null && document.querySelector("main h1, main .empty, main .problem") !== null`)
		elements(view)
		p.Screenshot("hostile-" + strings.NewReplacer("/", "-", "?", "-", "%", "").Replace(view))
	}
	p.Show("jobs?scope=all")
	p.Ask("Columns")
	p.Eval(`document.querySelectorAll("dialog input:not(:checked)").forEach((e) => e.click())`)
	p.Eval(`document.querySelector("dialog").close()`)
	p.Await("all columns are shown", `document.querySelectorAll(".table thead th").length > 18`)
	p.AwaitText("⟨202E⟩")
	elements("all columns")
	p.Eval(`document.querySelector(".table thead input").click()`)
	p.Ask("Cancel")
	p.Await("the question names jobs", `document.querySelectorAll("dialog .targets li").length > 0`)
	elements("the question")
	if shown := p.Eval(`document.querySelector("dialog .targets").innerText.includes("<img src=x onerror=")`); shown != true {
		t.Error("the question does not show the name as it is")
	}
	if width := p.Eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); width != 0.0 {
		t.Errorf("a long text makes the page %v pixels too wide", width)
	}
	p.Check(g.Lab.OwnToken)
}

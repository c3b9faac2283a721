package status

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/model"
)

// TestAccessibility runs the rules of axe-core in each view, in light and dark
// colours and on a narrow screen. axe-core is among the packages that "make web"
// installs.
func TestAccessibility(t *testing.T) {
	t.Parallel()
	axe := readRules(t)
	nodes, jobs, partitions := cluster(60, 60)
	c := newController(t, nodes, jobs, partitions)
	c.shares = []model.Share{{Name: "root"}, {Name: "physics", Parent: "root"}, {Name: "bob", Parent: "physics", User: true}}
	g := startFor(t, c)
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.Call("Page.setBypassCSP", map[string]any{"enabled": true}, nil) // axe-core is not a part of the page
	p.Call("Page.reload", nil, nil)
	p.Await("the page asks for a token", `document.querySelector(".signin textarea") !== null`)
	check := func(what string) {
		t.Helper()
		checkRules(t, p, axe, what)
	}
	check("sign in")
	p.SignIn(g.Lab.OwnToken)
	for _, mode := range []struct {
		name   string
		width  int
		scheme string
	}{{"light", 1360, "light"}, {"dark", 1360, "dark"}, {"narrow", 400, "light"}} {
		p.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": mode.width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
		p.Call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": mode.scheme}}}, nil)
		for _, view := range []string{"overview", "jobs?scope=all", "jobs?scope=all&q=nothing", "job/100001", "job/100005", "nodes", "node/r01n01", "partitions", "reservations", "shares", "submit"} {
			p.Show(view)
			check(mode.name + " " + view)
			if size := p.Eval(`[document.documentElement.scrollWidth - innerWidth, document.documentElement.scrollHeight - innerHeight].join(" ")`); size != "0 0" {
				t.Errorf("%s %s: the frame of the page can be scrolled by %v", mode.name, view, size)
			}
			p.Screenshot(mode.name + "-" + strings.NewReplacer("/", "-", "?", "-").Replace(view))
		}
		p.Show("jobs?scope=all")
		p.Eval(`document.querySelector(".table tbody input").click()`)
		p.Await("a job is selected", `document.querySelector(".bulk") !== null`)
		check(mode.name + " selection")
		p.Eval(`[...document.querySelectorAll(".tools button")].find((e) => e.textContent === "Columns").click()`)
		p.Await("a dialog is open", `document.querySelector("dialog[open]") !== null`)
		check(mode.name + " dialog")
		p.Eval(`document.querySelector("dialog").close()`)
		p.Await("it is closed", `document.querySelector("dialog") === null`)
	}
}

// readRules returns the program of axe-core, or skips the test.
func readRules(t *testing.T) []byte {
	t.Helper()
	axe, err := os.ReadFile(filepath.Join(harness.Root, "web/node_modules/axe-core/axe.min.js"))
	if err != nil {
		harness.SkipMissing(t, "axe-core is not installed: make web")
	}
	return axe
}

// checkRules reports what violates the rules of axe-core. The page must not apply
// its security policy.
func checkRules(t *testing.T, p *harness.StatusPage, axe []byte, what string) {
	t.Helper()
	var found []struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}
	p.Eval(string(axe) + "; 0")
	text, _ := p.Eval(`axe.run(document, { resultTypes: ["violations"] }).then((r) => JSON.stringify(r.violations))`).(string)
	harness.Must(t, json.Unmarshal([]byte(text), &found))
	for _, v := range found {
		for _, n := range v.Nodes {
			t.Errorf("%s: %s (%s): %.200s\n%.400s", what, v.ID, v.Help, n.HTML, n.FailureSummary)
		}
	}
}

// TestKeyboard uses the list of jobs with the keyboard alone: it moves through
// the rows, selects one, opens one, and comes back.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(40, 400)
	c := newController(t, nodes, jobs, partitions)
	g := startFor(t, c)
	p := harness.OpenStatus(t, "http://"+g.Address)
	p.SignIn(g.Lab.OwnToken)
	p.Show("jobs?scope=all")
	press := func(key string, times int) {
		text := map[string]string{"Enter": "\r", " ": " "}[key]
		for range times {
			p.Call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "code": strings.Replace(key, " ", "Space", 1), "text": text,
				"windowsVirtualKeyCode": map[string]int{"Tab": 9, "Enter": 13, " ": 32, "PageDown": 34, "End": 35, "Home": 36, "ArrowUp": 38, "ArrowDown": 40}[key]}, nil)
			p.Call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
		}
	}
	focused := func(what string) {
		t.Helper()
		p.Await("the focus is on "+what, fmt.Sprintf(`document.activeElement.textContent.trim() === %q`, what))
	}
	p.Await("rows are shown", `document.querySelector('.table a[data-row="0"]') !== null`)
	for i := 0; p.Eval(`document.activeElement.dataset.row === undefined`) == true; i++ {
		if i > 60 {
			t.Fatalf("Tab does not lead to the rows; the focus is on %v", p.Eval(`document.activeElement.outerHTML`))
		}
		press("Tab", 1)
	}
	focused("100400")
	press("ArrowDown", 1)
	focused("100399")
	press("End", 1)
	focused("100001")
	press("ArrowUp", 1)
	focused("100002")
	press(" ", 1)
	p.AwaitText("1 selected")
	press("Home", 1)
	focused("100400")
	press("PageDown", 1)
	p.Await("the focus is further down", `Number(document.activeElement.dataset.row) > 5`)
	press("Home", 1)
	focused("100400")
	press("Enter", 1)
	p.AwaitText("Jobs / 100400")
	p.Await("the focus is in the view", `document.activeElement.id === "main"`)
	p.Eval(`history.back()`)
	p.Await("the list is back", `document.querySelector('.table a[data-row="0"]') !== null`)
	p.Check(g.Lab.OwnToken)
}

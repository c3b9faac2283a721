package gateway

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
	"schedrestd/internal/feature"
)

// newestFirst returns the versions in the order of the page, with previews last.
func newestFirst() string {
	var list, previews []string
	for _, p := range slices.Backward(feature.Parsers) {
		if p.Preview() {
			previews = append(previews, p.Name()+" (preview)")
		} else {
			list = append(list, p.Name())
		}
	}
	return strings.Join(append(list, previews...), " ")
}

// TestDocsPage checks /docs in a browser. The page must load without an error.
// It must offer all versions, and list every operation of a version, both for
// paths with sched and for paths with slurm. It must send a request with the token from its
// form, but must not display the token, store it, or put it into a URL. A search
// must find the submission of a job by its summary, and the body that the page
// offers must submit a job that completes.
func TestDocsPage(t *testing.T) {
	t.Parallel()
	b := harness.StartBrowser(t)
	l := harness.NewLab(t, harness.WithOptions(nil, "SCHEDRESTD_NAMES=both"))
	var document struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	harness.Must(t, json.Unmarshal([]byte(l.Request("GET", "/openapi.json", "").Text), &document))
	want := map[[2]string]map[string]bool{} // by spelling and version
	parts := regexp.MustCompile(`^/([a-z]+)/(v0\.0\.\d+)/`)
	for path, methods := range document.Paths {
		m := parts.FindStringSubmatch(path)
		if m == nil {
			t.Fatalf("%s has no version", path)
		}
		for _, names := range []string{"sched", "slurm"} {
			if first := strings.TrimSuffix(m[1], "db"); first != names && first != "util" {
				continue
			}
			for _, o := range methods {
				key := [2]string{names, m[2]}
				if want[key] == nil {
					want[key] = map[string]bool{}
				}
				want[key][o.OperationID] = true
			}
		}
	}

	b.Call("Page.navigate", map[string]any{"url": l.URL + "/docs"}, nil)
	b.Await("the page lists operations", `document.querySelectorAll(".opblock").length > 0`)
	b.Screenshot("docs")
	if got := b.Eval(`[...document.querySelectorAll("#version option")].map(o => o.textContent).join(" ")`); got != newestFirst() {
		t.Errorf("versions: %v", got)
	}
	selectBoth := func(names, version string) {
		b.Eval(fmt.Sprintf(`for (const [id, value] of [["names", %q], ["version", %q]]) {
			const e = document.getElementById(id); e.value = value; e.dispatchEvent(new Event("change")); }`, names, version))
	}
	checkList := func(names, version string) {
		key := [2]string{names, version}
		operations := want[key]
		b.Await(fmt.Sprintf("%v lists %d operations", key, len(operations)), fmt.Sprintf(`document.querySelectorAll(".opblock").length === %d`, len(operations)))
		ids, _ := b.Eval(`[...document.querySelectorAll(".opblock")].map(o => o.id).join(" ")`).(string)
		for _, id := range strings.Fields(ids) {
			if _, name, ok := strings.Cut(strings.TrimPrefix(id, "operations-"), "-"); !ok || !operations[name] {
				t.Errorf("%v lists %s", key, id)
			}
		}
	}

	// Enter the token in the form, send a request, select other paths and
	// another version, and send a request again. The page treats all versions
	// alike, and a browser takes a second for each.
	b.Eval(fmt.Sprintf(`document.getElementById("token").value = "SCHED_JWT=" + %q`, l.OwnToken))
	for i, key := range [][2]string{{"slurm", "v0.0.45"}, {"sched", "v0.0.40"}} {
		names, version := key[0], key[1]
		if i > 0 { // the page shows the first one at the start
			selectBoth(names, version)
		}
		operation := fmt.Sprintf("#operations-%s-%[1]s_%s_get_nodes", names, strings.ReplaceAll(version, ".", ""))
		b.Await("the operation is shown", fmt.Sprintf(`document.querySelector("%s") !== null`, operation))
		checkList(names, version)
		b.Eval(fmt.Sprintf(`document.querySelector("%s .opblock-summary-control").click()`, operation))
		b.Await("it can be tried", fmt.Sprintf(`document.querySelector("%s .execute") !== null && document.querySelector("%[1]s .opblock-loading-animation") === null`, operation))
		b.Eval(fmt.Sprintf(`document.querySelector("%s .execute").click()`, operation))
		b.Await("an answer is shown", fmt.Sprintf(`document.querySelector("%s .live-responses-table .response-col_status") !== null`, operation))
		answer, _ := b.Eval(fmt.Sprintf(`document.querySelector("%s .live-responses-table").innerText`, operation)).(string)
		if !strings.HasPrefix(strings.TrimSpace(strings.SplitN(answer, "Details", 2)[1]), "200") || !strings.Contains(answer, `"nodes": [`) {
			t.Errorf("the answer:\n%.1000s", answer)
		}
		b.Eval(fmt.Sprintf(`document.querySelector("%s").scrollIntoView()`, operation))
		b.Screenshot("call-" + names)
	}
	submitOffered(t, b, l)
	switch pageText, _ := b.Eval("document.body.innerText").(string); {
	case !strings.Contains(pageText, `"nodes": [`):
		t.Error("the text of the page lacks the answer that it shows")
	case strings.Contains(pageText, strings.Split(l.OwnToken, ".")[2]):
		t.Error("the page shows the token")
	}
	if stored := b.Eval(`localStorage.length + sessionStorage.length + document.cookie.length`); stored != 0.0 {
		t.Errorf("the page stores %v things", stored)
	}
	for _, url := range b.Requests {
		if !strings.HasPrefix(url, l.URL+"/") && !strings.HasPrefix(url, "data:") && url != "about:blank" || strings.Contains(url, l.OwnToken) {
			t.Errorf("the page requested %.100s", url)
		}
	}
	for _, p := range b.Problems {
		t.Errorf("console: %s", p)
	}

	// Violate the security policy deliberately. If the browser did not report
	// this, the lack of reports above would prove nothing.
	b.Problems = nil
	if executed := b.Eval(`(() => { const s = document.createElement("script"); s.textContent = "window.injected = true"; document.body.append(s); return window.injected === true })()`); executed != false {
		t.Error("a script in the page was executed")
	}
	b.Await("the next command's result", "true")
	if len(b.Problems) == 0 || !strings.Contains(b.Problems[0], "Content Security Policy") {
		t.Errorf("the violation was not reported: %q", b.Problems)
	}
}

// submitOffered searches for the submission of a job, sends the body that the
// page offers, and waits until the job has completed.
func submitOffered(t *testing.T, b *harness.Browser, l *harness.Lab) {
	t.Helper()
	b.Eval(`(() => { const e = document.querySelector(".operation-filter-input");
		Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(e, "Batch SUBMIT");
		e.dispatchEvent(new Event("input", {bubbles: true})); })()`)
	const operation = "#operations-sched-sched_v0040_post_job_submit"
	b.Await("the search finds one operation", fmt.Sprintf(`document.querySelectorAll(".opblock").length === 1 && document.querySelector("%s") !== null`, operation))
	b.Eval(fmt.Sprintf(`document.querySelector("%s .opblock-summary-control").click()`, operation))
	b.Await("the body is offered", fmt.Sprintf(`document.querySelector("%s .execute") !== null && document.querySelector("%[1]s textarea.body-param__text") !== null`, operation))
	b.Screenshot("submit")
	b.Eval(fmt.Sprintf(`document.querySelector("%s .execute").click()`, operation))
	b.Await("an answer is shown", fmt.Sprintf(`document.querySelector("%s .live-responses-table .response-col_status") !== null`, operation))
	answer, _ := b.Eval(fmt.Sprintf(`document.querySelector("%s .live-responses-table").innerText`, operation)).(string)
	b.Eval(fmt.Sprintf(`document.querySelector("%s .live-responses-table").scrollIntoView()`, operation))
	b.Screenshot("submitted")
	id := regexp.MustCompile(`"job_id": ([0-9]+)`).FindStringSubmatch(answer)
	if id == nil || !strings.Contains(answer, `"warnings": []`) {
		t.Fatalf("the answer:\n%.2000s", answer)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		var list struct {
			Jobs []struct {
				State  []string `json:"job_state"`
				Output string   `json:"stdout_expanded"`
			}
		}
		got := l.Request("GET", "/sched/v0.0.45/job/"+id[1], "")
		harness.Must(t, json.Unmarshal([]byte(got.Text), &list))
		if len(list.Jobs) == 1 && list.Jobs[0].State[0] == "COMPLETED" {
			harness.Must(t, os.Remove(list.Jobs[0].Output))
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the job has not completed: %s", got.Text)
		}
	}
}

// TestDocsPageIsOff checks that the page can be disabled.
func TestDocsPageIsOff(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, harness.WithOptions(nil, "SCHEDRESTD_DOCS=off"))
	l.Request("GET", "/docs", "").Want(t, 404)
	if a := l.Request("GET", "/openapi.json", ""); a.Status != 200 {
		t.Errorf("the document: %d", a.Status)
	}
}

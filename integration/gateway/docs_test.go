package gateway

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// browser is a headless Chromium with one page. It is controlled over its
// debugging pipe, with JSON messages that end with a NUL byte.
type browser struct {
	t        *testing.T
	commands *os.File
	messages *bufio.Reader
	lastID   int
	session  string
	problems []string // errors in the console, and violations of the page's security policy
	requests []string // addresses that the page requested
}

// startBrowser starts Chromium, or skips the test.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed")
	}
	commandsOut, to, err := os.Pipe()
	harness.Must(t, err)
	from, answers, err := os.Pipe()
	harness.Must(t, err)
	dir := t.TempDir()
	cmd := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
		"--no-first-run", "--disable-background-networking", "--user-data-dir="+dir, "--window-size=1280,1400", "--remote-debugging-pipe", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+dir, "NO_PROXY=127.0.0.1", "http_proxy=", "https_proxy=")
	cmd.ExtraFiles = []*os.File{commandsOut, answers}
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	harness.Must(t, cmd.Start())
	commandsOut.Close()
	answers.Close()
	b := &browser{t: t, commands: to, messages: bufio.NewReaderSize(from, 1<<20)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("chromium:\n%.2000s", errOut.Bytes())
		}
		to.Close() // Chromium exits when its pipe is closed
		cmd.Wait()
		from.Close()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Runtime", "Log", "Network", "Page"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call sends a command and waits for its result. It keeps the events that
// arrive before the result.
func (b *browser) call(method string, params any, result any) {
	b.t.Helper()
	b.lastID++
	message := map[string]any{"id": b.lastID, "method": method, "params": params}
	if params == nil {
		message["params"] = map[string]any{}
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	harness.Must(b.t, err)
	_, err = b.commands.Write(append(text, 0))
	harness.Must(b.t, err)
	for {
		text, err := b.messages.ReadBytes(0)
		harness.Must(b.t, err)
		var answer struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		harness.Must(b.t, json.Unmarshal(bytes.TrimRight(text, "\x00"), &answer))
		if answer.Method != "" {
			b.handleEvent(answer.Method, answer.Params)
			continue
		}
		if answer.ID != b.lastID {
			continue
		}
		if answer.Error != nil {
			b.t.Fatalf("%s: %s", method, answer.Error.Message)
		}
		if result != nil {
			harness.Must(b.t, json.Unmarshal(answer.Result, result))
		}
		return
	}
}

func (b *browser) handleEvent(method string, params json.RawMessage) {
	var p struct {
		Type    string
		Entry   struct{ Level, Text, URL string }
		Request struct{ URL string }
	}
	harness.Must(b.t, json.Unmarshal(params, &p))
	switch {
	case method == "Network.requestWillBeSent":
		b.requests = append(b.requests, p.Request.URL)
	case method == "Runtime.exceptionThrown",
		method == "Runtime.consoleAPICalled" && (p.Type == "error" || p.Type == "warning" || p.Type == "assert"),
		method == "Log.entryAdded" && (p.Entry.Level == "error" || p.Entry.Level == "warning"):
		b.problems = append(b.problems, fmt.Sprintf("%s: %.400s", method, params))
	}
}

// eval returns the value of a JavaScript expression. If the value is a promise,
// eval waits for its result and returns that.
func (b *browser) eval(expression string) any {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %v", expression, answer.ExceptionDetails)
	}
	return answer.Result.Value
}

// await waits until a JavaScript expression is true.
func (b *browser) await(event, expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); b.eval(expression) != true; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("did not happen: %s\n%s\n%s", event, strings.Join(b.problems, "\n"), b.eval("document.body.innerText.slice(0, 2000)"))
		}
	}
}

// screenshot writes a picture of the page to the directory that the variable
// DOCS_SCREENSHOTS names, if it is set.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("DOCS_SCREENSHOTS")
	if dir == "" {
		return
	}
	var picture struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &picture)
	data, err := base64.StdEncoding.DecodeString(picture.Data)
	harness.Must(b.t, err)
	harness.Must(b.t, os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644))
}

// TestDocsPage checks /docs in a browser. The page must load without an error.
// It must offer all versions, and list every operation of a version, both for
// paths with sched and for paths with slurm. It must send a request with the token from its
// form, but must not display the token, store it, or put it into a URL. A search
// must find the submission of a job by its summary, and the body that the page
// offers must submit a job that completes.
func TestDocsPage(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
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

	b.call("Page.navigate", map[string]any{"url": l.URL + "/"}, nil) // redirects to /docs
	b.await("the page lists operations", `document.querySelectorAll(".opblock").length > 0`)
	b.screenshot("docs")
	if got := b.eval(`[...document.querySelectorAll("#version option")].map(o => o.value).join(" ")`); got != "v0.0.45 v0.0.44 v0.0.43 v0.0.42 v0.0.41 v0.0.40" {
		t.Errorf("versions: %v", got)
	}
	selectBoth := func(names, version string) {
		b.eval(fmt.Sprintf(`for (const [id, value] of [["names", %q], ["version", %q]]) {
			const e = document.getElementById(id); e.value = value; e.dispatchEvent(new Event("change")); }`, names, version))
	}
	checkList := func(names, version string) {
		key := [2]string{names, version}
		operations := want[key]
		b.await(fmt.Sprintf("%v lists %d operations", key, len(operations)), fmt.Sprintf(`document.querySelectorAll(".opblock").length === %d`, len(operations)))
		ids, _ := b.eval(`[...document.querySelectorAll(".opblock")].map(o => o.id).join(" ")`).(string)
		for _, id := range strings.Fields(ids) {
			if _, name, ok := strings.Cut(strings.TrimPrefix(id, "operations-"), "-"); !ok || !operations[name] {
				t.Errorf("%v lists %s", key, id)
			}
		}
	}

	// Enter the token in the form, send a request, select other paths and
	// another version, and send a request again. The page treats all versions
	// alike, and a browser takes a second for each.
	b.eval(fmt.Sprintf(`document.getElementById("token").value = "SCHED_JWT=" + %q`, l.OwnToken))
	for i, key := range [][2]string{{"slurm", "v0.0.45"}, {"sched", "v0.0.40"}} {
		names, version := key[0], key[1]
		if i > 0 { // the page shows the first one at the start
			selectBoth(names, version)
		}
		operation := fmt.Sprintf("#operations-%s-%[1]s_%s_get_nodes", names, strings.ReplaceAll(version, ".", ""))
		b.await("the operation is shown", fmt.Sprintf(`document.querySelector("%s") !== null`, operation))
		checkList(names, version)
		b.eval(fmt.Sprintf(`document.querySelector("%s .opblock-summary-control").click()`, operation))
		b.await("it can be tried", fmt.Sprintf(`document.querySelector("%s .execute") !== null && document.querySelector("%[1]s .opblock-loading-animation") === null`, operation))
		b.eval(fmt.Sprintf(`document.querySelector("%s .execute").click()`, operation))
		b.await("an answer is shown", fmt.Sprintf(`document.querySelector("%s .live-responses-table .response-col_status") !== null`, operation))
		answer, _ := b.eval(fmt.Sprintf(`document.querySelector("%s .live-responses-table").innerText`, operation)).(string)
		if !strings.HasPrefix(strings.TrimSpace(strings.SplitN(answer, "Details", 2)[1]), "200") || !strings.Contains(answer, `"nodes": [`) {
			t.Errorf("the answer:\n%.1000s", answer)
		}
		b.eval(fmt.Sprintf(`document.querySelector("%s").scrollIntoView()`, operation))
		b.screenshot("call-" + names)
	}
	submitOffered(t, b, l)
	if pageText, _ := b.eval("document.body.innerText").(string); strings.Contains(pageText, strings.Split(l.OwnToken, ".")[2]) {
		t.Error("the page shows the token")
	}
	if stored := b.eval(`localStorage.length + sessionStorage.length + document.cookie.length`); stored != 0.0 {
		t.Errorf("the page stores %v things", stored)
	}
	for _, url := range b.requests {
		if !strings.HasPrefix(url, l.URL+"/") && !strings.HasPrefix(url, "data:") && url != "about:blank" || strings.Contains(url, l.OwnToken) {
			t.Errorf("the page requested %.100s", url)
		}
	}
	for _, p := range b.problems {
		t.Errorf("console: %s", p)
	}

	// Violate the security policy deliberately. If the browser did not report
	// this, the lack of reports above would prove nothing.
	b.problems = nil
	if executed := b.eval(`(() => { const s = document.createElement("script"); s.textContent = "window.injected = true"; document.body.append(s); return window.injected === true })()`); executed != false {
		t.Error("a script in the page was executed")
	}
	b.await("the next command's result", "true")
	if len(b.problems) == 0 || !strings.Contains(b.problems[0], "Content Security Policy") {
		t.Errorf("the violation was not reported: %q", b.problems)
	}
}

// submitOffered searches for the submission of a job, sends the body that the
// page offers, and waits until the job has completed.
func submitOffered(t *testing.T, b *browser, l *harness.Lab) {
	t.Helper()
	b.eval(`(() => { const e = document.querySelector(".operation-filter-input");
		Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(e, "Batch SUBMIT");
		e.dispatchEvent(new Event("input", {bubbles: true})); })()`)
	const operation = "#operations-sched-sched_v0040_post_job_submit"
	b.await("the search finds one operation", fmt.Sprintf(`document.querySelectorAll(".opblock").length === 1 && document.querySelector("%s") !== null`, operation))
	b.eval(fmt.Sprintf(`document.querySelector("%s .opblock-summary-control").click()`, operation))
	b.await("the body is offered", fmt.Sprintf(`document.querySelector("%s .execute") !== null && document.querySelector("%[1]s textarea.body-param__text") !== null`, operation))
	b.screenshot("submit")
	b.eval(fmt.Sprintf(`document.querySelector("%s .execute").click()`, operation))
	b.await("an answer is shown", fmt.Sprintf(`document.querySelector("%s .live-responses-table .response-col_status") !== null`, operation))
	answer, _ := b.eval(fmt.Sprintf(`document.querySelector("%s .live-responses-table").innerText`, operation)).(string)
	b.eval(fmt.Sprintf(`document.querySelector("%s .live-responses-table").scrollIntoView()`, operation))
	b.screenshot("submitted")
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

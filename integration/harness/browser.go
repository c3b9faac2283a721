package harness

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Browser is a headless Chromium with one page. It is controlled over its
// debugging pipe, with JSON messages that end with a NUL byte.
type Browser struct {
	t        *testing.T
	commands *os.File
	messages *bufio.Reader
	lastID   int
	session  string
	Problems []string                                    // errors in the console, and violations of the page's security policy
	Requests []string                                    // addresses that the page requested
	Changes  []string                                    // requests other than GET, HEAD and OPTIONS: "METHOD ADDRESS BODY"
	Answers  []string                                    // addresses for which the header of an answer has arrived
	Event    func(method string, params json.RawMessage) // called for each event if it is set
}

// StartBrowser starts Chromium, or skips the test.
func StartBrowser(t *testing.T) *Browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed")
	}
	commandsOut, to, err := os.Pipe()
	Must(t, err)
	from, answers, err := os.Pipe()
	Must(t, err)
	dir := t.TempDir()
	cmd := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
		"--no-first-run", "--disable-background-networking", "--user-data-dir="+dir, "--window-size=1280,1400", "--remote-debugging-pipe", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+dir, "NO_PROXY=127.0.0.1", "http_proxy=", "https_proxy=")
	cmd.ExtraFiles = []*os.File{commandsOut, answers}
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	Must(t, cmd.Start())
	commandsOut.Close()
	answers.Close()
	b := &Browser{t: t, commands: to, messages: bufio.NewReaderSize(from, 1<<20)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("chromium:\n%.2000s", errOut.Bytes())
		}
		to.Close() // Chromium exits when its pipe is closed
		cmd.Wait()
		from.Close()
	})
	var target struct{ TargetID string }
	b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Runtime", "Log", "Network", "Page"} {
		b.Call(domain+".enable", nil, nil)
	}
	return b
}

// Call sends a command and waits for its result. It keeps the events that
// arrive before the result.
func (b *Browser) Call(method string, params any, result any) {
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
	Must(b.t, err)
	_, err = b.commands.Write(append(text, 0))
	Must(b.t, err)
	for {
		text, err := b.messages.ReadBytes(0)
		Must(b.t, err)
		var answer struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		Must(b.t, json.Unmarshal(bytes.TrimRight(text, "\x00"), &answer))
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
			Must(b.t, json.Unmarshal(answer.Result, result))
		}
		return
	}
}

func (b *Browser) handleEvent(method string, params json.RawMessage) {
	if b.Event != nil {
		b.Event(method, params)
	}
	var p struct {
		Type     string
		Entry    struct{ Level, Text, URL string }
		Request  struct{ URL, Method, PostData string }
		Response struct{ URL string }
	}
	Must(b.t, json.Unmarshal(params, &p))
	switch {
	case method == "Network.requestWillBeSent":
		b.Requests = append(b.Requests, p.Request.URL)
		if m := p.Request.Method; m != "GET" && m != "HEAD" && m != "OPTIONS" {
			b.Changes = append(b.Changes, m+" "+p.Request.URL+" "+p.Request.PostData)
		}
	case method == "Network.responseReceived":
		b.Answers = append(b.Answers, p.Response.URL)
	case method == "Runtime.exceptionThrown",
		method == "Runtime.consoleAPICalled" && (p.Type == "error" || p.Type == "warning" || p.Type == "assert"),
		method == "Log.entryAdded" && (p.Entry.Level == "error" || p.Entry.Level == "warning"):
		b.Problems = append(b.Problems, fmt.Sprintf("%s: %.400s", method, params))
	}
}

// OpenElsewhere opens an address in another page, with a profile of its own. It
// has its own cookies and connections.
func (b *Browser) OpenElsewhere(url string) {
	b.t.Helper()
	defer func(session string) { b.session = session }(b.session)
	b.session = "" // the page may not do this
	var profile struct{ BrowserContextID string }
	b.Call("Target.createBrowserContext", nil, &profile)
	b.Call("Target.createTarget", map[string]any{"url": url, "browserContextId": profile.BrowserContextID}, nil)
}

// Titles returns the titles of all pages.
func (b *Browser) Titles() (titles []string) {
	b.t.Helper()
	defer func(session string) { b.session = session }(b.session)
	b.session = ""
	var list struct {
		TargetInfos []struct{ Type, Title string }
	}
	b.Call("Target.getTargets", nil, &list)
	for _, target := range list.TargetInfos {
		if target.Type == "page" {
			titles = append(titles, target.Title)
		}
	}
	return titles
}

// Eval returns the value of a JavaScript expression. If the value is a promise,
// Eval waits for its result and returns that.
func (b *Browser) Eval(expression string) any {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	b.Call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %v", expression, answer.ExceptionDetails)
	}
	return answer.Result.Value
}

// Await waits until a JavaScript expression is true.
func (b *Browser) Await(event, expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); b.Eval(expression) != true; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("did not happen: %s\n%s\n%s", event, strings.Join(b.Problems, "\n"), b.Eval("document.body.innerText.slice(0, 2000)"))
		}
	}
}

// Screenshot writes a picture of the page to the directory that the variable
// DOCS_SCREENSHOTS names, if it is set.
func (b *Browser) Screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("DOCS_SCREENSHOTS")
	if dir == "" {
		return
	}
	var picture struct{ Data string }
	b.Call("Page.captureScreenshot", map[string]any{"format": "png"}, &picture)
	data, err := base64.StdEncoding.DecodeString(picture.Data)
	Must(b.t, err)
	Must(b.t, os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644))
}

package harness

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Browser is a page of a headless Chromium, with a profile of its own.
type Browser struct {
	t        *testing.T
	chromium *chromium
	inbox    inbox
	session  string                                      // of the page
	profiles []string                                    // of all pages that this Browser has opened
	Problems []string                                    // errors in the console, and violations of the page's security policy
	Requests []string                                    // addresses that the page requested
	Changes  []string                                    // requests other than GET, HEAD and OPTIONS: "METHOD ADDRESS BODY"
	Answers  []string                                    // addresses for which the header of an answer has arrived
	Event    func(method string, params json.RawMessage) // called for each event if it is set
}

// StartBrowser opens an empty page in Chromium, or skips the test. The page is
// closed when the test ends.
func StartBrowser(t *testing.T) *Browser {
	t.Helper()
	program, err := lookBrowser()
	if err != nil {
		t.Skip("neither chromium-headless-shell nor chromium is installed")
	}
	c, err := findChromium(program)
	Must(t, err)
	b := &Browser{t: t, chromium: c, inbox: inbox{more: make(chan struct{}, 1)}}
	t.Cleanup(func() {
		c.follow(b.session, nil)
		for _, profile := range b.profiles {
			_, _ = c.send(&b.inbox, "", "Target.disposeBrowserContext", map[string]any{"browserContextId": profile})
		}
	})
	target := b.openPage("about:blank")
	var attached struct{ SessionID string }
	b.call("", "Target.attachToTarget", map[string]any{"targetId": target, "flatten": true}, &attached)
	b.session = attached.SessionID
	c.follow(b.session, &b.inbox)
	for _, domain := range []string{"Runtime", "Log", "Network", "Page"} {
		b.Call(domain+".enable", nil, nil)
	}
	// Only one page of a browser can have the focus.
	b.Call("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil)
	return b
}

// openPage opens an address in a page with a profile of its own, and returns
// the page's id.
func (b *Browser) openPage(url string) (target string) {
	b.t.Helper()
	var profile struct{ BrowserContextID string }
	b.call("", "Target.createBrowserContext", nil, &profile)
	b.profiles = append(b.profiles, profile.BrowserContextID)
	var page struct{ TargetID string }
	b.call("", "Target.createTarget", map[string]any{"url": url, "browserContextId": profile.BrowserContextID}, &page)
	return page.TargetID
}

// Call sends a command to the page and waits for its result. It keeps the
// events that arrive before the result.
func (b *Browser) Call(method string, params any, result any) {
	b.t.Helper()
	b.call(b.session, method, params, result)
}

// call does the same for a session, or for the browser if session is "".
func (b *Browser) call(session, method string, params any, result any) {
	b.t.Helper()
	if err := b.try(session, method, params, result); err != nil {
		b.t.Fatal(err)
	}
}

// try does the same, and returns the error with which the browser answers.
func (b *Browser) try(session, method string, params any, result any) error {
	b.t.Helper()
	id, err := b.chromium.send(&b.inbox, session, method, params)
	Must(b.t, err)
	for {
		m, ok := b.inbox.next()
		switch {
		case !ok:
			<-b.chromium.ended
			b.t.Fatalf("%s: chromium has ended:\n%.2000s", method, b.chromium.errOut.Bytes())
		case m.Method != "":
			b.handleEvent(m.Method, m.Params)
			continue
		case m.ID != id:
			continue
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		case result != nil:
			Must(b.t, json.Unmarshal(m.Result, result))
		}
		return nil
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
	b.openPage(url)
}

// Titles returns the titles of all pages that b has opened.
func (b *Browser) Titles() (titles []string) {
	b.t.Helper()
	var list struct {
		TargetInfos []struct{ Type, Title, BrowserContextID string }
	}
	b.call("", "Target.getTargets", nil, &list)
	for _, target := range list.TargetInfos {
		if target.Type == "page" && slices.Contains(b.profiles, target.BrowserContextID) {
			titles = append(titles, target.Title)
		}
	}
	return titles
}

// Eval returns the value of a JavaScript expression. If the value is a promise,
// Eval waits for its result and returns that.
func (b *Browser) Eval(expression string) any {
	b.t.Helper()
	value, err := b.tryEval(expression)
	if err != nil {
		b.t.Fatal(err)
	}
	return value
}

// tryEval does the same. It returns an error if the expression throws, or if the
// page is left meanwhile.
func (b *Browser) tryEval(expression string) (any, error) {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	err := b.try(b.session, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if err == nil && answer.ExceptionDetails != nil {
		err = fmt.Errorf("%s: %v", expression, answer.ExceptionDetails)
	}
	return answer.Result.Value, err
}

// Await waits until a JavaScript expression is true. While a page is loaded, the
// expression may throw.
func (b *Browser) Await(event, expression string) {
	b.t.Helper()
	pause := 20 * time.Millisecond
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(pause) {
		value, err := b.tryEval(expression)
		if value == true {
			return
		}
		if time.Now().After(deadline) {
			shown, _ := b.tryEval("document.body.innerText.slice(0, 2000)")
			b.t.Fatalf("did not happen: %s\n%v\n%s\n%s", event, err, strings.Join(b.Problems, "\n"), shown)
		}
		pause = min(pause*6/5, 200*time.Millisecond) // because checking costs processor time
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

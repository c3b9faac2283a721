package harness

import (
	"fmt"
	"strings"
	"testing"
)

// StatusPage is the page at /status in a browser.
type StatusPage struct {
	*Browser
	t   *testing.T
	url string // of the gateway
}

// OpenStatus opens the gateway's address in a browser, and waits until the page
// asks for a token, or shows the cluster.
func OpenStatus(t *testing.T, url string) *StatusPage {
	t.Helper()
	return OpenStatusIn(StartBrowser(t), t, url)
}

// OpenStatusIn does the same in a browser that is open already.
func OpenStatusIn(b *Browser, t *testing.T, url string) *StatusPage {
	t.Helper()
	p := &StatusPage{b, t, url}
	// Violations of the policy are counted in the page, too. The console reports only some of them.
	p.Call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": `window.violations = [];
		document.addEventListener("securitypolicyviolation", (e) => window.violations.push(e.violatedDirective + " " + e.blockedURI + " " + e.sample));`}, nil)
	p.Call("Page.navigate", map[string]any{"url": url + "/"}, nil)
	p.Await("the page has started", `document.querySelector(".signin textarea, .shell, .signin .empty") !== null`)
	return p
}

// SignIn signs in with a token, as the user of the token.
func (p *StatusPage) SignIn(token string) {
	p.t.Helper()
	p.Eval(fmt.Sprintf(`(() => { const field = document.querySelector(".signin textarea"); field.value = %q; field.form.requestSubmit(); })()`, token))
	p.Await("the user is signed in", `document.querySelector(".shell") !== null`)
}

// Show shows a view, such as "jobs?scope=all".
func (p *StatusPage) Show(view string) {
	p.t.Helper()
	p.Eval(fmt.Sprintf(`location.hash = "#/" + %q`, view))
	p.Await(view+" is shown", `document.querySelector("main h1") !== null && document.querySelector("main .loading") === null`)
}

// AwaitText waits until the page shows a text.
func (p *StatusPage) AwaitText(text string) {
	p.t.Helper()
	p.Await("the page shows "+text, fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// Text returns what the page shows.
func (p *StatusPage) Text() string {
	text, _ := p.Eval(`document.body.innerText`).(string)
	return text
}

// Click clicks the first button or link that has this text, in the dialog if
// one is open.
func (p *StatusPage) Click(text string) {
	p.t.Helper()
	p.Await("there is a button "+text, fmt.Sprintf(`(() => {
		const found = [...(document.querySelector("dialog[open]") ?? document).querySelectorAll("button, a, summary")].find((e) => e.textContent.trim() === %q && !e.disabled);
		found?.click();
		return found !== undefined;
	})()`, text))
}

// Ask clicks a button that opens a dialog.
func (p *StatusPage) Ask(text string) {
	p.t.Helper()
	p.Click(text)
	p.Await("a dialog is open", `document.querySelector("dialog[open]") !== null`)
}

// CloseDialog closes the dialog with its last button.
func (p *StatusPage) CloseDialog() {
	p.t.Helper()
	p.Click("Close")
	p.Await("the dialog is closed", `document.querySelector("dialog") === null`)
}

// Fill enters a value into the field with this label.
func (p *StatusPage) Fill(label, value string) {
	p.t.Helper()
	p.Eval(fmt.Sprintf(`(() => {
		const l = [...document.querySelectorAll("label")].find((e) => e.textContent.trim().startsWith(%q));
		const e = l ? l.querySelector("input, textarea, select") : document.querySelector('textarea[aria-label="' + %[1]q + '"]');
		e.value = %q;
		e.dispatchEvent(new Event(e.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
	})()`, label, value))
}

// Check reports errors that the page has caused, violations of its policy, and
// requests to other places than the gateway or with the token in the address.
func (p *StatusPage) Check(token string) {
	p.t.Helper()
	for _, problem := range p.Problems {
		if !strings.Contains(problem, "Failed to load resource") { // an answer with an error status
			p.t.Errorf("console: %s", problem)
		}
	}
	if violations := p.Eval(`window.violations.join("\n")`); violations != "" {
		p.t.Errorf("violations of the policy: %v", violations)
	}
	for _, url := range p.Requests {
		if !strings.HasPrefix(url, p.url+"/") && url != "about:blank" || token != "" && strings.Contains(url, token) {
			p.t.Errorf("the page requested %.200s", url)
		}
	}
	if stored := p.Eval(`localStorage.length + sessionStorage.length + document.cookie.length`); stored != 0.0 {
		p.t.Errorf("the page stores %v things", stored)
	}
	if token != "" && strings.Contains(p.Text(), token[len(token)-20:]) {
		p.t.Error("the page shows the token")
	}
}

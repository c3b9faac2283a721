package status

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestEndOfSession checks that nothing of an answer that the page is reading when
// the user signs out is kept: neither of a stream of events nor of a list.
func TestEndOfSession(t *testing.T) {
	t.Parallel()
	for _, streams := range []bool{true, false} {
		t.Run(fmt.Sprintf("streams=%t", streams), func(t *testing.T) {
			t.Parallel()
			nodes, jobs, partitions := cluster(4, 40)
			g := startFor(t, newController(t, nodes, jobs, partitions))
			url := startProxy(t, "http://"+g.Address, func(r *http.Request) {
				if !streams && r.Header.Get("Accept") == "text/event-stream" {
					r.Header.Set("Accept", "application/json")
				}
			})
			p := harness.OpenStatus(t, url)
			// Each job of the first answer takes a while, and with the second one the user signs out.
			p.Eval(fmt.Sprintf(`(() => {
				window.handled = 0;
				const slow = (job) => {
					if (++window.handled === 2) {
						document.querySelector(".user button").click();
						window.fetch = () => new Promise(() => {});
					}
					for (const end = performance.now() + 20; performance.now() < end; );
					return job;
				};
				const [parse, json, real] = [JSON.parse, Response.prototype.json, window.fetch];
				JSON.parse = (text) => (/^{"jobs":\[/.test(text) ? slow(parse(text)) : parse(text));
				Response.prototype.json = async function () {
					const answer = await json.call(this);
					if (!/\/jobs\//.test(this.url)) return answer;
					const { jobs } = answer;
					return { ...answer, jobs: { *[Symbol.iterator]() { for (const job of jobs) yield slow(job); } } };
				};
				window.fetch = async (url, init) => {
					const response = await real(url, init);
					if (!%t || !/\/jobs\//.test(url)) return response;
					const events = Array.from({ length: 20 }, (_, i) => "id: " + i + "\nevent: snapshot\ndata: " + JSON.stringify({ jobs: [], more: i < 19 }) + "\n\n").join("");
					return new Response(new Blob([events]).stream(), { headers: { "Content-Type": "text/event-stream" } });
				};
			})()`, streams))
			p.Eval(fmt.Sprintf(`(() => { const field = document.querySelector(".signin textarea"); field.value = %q; field.form.requestSubmit(); })()`, g.Lab.OwnToken))
			p.Await("the user has signed out", `window.handled > 1 && document.querySelector(".signin textarea") !== null`)
			time.Sleep(2 * time.Second) // longer than all of the answer takes
			if streams {
				if n, _ := p.Eval(`window.handled`).(float64); n > 3 {
					t.Errorf("%v events were handled", n)
				}
			}
			// The next user gets no answers, and must not see those of the first one.
			p.Eval(`window.fetch = async (url) => (/\/ping\//.test(url) ? new Response(JSON.stringify({ meta: { client: { user: "next" } } })) : new Promise(() => {}))`)
			p.SignIn("next")
			p.Await("the overview is shown", `document.querySelector(".tile .big") !== null`)
			if shown := p.Eval(`document.querySelector(".tile:last-child .big").textContent`); shown != "– running" {
				t.Errorf("the next user sees %v", shown)
			}
		})
	}
}

// TestSignInTwice checks that a second attempt to sign in, while the first one has
// no answer yet, does not end the session that the other one has begun.
func TestSignInTwice(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	p := harness.OpenStatus(t, l.URL)
	p.Eval(fmt.Sprintf(`(() => {
		const real = window.fetch;
		window.pings = 0;
		window.fetch = async (url, init) => {
			const answer = real(url, init);
			if (/\/ping\//.test(url) && ++window.pings === 1) await new Promise((resolve) => setTimeout(resolve, 1500));
			return answer;
		};
		const field = document.querySelector(".signin textarea");
		const enter = (text) => { field.value = text; field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true })); };
		enter("wrong");
		setTimeout(() => enter(%q), 300);
	})()`, l.OwnToken))
	p.AwaitText("The gateway does not accept this token.")
	if n := p.Eval(`window.pings`); n != 1.0 {
		t.Errorf("the page has tried %v tokens at once", n)
	}
	p.SignIn(l.OwnToken)
	p.Await("changes arrive as a stream", `document.querySelector(".fresh.live") !== null`)
	p.Check(l.OwnToken)
}

// TestDraft checks that the script in the form is still there after the user has
// signed in again, and that another user does not see it.
func TestDraft(t *testing.T) {
	t.Parallel()
	u := harness.OrdinaryUser(t)
	l := harness.NewLab(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	other, err := l.Token(ctx, u.Name, time.Hour)
	harness.Must(t, err)
	p := harness.OpenStatus(t, l.URL)
	p.SignIn(l.OwnToken)
	p.Show("submit")
	p.Fill("Script", "#!/bin/sh\n# mine\n")
	for _, tt := range []struct {
		token string
		kept  bool
	}{{l.OwnToken, true}, {other, false}} {
		p.Click("Sign out")
		p.Await("the page asks for a token", `document.querySelector(".signin textarea") !== null`)
		p.SignIn(tt.token)
		p.Await("the form is shown", `document.querySelector("textarea.source") !== null`)
		if kept := p.Eval(`document.querySelector("textarea.source").value.includes("mine")`); kept != tt.kept {
			t.Errorf("the script is kept: %v, want %v", kept, tt.kept)
		}
	}
	p.Check(l.OwnToken)
}

package status

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// serveOutput starts a gateway that reads the output of an ordinary user's jobs. The
// URL of the lab needs no token.
func serveOutput(t *testing.T) (l *harness.Lab, submit func(script string, fields map[string]any) (id int)) {
	t.Helper()
	u := harness.OrdinaryUser(t)
	l = harness.NewDaemons(t, func(l *harness.Lab) { harness.Must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755)) })
	socket, env := filepath.Join(l.Dir, "run", "rest.sock"), []string{"SCHEDRESTD_OUTPUT=sockets"}
	args := []string{"-f", l.Conf(), "-a", "rest_auth/local", "unix:" + socket}
	if os.Geteuid() == 0 {
		socket, env = filepath.Join(harness.SocketDir(t, l), "s"), append(env, "SCHEDRESTD_SECURITY=become_user")
		args = append(args[:4], "--socket-mode", "0666", "unix:"+socket)
	}
	l.StartGateway(t, env, args...)
	l.URL = forwardAs(t, u, socket)
	return l, func(script string, fields map[string]any) int {
		t.Helper()
		a, err := l.TryRequest(http.DefaultClient, "POST", "/sched/"+harness.Version+"/job/submit", l.JobRequest(script, fields), "X-SCHED-USER-TOKEN:")
		harness.Must(t, err)
		return int(a.Want(t, 200).Get("job_id").(float64))
	}
}

// TestOutputAccess checks the output with the rules of axe-core, in light and dark
// colours, on a narrow screen and on paper.
func TestOutputAccess(t *testing.T) {
	t.Parallel()
	axe := readRules(t)
	l, submit := serveOutput(t)
	id := submit("seq 1 300; head -c 5000 /dev/zero | tr '\\0' x; echo; seq 301 320; echo oops >&2", map[string]any{"standard_output": "out-%j", "standard_error": "err-%j"})
	p := harness.OpenStatus(t, l.URL)
	p.Call("Page.setBypassCSP", map[string]any{"enabled": true}, nil) // axe-core is not a part of the page
	p.Call("Page.reload", nil, nil)
	p.Await("the page has started", `document.querySelector(".shell") !== null`)
	p.Show(fmt.Sprint("job/", id))
	p.Await("the output is shown", `document.querySelector("pre.output")?.textContent.includes("\n320\n") === true`)
	for _, mode := range []struct {
		name, media, scheme string
		width               int
	}{{"light", "screen", "light", 1360}, {"dark", "screen", "dark", 1360}, {"narrow", "screen", "light", 390}, {"printed", "print", "dark", 900}} {
		p.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": mode.width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
		p.Call("Emulation.setEmulatedMedia", map[string]any{"media": mode.media, "features": []any{map[string]any{"name": "prefers-color-scheme", "value": mode.scheme}}}, nil)
		if checkRules(t, p, axe, mode.name); mode.media == "print" {
			if cut := p.Eval(`(() => { const e = document.querySelector("pre.output"); return e.scrollHeight - e.clientHeight; })()`); cut != 0.0 {
				t.Errorf("printed: %v pixels of the output are hidden", cut)
			}
		}
		if width := p.Eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); width != 0.0 {
			t.Errorf("%s: the page is %v pixels too wide", mode.name, width)
		}
		p.Screenshot("output-" + mode.name)
	}
}

// TestOutput checks that the page of a job shows the end of the job's output and
// follows it, as text whatever the job writes, that it keeps a limited number of
// lines, and that the file can be saved.
func TestOutput(t *testing.T) {
	t.Parallel()
	l, submit := serveOutput(t)
	id := submit(`seq 1 1000
printf '<img src=x onerror="window.injected=1">\033[2J\033[31mred\033[0m\n10%%\r20%%\033[K\r\n30%%\rsafe\342\200\256gnp\a\377\n'
echo oops >&2
while [ ! -e go ]; do sleep 0.1; done
seq 10001 15000
printf '50%%\r'; printf '60%%\rthe end\r'`, map[string]any{"standard_output": "out-%j", "standard_error": "err-%j"})

	p := harness.OpenStatus(t, l.URL)
	p.Show(fmt.Sprint("job/", id))
	output := func(what, condition string) {
		t.Helper()
		p.Await(what, `(() => { const text = document.querySelector("pre.output")?.textContent ?? ""; return `+condition+`; })()`)
	}
	output("the end of the output is shown", `text.includes('\n999\n1000\n<img src=x onerror="window.injected=1">⟨001B⟩[2Jred\n20%\nsafe⟨202E⟩gnp⟨0007⟩\ufffd\n')`)
	if shown := p.Eval(`[document.querySelectorAll("main img").length, window.injected, document.querySelector("pre.output").textContent.split("\n").length - 1].join(" ")`); shown != "0  200" {
		t.Errorf("images, injected and lines: %v", shown)
	}
	p.AwaitText("Older lines are not shown")
	if state := p.Eval(`(() => { const e = document.querySelector("pre.output"); return [e.role, e.ariaLive, e.tabIndex, Math.round(e.scrollHeight - e.scrollTop - e.clientHeight) < 2].join(" "); })()`); state != "log off 0 true" {
		t.Errorf("the box is %v", state)
	}
	p.Screenshot("output")
	harness.Must(t, os.WriteFile(filepath.Join(l.Work, "go"), nil, 0o644))
	output("what the job writes is shown, and old lines are not kept", `text.endsWith("\n15000\nthe end") && text.split("\n").length === 2001 && text.startsWith("13001\n")`)
	p.Await("the job has ended", `document.querySelector(".sub .state.done") !== null`)

	p.Eval(`window.saved = ""; URL.createObjectURL = (blob) => { void blob.text().then((text) => { window.saved = text; }); return "#"; }`)
	p.Click("Download the file")
	p.Await("the file is saved", `window.saved.startsWith("1\n2\n") && window.saved.endsWith("\n50%\r60%\rthe end\r")`)
	p.Click("Error output")
	output("the errors are shown", `text === "oops\n"`)

	// Jobs without separate errors, without output, and whose file has gone.
	for _, tt := range []struct{ script, file, want string }{{"true", "empty", "The file is empty."}, {"rm gone", "gone", "The file can't be found:"}, {"true", "/dev/null", "You may not read this file:"}} {
		id := submit(tt.script, map[string]any{"standard_output": tt.file})
		l.Request("GET", fmt.Sprint("/sched/", harness.Version, "/job/", id, "?until=ended&wait=30"), "", "X-SCHED-USER-TOKEN:").Want(t, 200) // so that the file has gone
		p.Show(fmt.Sprint("job/", id))
		p.AwaitText(tt.want)
		if p.Eval(`document.querySelector(".card .segments") === null`) != true {
			t.Errorf("%s: there is a choice of files", tt.file)
		}
	}
	p.Check("")

	// A long line without an end is read again and again.
	id = submit(`head -c 300000 /dev/zero | tr '\0' x; while [ ! -e stop ]; do sleep 0.1; done; printf y`, map[string]any{"standard_output": "long"})
	harness.Eventually(t, "the line is written", func() bool { // what comes while the page follows is not cut
		info, err := os.Stat(filepath.Join(l.Work, "long"))
		return err == nil && info.Size() == 300_000
	})
	p.Show(fmt.Sprint("job/", id))
	output("the end of the line is shown", `text.length === 100000`)
	harness.Must(t, os.WriteFile(filepath.Join(l.Work, "stop"), nil, 0o644))
	output("its new end is shown", `text.endsWith("xy")`)
	if width := p.Eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); width != 0.0 {
		t.Errorf("the page is %v pixels too wide", width)
	}
	for _, url := range p.Requests {
		if strings.Contains(url, "/stdout") && !strings.HasPrefix(url, l.URL+"/sched/") {
			t.Errorf("requested %s", url)
		}
	}
	p.Check("")
}

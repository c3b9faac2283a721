package api

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
	"schedrestd/integration/page"
)

// TestWaitInsteadOfPolling runs the blocks about waiting in the guide for
// clients, except for the one that needs a browser. Each waits for the end of a
// job, which ends only after the program has begun to wait. While the program
// with httpx waits, the gateway is restarted.
func TestWaitInsteadOfPolling(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3"
	harness.FindProgram(t, "curl", "curl")
	if exec.Command(python, "-c", "import requests, httpx").Run() != nil {
		harness.SkipMissing(t, "libraries of Python are not here; apt-get install python3-requests python3-httpx")
	}
	l := harness.NewLab(t)
	dir := t.TempDir()
	harness.Must(t, os.WriteFile(filepath.Join(dir, "token"), []byte("X-SCHED-USER-TOKEN: "+l.OwnToken+"\n"), 0o600))
	blocks, err := page.Blocks(filepath.Join(harness.Root, "docs/CLIENTS.md"))
	harness.Must(t, err)
	found := map[string]bool{}
	for _, b := range blocks {
		if b.Heading != "Wait for the end of a job" && b.Heading != "Wait instead of polling" || b.Language == "js" {
			continue
		}
		name := b.Language
		for _, word := range []string{"until=ended", "submit?wait", "event-stream", "etag", "requests", "httpx"} {
			if strings.Contains(b.Text, word) {
				name = word
			}
		}
		found[name] = true
		t.Run(name, func(t *testing.T) {
			l.T = t
			release := filepath.Join(l.Work, name)
			script := fmt.Sprintf("while [ ! -e %s ]; do sleep 0.1; done", release)
			harness.Must(t, os.WriteFile(filepath.Join(dir, "job.json"), []byte(l.JobRequest(script, nil)), 0o600))
			id := 0
			if name != "etag" && name != "submit?wait" { // these commands submit a job of their own
				id = l.Submit(script, nil)
			}
			text := strings.ReplaceAll(b.Text, "http://127.0.0.1:6820", l.URL)
			program := []string{python, "-u", "-"}
			if b.Language == "sh" {
				program = []string{"bash", "-e"}
				text = fmt.Sprintf("URL=%s/sched/%s\nme=$(id -un)\nid=%d\n%s", l.URL, harness.Version, id, text)
			}
			cmd := exec.Command(program[0], program[1:]...)
			cmd.Dir, cmd.Env, cmd.Stdin = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SCHED_JWT=" + l.OwnToken}, strings.NewReader(text)
			out, err := os.Create(filepath.Join(dir, name+".out"))
			harness.Must(t, err)
			defer out.Close()
			var errOut bytes.Buffer
			cmd.Stdout, cmd.Stderr = out, &errOut
			printed := func() string {
				text, err := os.ReadFile(out.Name())
				harness.Must(t, err)
				return string(text)
			}
			harness.Must(t, cmd.Start())
			switch name {
			case "requests":
				harness.Eventually(t, "the program has printed a line", func() bool { return printed() != "" })
			case "etag":
				harness.Eventually(t, "there is a first answer", func() bool {
					list, _ := os.ReadFile(filepath.Join(dir, "jobs.json"))
					return bytes.Contains(list, []byte(`"RUNNING"`))
				})
			default:
				time.Sleep(2 * time.Second) // they print nothing while they wait
			}
			if name == "httpx" {
				harness.Must(t, l.Daemons["schedrestd"].Stop())
				l.Up(l.Restd)
			}
			harness.Must(t, os.WriteFile(release, nil, 0o644))
			if err := cmd.Wait(); err != nil {
				t.Errorf("CLIENTS.md:%d: %v\n%s%s", b.Line, err, printed(), &errOut)
			}
			t.Logf("%s", printed())
			want := map[string]string{
				"until=ended": fmt.Sprintf("job %d: COMPLETED\n", id), "submit?wait": "\"job_state\":[\"COMPLETED\"\n", "etag": "200\n", "requests": "active: 1\nactive: 0\n",
				"event-stream": "event: snapshot\n", "httpx": "ended: ",
			}[name]
			if !strings.Contains(printed(), want) {
				t.Errorf("no %q in\n%s", want, printed())
			}
		})
	}
	if len(found) != 6 {
		t.Errorf("found the blocks %v", found)
	}
}

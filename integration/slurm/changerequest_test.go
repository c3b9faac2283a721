package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/slurm/variant"
)

// useShortMemory lets the controller forget ended jobs at once, and lets it
// have the nodes that the test makes.
func (c *changeForms) useShortMemory() {
	c.t.Helper()
	file := filepath.Join(c.m.root, "etc/slurm/slurm.conf")
	text, err := os.ReadFile(file)
	must(c.t, err)
	text = regexp.MustCompile(`(?m)^MinJobAge=.*$`).ReplaceAll(text, []byte("MinJobAge=2"))
	must(c.t, os.WriteFile(file, append(text, "MaxNodeCount=400\n"...), 0))
	c.m.signal(c.t, "slurmctld", "TERM")
	eventually(c.t, "slurmctld has exited", func() bool {
		_, err := c.m.try("root", "pgrep", "-x", "slurmctld")
		return err != nil
	})
	c.restart("slurmctld")
}

// restart starts a daemon of Slurm again. It returns when node1 can run jobs.
func (c *changeForms) restart(name string) {
	c.t.Helper()
	c.m.restart(c.t, name)
	eventually(c.t, "node1 has registered", func() bool {
		out, err := c.m.try("root", "scontrol", "-o", "show", "node", "node1")
		return err == nil && strings.Contains(out, "Arch=") && strings.Contains(out, "State=IDLE ")
	})
}

func (c *changeForms) startGateways() {
	c.t.Helper()
	token, err := c.m.createToken("root")
	must(c.t, err)
	c.token = token
	c.rest = c.m.reference(c.report.top)
	c.ours = c.m.gateway(c.report.top, "-u", "nobody", "-g", "nogroup")
	c.clients = [2]*http.Client{c.m.client(referenceSocket), c.m.client(gatewaySocket)}
}

// reset starts the cluster again, after a request has changed what it does not
// name.
func (c *changeForms) reset(why string) {
	c.t.Helper()
	c.t.Logf("the cluster is made again: %s", why)
	c.report.resets++
	for _, d := range []*daemon{c.rest, c.ours} {
		d.stop(c.t)
		d.pid = "" // may be another process's in the next machine
	}
	must(c.t, c.m.up())
	c.m.used, c.m.changed = true, true
	c.useShortMemory()
	c.startGateways()
}

// declaredChanges returns the operations that Slurm's gateway has, such as
// "POST /slurm/v0.0.42/nodes".
func (c *changeForms) declaredChanges(t *testing.T) map[string]bool {
	t.Helper()
	a, err := sendRequest(c.clients[0], "GET", "/openapi/v3", "", "X-SLURM-USER-TOKEN: "+c.token)
	must(t, err)
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	must(t, json.Unmarshal(a.body, &document))
	list := map[string]bool{}
	for path, methods := range document.Paths {
		for method := range methods {
			list[strings.ToUpper(method)+" "+strings.TrimSuffix(path, "/")] = true
		}
	}
	return list
}

// fill replaces the words of a text for one side of a trial.
func (c *changeForms) fill(text string, tr *trial, side int) string {
	text = strings.ReplaceAll(text, "NAME", tr.name(side))
	text = strings.ReplaceAll(text, "OWNNODE", sideNodes[side])
	text = strings.ReplaceAll(text, fmt.Sprint(startTime), fmt.Sprint(startTime+int64(tr.number%1000)*7200))
	return strings.ReplaceAll(text, "OWNJOB", c.numbers[tr.name(side)])
}

// send sends a trial's request through one gateway.
func (c *changeForms) send(tr *trial, side int) {
	tg := tr.target
	base := tg.base
	if tr.situation.base != "" {
		base = tr.situation.base
	}
	path, body := tg.path, ""
	if tg.request != "" {
		path = tg.request
	}
	switch {
	case strings.Contains(path, "VALUE"):
		var name string
		must(c.t, json.Unmarshal([]byte(tr.cases[0].Value), &name))
		path = strings.ReplaceAll(c.fill(path, tr, side), "VALUE", url.PathEscape(c.fill(name, tr, side)))
	case tg.asQuery():
		values, _ := query(tr.cases)
		if tg.query != "" && !tr.combined {
			values = tg.query + "&" + values
		}
		path = c.fill(path+"?"+values, tr, side)
	default:
		var err error
		body, err = variant.Body(base, tg.hintsOf(), tr.cases...)
		must(c.t, err)
		path, body = c.fill(path, tr, side), c.fill(body, tr, side)
	}
	path = c.versioned(path)
	if tr.requests[side] = body; body == "" {
		tr.requests[side] = path
	}
	c.report.requests++
	a, err := sendRequest(c.clients[side], tg.method, path, body, "X-SLURM-USER-TOKEN: "+c.token)
	if c.patient && (err != nil || a.status >= http.StatusInternalServerError) {
		time.Sleep(dying)
	}
	if c.restartEnded() {
		tr.statuses[side], tr.remarks[side] = endsDaemon, "a daemon of Slurm has ended"
		return
	}
	if err != nil {
		tr.statuses[side], tr.remarks[side] = 0, err.Error()
		c.revive(side)
		return
	}
	tr.statuses[side], tr.remarks[side] = a.status, remarks(a.body)
	if tg.answerID != "" {
		var answer map[string]any
		if json.Unmarshal(a.body, &answer) == nil {
			if id := fmt.Sprint(answer[tg.answerID]); id != "0" && id != "<nil>" {
				c.number(tr.name(side), id)
			}
		}
	}
}

// dying is the time that a daemon may take to end after a request that failed.
const dying = 200 * time.Millisecond

// restartEnded starts the daemons of Slurm again that have ended. It reports
// whether there are any.
func (c *changeForms) restartEnded() (ended bool) {
	c.t.Helper()
	for _, name := range []string{"slurmctld", "slurmdbd"} {
		if !c.m.runs(name) {
			ended = true
			c.report.ended++
			c.restart(name)
		}
	}
	return ended
}

// endsDaemon is the status of a request after which a daemon of Slurm has
// ended.
const endsDaemon = -1

// runs reports whether a process with this name runs in the machine.
func (m *machine) runs(name string) bool {
	space, err := os.Readlink("/proc/" + m.first + "/ns/pid")
	if err != nil {
		return false
	}
	is := func(dir string) bool {
		text, _ := os.ReadFile(dir + "/comm")
		state, _ := os.ReadFile(dir + "/stat")
		own, _ := os.Readlink(dir + "/ns/pid")
		return strings.TrimSpace(string(text)) == name && own == space && !strings.Contains(string(state), ") Z ")
	}
	if dir, ok := daemonDirs[name]; ok && is(dir) {
		return true
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	i := slices.IndexFunc(dirs, is)
	if i >= 0 {
		daemonDirs[name] = dirs[i]
	}
	return i >= 0
}

// daemonDirs are the directories under /proc of daemons, by name.
var daemonDirs = map[string]string{}

// number records the number of an object that has one.
func (c *changeForms) number(name, id string) { c.ids[id], c.numbers[name] = name, id }

// revive starts a gateway again that has ended.
func (c *changeForms) revive(side int) {
	c.t.Helper()
	select {
	case <-[2]*daemon{c.rest, c.ours}[side].ended:
	case <-time.After(2 * time.Second):
		return // alive, the connection was lost
	}
	if side == 1 {
		c.t.Errorf("our gateway has exited")
		c.ours.pid = ""
		c.ours = c.m.gateway(c.report.top, "-u", "nobody", "-g", "nogroup")
		return
	}
	c.report.crashes++
	c.rest.pid = ""
	c.rest = c.m.reference(c.report.top)
}

func (c *changeForms) versioned(path string) string {
	return regexp.MustCompile(`^/(slurm|slurmdb)/`).ReplaceAllString(path, "/${1}/"+c.version.String()+"/")
}

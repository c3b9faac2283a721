package chaos

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"

	"schedrestd/integration/harness"
)

// chaosChange holds the parts of an audit log line that are checked.
type chaosChange struct {
	Event, Change string
	Gateway       struct{ Ended string }
	Worker        struct{ Request, User, Route, Code, Result string }
}

// checkNoConns fails the test unless the gateway's count of connections returns
// to 0. If the gateway does not free a slot after a worker is killed, the count
// stays above 0.
func (c *chaos) checkNoConns() {
	c.t.Helper()
	d := c.Daemons["schedrestd"]
	harness.Eventually(c.t, "the gateway counts no connection", func() bool {
		harness.Must(c.t, syscall.Kill(d.PID(), syscall.SIGUSR1))
		for _, line := range d.LastLines(20) {
			if strings.Contains(line, "msg=counters") && strings.Contains(line, "connections.held=0 ") {
				return true
			}
		}
		return false
	})
}

// checkAuditLog checks the audit log after the gateway has exited. The log must
// have two lines for each change, one before and one after the change. It must
// name the user of each job whose submission was answered. It must contain the
// result of each change, unless the worker was killed before it could report
// the result.
func (c *chaos) checkAuditLog() {
	c.t.Helper()
	f, err := os.Open(c.Log("audit"))
	harness.Must(c.t, err)
	defer f.Close()
	intents, outcomes, submitted := map[string]bool{}, map[string]bool{}, map[string]chaosChange{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var a chaosChange
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			c.t.Fatalf("the audit log: %v: %s", err, lines.Text())
		}
		switch {
		case a.Event == "intent" && !intents[a.Change]:
			intents[a.Change] = true
		case a.Event == "outcome" && intents[a.Change] && !outcomes[a.Change]:
			outcomes[a.Change] = true
			submitted[a.Worker.Request] = a
			c.counts.add("changes on record, " + a.Gateway.Ended)
		default:
			c.t.Fatalf("the audit log has a line that is repeated or out of order: %s", lines.Text())
		}
	}
	harness.Must(c.t, lines.Err())
	if len(intents) != len(outcomes) {
		c.t.Errorf("the audit log has %d changes and %d outcomes", len(intents), len(outcomes))
	}
	for id, job := range c.jobs.byID {
		a := submitted[job.request]
		reported := a.Gateway.Ended == "reported"
		if a.Worker.User != job.user || a.Worker.Route != "job/submit" || reported && (a.Worker.Code != "ok" || a.Worker.Result != fmt.Sprint(id)) {
			c.t.Errorf("job %d of %s, request %s, has in the audit log: %+v", id, job.user, job.request, a)
		}
	}
}

package slurm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

var timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)

const auditLog = "/root/audit.log"

// startAudited starts our gateway with an audit log.
func (m *machine) startAudited(t *testing.T) *daemon {
	t.Helper()
	os.Remove(filepath.Join(m.root, auditLog))
	return m.start(t, "gateway", gatewaySocket, []string{"SLURM_JWT=daemon", "SCHEDRESTD_AUDIT_LOG=" + auditLog},
		"/opt/gateway/schedrestd", "-v", "-f", m.conf(), "-u", "nobody", "-g", "nogroup", "unix:"+gatewaySocket)
}

// audit stops the gateway, and compares its audit log with
// testdata/audit/NAME-RELEASE.txt. The file has one line for each change that
// was requested from our gateway. The line contains the user, method, route,
// object, fields and outcome. If the gateway did not send the change to a
// daemon, the line contains only the status and "not sent".
func (s *sides) audit(t *testing.T, gateway *daemon, name string) {
	t.Helper()
	gateway.stop(t)
	text, err := os.ReadFile(filepath.Join(s.m.root, auditLog))
	must(t, err)
	type line struct {
		Event   string
		Gateway struct{ Ended string }
		Worker  struct {
			Request, User, Method, Route, Object, Fields, Code, Result string
			Status                                                     int
			Number                                                     int `json:"error_number"`
		}
	}
	intents, outcomes := map[string]int{}, map[string]line{}
	for text := range bytes.Lines(text) {
		var l line
		must(t, json.Unmarshal(text, &l))
		if l.Event == "intent" {
			intents[l.Worker.Request]++
			continue
		}
		if _, duplicate := outcomes[l.Worker.Request]; duplicate || l.Gateway.Ended != "reported" {
			t.Errorf("a second outcome, or one that the worker has not reported: %s", text)
		}
		outcomes[l.Worker.Request] = l
	}
	// The numbers of jobs differ between runs.
	words := append([]string{"NAME", "of1"}, slices.Concat(s.words, s.sideWords[1])...)
	stable := func(text string) string {
		for i := 0; i < len(words); i += 2 {
			whole := regexp.MustCompile(`(^|[^0-9])` + regexp.QuoteMeta(words[i+1]) + `($|[^0-9])`)
			text = whole.ReplaceAllString(text, "${1}"+words[i]+"${2}")
		}
		return timestamp.ReplaceAllString(text, "TIME")
	}
	var got strings.Builder
	for _, change := range s.changesMade {
		fmt.Fprintf(&got, "%s:", strings.ReplaceAll(change.name[strings.Index(change.name, "/")+1:], "_", " "))
		o, ok := outcomes[change.request]
		delete(outcomes, change.request)
		if !ok {
			fmt.Fprintf(&got, " %d, not sent\n", change.status)
			continue
		}
		w := o.Worker
		if w.Status != change.status || intents[change.request] != 1 {
			t.Errorf("%s: the log has status %d and %d intents, the client has %d", change.name, w.Status, intents[change.request], change.status)
		}
		fmt.Fprintf(&got, " %s %s %s object=%s fields=%s → %d %s", w.User, w.Method, w.Route, cmp.Or(stable(w.Object), "-"), cmp.Or(w.Fields, "-"), w.Status, w.Code)
		if w.Number != 0 {
			fmt.Fprintf(&got, " %d", w.Number)
		}
		if w.Result != "" {
			fmt.Fprintf(&got, " result=%s", strings.Join(strings.Fields(stable(w.Result)), " "))
		}
		got.WriteString("\n")
	}
	file := filepath.Join("testdata", "audit", name+"-"+s.m.release+".txt")
	if *update {
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if diff := gocmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("%s (-update accepts it): -want +got\n%s", file, diff)
	}
}

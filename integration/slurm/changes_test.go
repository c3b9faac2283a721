package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A change is made through both gateways. In path, body and show, NAME stands
// for a word that differs between the gateways, so that each gateway changes
// objects of its own.
type change struct {
	name, method, path, body string
	token                    string // token of the request; "": root's
	status                   int    // status of our gateway; 0: any
	show                     string // command whose output is compared after the change
	waitFor                  string // pattern that the output must match before the test continues
	saveAs                   string // word that later changes use for the job number in the answer to this change
	statusReason             string // why only one of the gateways refuses the change; "": they agree
	effectReason             string // why the outputs differ; "": they are the same
}

// A sides value makes changes through both gateways, first through Slurm's and
// then through ours.
type sides struct {
	m           *machine
	token       string
	words       []string     // words and their replacements, for strings.NewReplacer
	sideWords   [2][]string  // replacements for one of the gateways only
	names       [2][]string  // for each gateway: the names of its own records, each followed by a replacement for comparisons
	changesMade []madeChange // changes made through our gateway
}

// madeChange is a change that was made through our gateway.
type madeChange struct {
	name, request string // id of the request
	status        int
}

func (m *machine) newSides(token string) *sides { return &sides{m: m, token: token} }

// addWords adds pairs of a word and its replacement.
func (s *sides) addWords(words ...string) { s.words = append(s.words, words...) }

// apply makes a change through both gateways, and compares the statuses and the
// effects. The statuses may differ, because our gateway distinguishes more
// kinds of refusals. But if one gateway refuses the change, the other must
// refuse it, too.
func (s *sides) apply(t *testing.T, ch change) {
	t.Helper()
	var statuses [2]int
	var bodies, outputs [2]string
	for i, socket := range []string{referenceSocket, gatewaySocket} {
		if i == 0 && s.m.release == "22.05" {
			continue // the gateway in Slurm 22.05 has no such API version
		}
		side := fmt.Sprint("of", i)
		fill := func(text string) string {
			return strings.NewReplacer(slices.Concat([]string{"NAME", side}, s.words, s.sideWords[i])...).Replace(text)
		}
		token := s.token
		if ch.token != "" {
			token = ch.token
		}
		a, err := sendRequest(s.m.client(socket), ch.method, fill(ch.path), fill(ch.body), "X-SLURM-USER-TOKEN: "+token)
		must(t, err)
		statuses[i], bodies[i] = a.status, remarks(a.body)
		if i == 1 {
			s.changesMade = append(s.changesMade, madeChange{t.Name(), a.header.Get("X-Request-Id"), a.status})
		}
		if ch.saveAs != "" {
			s.sideWords[i] = append(s.sideWords[i], ch.saveAs, numberIn(t, a.body))
		}
		if ch.show == "" {
			continue
		}
		pattern := regexp.MustCompile(ch.waitFor)
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			out, err := s.m.try("root", strings.Fields(fill(ch.show))...)
			if outputs[i] = strings.ReplaceAll(out, side, ""); err == nil && pattern.MatchString(out) {
				break
			}
			if ch.waitFor == "" || time.Now().After(deadline) {
				t.Fatalf("%s: %s shows %s, %v; want %q", side, fill(ch.show), out, err, ch.waitFor)
			}
		}
	}
	if ch.status != 0 && statuses[1] != ch.status {
		t.Errorf("ours answers %d, want %d: %s", statuses[1], ch.status, bodies[1])
	}
	if s.m.release == "22.05" {
		return
	}
	refused := func(status int) bool { return status >= http.StatusBadRequest }
	if differ := refused(statuses[0]) != refused(statuses[1]); differ != (ch.statusReason != "") {
		t.Errorf("statuses %d and %d, expected to differ: %q\ntheirs: %s\nours: %s", statuses[0], statuses[1], ch.statusReason, bodies[0], bodies[1])
	}
	if differ := outputs[0] != outputs[1]; differ != (ch.effectReason != "") {
		t.Errorf("effects, expected to differ: %q\ntheirs:\n%s\nours:\n%s", ch.effectReason, linesNotIn(outputs[0], outputs[1]), linesNotIn(outputs[1], outputs[0]))
	}
}

// compareGETs sends every GET to both gateways after the changes, and compares
// the answers.
func (s *sides) compareGETs(t *testing.T) {
	t.Helper()
	s.m.run(t, "root", strings.Fields("scontrol create reservation ReservationName=upgrade StartTime=now+3days Duration=60 Nodes=n02 Users=alice")...)
	jobs = map[string]string{"array": "4000000"}
	for i, words := range s.sideWords {
		for j := 0; j < len(words); j += 2 {
			if _, err := strconv.Atoi(words[j+1]); err == nil {
				jobs[fmt.Sprint(words[j], i)] = words[j+1]
			}
		}
	}
	s.m.compareGETs(t, readExceptions(t), func(version, request string) map[string]string {
		if strings.Contains(request, "?") {
			return nil
		}
		return s.m.readers(version, request)
	})
}

// numberIn returns the number of the job in an answer.
func numberIn(t *testing.T, body []byte) string {
	t.Helper()
	var s response
	if err := json.Unmarshal(body, &s); err != nil || s.JobID == "" || s.JobID == "0" {
		t.Fatalf("no job in %.500s, %v", body, err)
	}
	return s.JobID.String()
}

// remarks returns the errors and warnings of an answer.
func remarks(body []byte) string {
	var answer struct {
		Errors, Warnings []struct{ Description, Source string }
	}
	if len(body) == 0 {
		return "no body"
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("errors %q, warnings %q", answer.Errors, answer.Warnings)
}

// linesNotIn returns the lines of text that are not in exclude.
func linesNotIn(text, exclude string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return slices.Contains(strings.Split(exclude, "\n"), line) }), "\n")
}

// TestChanges makes the same changes through both gateways, which use the same
// controller. After each change it compares what scontrol shows.
func TestChanges(t *testing.T) {
	m := freshCluster(t)
	if m.release != "26.05" {
		notForThisRun(t, "only slurmrestd 26.05 serves v0.0.45")
	}
	m.reference(t)
	gateway := m.startAudited(t)
	token, err := m.createToken("root")
	must(t, err)
	node, _, _ := strings.Cut(m.run(t, "root", "sinfo", "-h", "-N", "-o", "%N"), "\n")
	start := time.Now().Add(time.Hour).Unix()
	sides := m.newSides(token)
	sides.addWords("NODE", node, "START", fmt.Sprint(start))
	for _, tt := range []change{
		{name: "make a reservation", method: "POST", path: "reservation", body: `{"name": "rNAME", "start_time": START, "duration": 60, "users": ["alice"], "node_list": ["NODE"], "flags": ["IGNORE_JOBS", "OVERLAP"], "comment": "c"}`, show: "scontrol -a -o show reservation rNAME"},
		{name: "change it", method: "POST", path: "reservation", body: `{"name": "rNAME", "duration": 90, "accounts": ["lab"]}`, show: "scontrol -a -o show reservation rNAME"},
		{name: "change it without the privilege", method: "POST", path: "reservation", body: `{"name": "rNAME", "duration": 91}`, token: m.token, show: "scontrol -a -o show reservation rNAME"},
		{name: "several, of which one is refused", method: "POST", path: "reservations", body: `{"reservations": [{"name": "rNAME", "duration": 95}, {"name": "xNAME"}]}`, show: "scontrol -a -o show reservation rNAME"},
		{name: "none", method: "POST", path: "reservations", body: `{"reservations": []}`},
		{name: "delete it", method: "DELETE", path: "reservation/rNAME"},
		{name: "delete it again", method: "DELETE", path: "reservation/rNAME"},
		{name: "make a partition", method: "POST", path: "partitions", body: `{"partitions": [{"name": "pNAME", "nodes": {"configured": "NODE"}, "maximums": {"time": 30}, "partition": {"state": ["UP"], "oversubscribe": "YES:2", "exclusive": "USER"}}]}`, show: "scontrol -a -o show partition pNAME"},
		{name: "change it", method: "POST", path: "partitions", body: `{"partitions": [{"name": "pNAME", "partition": {"state": ["DRAIN"]}, "priority": {"tier": 5}, "flags": ["HIDDEN"], "defaults": {"partition_memory_per_cpu": 100}}]}`, show: "scontrol -a -o show partition pNAME"},
		{name: "exclusive for a user", method: "POST", path: "partitions", body: `{"partitions": [{"name": "pNAME", "partition": {"exclusive": "USER"}}]}`, show: "scontrol -a -o show partition pNAME"},
		{name: "then for a part of the topology", method: "POST", path: "partitions", body: `{"partitions": [{"name": "pNAME", "partition": {"exclusive": "TOPO"}}]}`, show: "scontrol -a -o show partition pNAME"},
		{name: "then for a user again", method: "POST", path: "partitions", body: `{"partitions": [{"name": "pNAME", "partition": {"exclusive": "USER"}, "flags": ["HIDDEN_CLEAR", "LLN"]}]}`, show: "scontrol -a -o show partition pNAME"},
		{name: "then for a job", method: "POST", path: "partitions", body: `{"partitions": [{"name": "pNAME", "partition": {"exclusive": "NODE", "oversubscribe": "YES:3"}}]}`, show: "scontrol -a -o show partition pNAME"},
		{name: "then not", method: "POST", path: "partitions", body: `{"partitions": [{"name": "pNAME", "partition": {"exclusive": "NO"}}]}`, show: "scontrol -a -o show partition pNAME"},
		{name: "a flag and its opposite", method: "POST", path: "partitions", body: `{"partitions": [{"name": "pNAME", "flags": ["LLN", "LLN_CLEAR"]}]}`, statusReason: "ours refuses a contradiction"},
		{name: "a default beyond the limit", method: "POST", path: "partitions", body: `{"partitions": [{"name": "pNAME", "defaults": {"time": 40}}]}`, show: "scontrol -a -o show partition pNAME", statusReason: "theirs answers 200, and slurmctld ignores the value"},
		{name: "values that mean nothing", method: "POST", path: "partitions", body: `{"partitions": [{"name": "pNAME", "preempt_mode": [], "flags": [], "priority": {"tier": 6}}]}`, show: "scontrol -a -o show partition pNAME"},
		{name: "no partitions", method: "POST", path: "partitions", body: `{"partitions": []}`},
		{name: "of an unknown node", method: "POST", path: "partitions", body: `{"partitions": [{"name": "qNAME", "nodes": {"configured": "nosuchnode"}}]}`},
		{name: "delete it without the privilege", method: "DELETE", path: "partition/pNAME", token: m.token, show: "scontrol -a -o show partition pNAME"},
		{name: "delete it", method: "DELETE", path: "partition/pNAME"},
		{name: "delete it again", method: "DELETE", path: "partition/pNAME"},
		{name: "resources of no job", method: "GET", path: "resources/4000000"},
	} {
		tt.path = "/slurm/v0.0.45/" + tt.path
		t.Run(tt.name, func(t *testing.T) { sides.apply(t, tt) })
	}
	t.Run("every GET", func(t *testing.T) { sides.compareGETs(t) })
	defer func() { sides.audit(t, gateway, "changes") }()
	for _, tt := range []struct{ path, body string }{
		{"hostnames", `{"hostlist": "n[1-3,5],x7"}`}, {"hostnames", `{"hostlist": ""}`}, {"hostnames", `{"hostlist": "n[3-1]"}`},
		{"hostlist", `{"hostnames": ["n9", "n10", "n010", "n11", "x"]}`}, {"hostlist", `{"hostnames": []}`}, {"hostlist", `{}`},
	} {
		var got [2]string
		for i, socket := range []string{referenceSocket, gatewaySocket} {
			a, err := sendRequest(m.client(socket), "POST", "/util/v0.0.45/"+tt.path, tt.body, "X-SLURM-USER-TOKEN: "+token)
			must(t, err)
			if got[i] = fmt.Sprint(a.status); a.status == http.StatusOK {
				text := strings.Join(strings.Fields(string(a.body)), "")
				got[i], _, _ = strings.Cut(text, `,"meta"`)
				got[i], _, _ = strings.Cut(got[i], `,"errors"`)
			}
		}
		if got[0] != got[1] {
			t.Errorf("%s %s: theirs %s, ours %s", tt.path, tt.body, got[0], got[1])
		}
	}
}

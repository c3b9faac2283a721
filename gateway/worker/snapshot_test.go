package worker

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api"
	"schedrestd/auth"
	"schedrestd/handlers"
	"schedrestd/handlers/rest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// A snapshot stands in for the daemons of a development snapshot of Slurm 26.11.
// It sends the answers that were captured from these at protocol 46, and accepts
// the protocols that they accept.
type snapshot struct {
	answers map[string]map[message.Type][]byte // by daemon and type of the request
	mu      sync.Mutex
	got     []model.JobDesc // the submitted jobs
	sizes   []uint16        // their segment sizes, as sent
	refused []codec.Version // versions of refused messages
	changes []string        // of nodes and jobs
}

// oldestAccepted is the oldest protocol that 26.11 accepts, that of 25.05.
const oldestAccepted = codec.V2505

const snapshotFiles = "../../rpc/message/testdata/snapshot/"

func newSnapshot(t *testing.T) *snapshot {
	t.Helper()
	s := &snapshot{answers: map[string]map[message.Type][]byte{"slurmctld": {}, "slurmdbd": {}}}
	var captures []struct {
		Daemon  string
		Request message.Type `json:"request_type"`
		Frame   string       `json:"response_frame"`
	}
	readSnapshot(t, "p46", &captures)
	for _, c := range captures {
		frame, err := hex.DecodeString(c.Frame)
		must(t, err)
		if of := s.answers[c.Daemon]; of[c.Request] == nil { // the later ones are refusals of other users
			of[c.Request] = frame
		}
	}
	return s
}

func readSnapshot(t *testing.T, name string, into any) {
	t.Helper()
	f, err := os.Open(snapshotFiles + name + ".json.gz")
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	d := json.NewDecoder(z)
	d.UseNumber()
	must(t, d.Decode(into))
}

// listen serves connections with the function act until the test ends. The name
// is that of the daemon's host.
func listen(t *testing.T, name string, act func(net.Conn)) client.Address {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var wait sync.WaitGroup
	ended := make(chan struct{})
	wait.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			wait.Go(func() { <-ended; nc.Close() }) // a client keeps sessions
			wait.Go(func() { defer nc.Close(); act(nc) })
		}
	})
	t.Cleanup(func() { ln.Close(); close(ended); wait.Wait() })
	return client.Address{Name: name, Network: "tcp", Address: ln.Addr().String()}
}

func (s *snapshot) accepts(v codec.Version) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v < oldestAccepted || v > codec.V2611 {
		s.refused = append(s.refused, v)
		return false
	}
	return true
}

// controller answers one request.
func (s *snapshot) controller(nc net.Conn) {
	b, err := wire.Read(nc, 1<<20)
	if err != nil || len(b) < 2 {
		return
	}
	if !s.accepts(codec.Version(b[0])) {
		io.WriteString(nc, "HTTP/1.1 405 Method Not Allowed\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n")
		return
	}
	frame, err := message.ParseFrame(b)
	if err != nil {
		return
	}
	var job message.SubmitRequest
	if frame.Header.Type == message.RequestSubmitBatchJob && frame.Decode(&job) == nil {
		s.mu.Lock()
		s.got = append(s.got, job.Desc)
		s.sizes = append(s.sizes, binary.BigEndian.Uint16(frame.Body[len(frame.Body)-2:]))
		s.mu.Unlock()
	}
	if change, kill := describeChange(frame); change != "" {
		s.mu.Lock()
		s.changes = append(s.changes, change)
		s.mu.Unlock()
		frame.Header.Type = message.RequestPing // whose answer is also that of a change
		if kill {
			answer, _ := message.Encode(frame.Header.Version, 0, message.ResponseKillJobs, nil, &message.KillJobsResponse{})
			nc.Write(answer)
			return
		}
	}
	nc.Write(s.answers["slurmctld"][frame.Header.Type])
}

// describeChange returns "" for a request that changes no node and no job, and
// reports whether it is answered with the results of signals.
func describeChange(frame message.Frame) (change string, kill bool) {
	var node message.NodeUpdate
	var job message.SubmitRequest
	var one message.KillJob
	var several message.KillJobs
	switch frame.Header.Type {
	case message.RequestUpdateNode:
		if frame.Decode(&node) == nil {
			return "node " + node.Names + " " + string(node.Reason), false
		}
	case message.RequestUpdateJob:
		if frame.Decode(&job) == nil {
			return "job " + job.Desc.JobIDText + " " + string(job.Desc.Comment), false
		}
	case message.RequestKillJob:
		if frame.Decode(&one) == nil {
			return fmt.Sprint("kill ", one.JobText, " ", one.Signal), false
		}
	case message.RequestKillJobs:
		if frame.Decode(&several) == nil {
			return fmt.Sprint("kill ", strings.Join(several.Jobs, " "), " ", several.Signal), true
		}
	}
	return "", false
}

// accounting answers the requests of a session.
func (s *snapshot) accounting(nc net.Conn) {
	for first := true; ; first = false {
		b, err := wire.Read(nc, 1<<20)
		if err != nil || len(b) < 2 {
			return
		}
		if first && !s.accepts(codec.Version(b[2])) {
			refusal, _ := message.EncodePersistent(oldestAccepted, message.AccountingRC, &message.PersistRC{Code: fault.ProtocolVersion})
			nc.Write(refusal)
			return
		}
		nc.Write(s.answers["slurmdbd"][message.Type(binary.BigEndian.Uint16(b))])
	}
}

type names map[uint32]string

func (n names) User(uid uint32) string  { return n[uid] }
func (n names) Group(gid uint32) string { return n[gid] }

// gateway returns the handlers of a worker before the daemons of s, with both
// spellings.
func (s *snapshot) gateway(t *testing.T) http.Handler {
	t.Helper()
	daemons := client.Config{
		Controllers: []client.Address{listen(t, "vm", s.controller)}, Accounting: []client.Address{listen(t, "127.0.0.1", s.accounting)},
		Cluster: "tlslab", Timeout: time.Minute,
	}
	return handlers.New(handlers.Config{
		Controller: client.New(daemons), Accounting: client.NewAccounting(daemons),
		Config: rest.Config{
			Auth: auth.Options{JWT: true}, Names: api.NamesBoth, Cluster: "tlslab", Release: "1.2.3", ErrorText: fault.Text,
			Users: names{0: "root", 64030: "slurm", 20001: "alice"}, MaxBody: 1 << 20, ReadBody: time.Minute,
		},
	})
}

// ask sends a request, and returns the status and the body of the answer.
func ask(t *testing.T, h http.Handler, method, path, body string) (status int, answer map[string]any, text string) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body == "" {
		r.Body = http.NoBody
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("X-SLURM-USER-TOKEN", tokenOf("root"))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	d := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	d.UseNumber()
	if err := d.Decode(&answer); err != nil {
		t.Fatalf("%s: status %d: %v in %s", path, w.Code, err, w.Body)
	}
	return w.Code, answer, w.Body.String()
}

// snapshotDifferences lists the fields of answers that differ from those of the
// snapshot's slurmrestd, each with the reason.
var snapshotDifferences = []struct {
	path   string // of the request
	fields string // regular expression
	reason string
}{
	{"/slurm/v0.0.46/(conf|jobs/|job/|node|partition|reservation|licenses)", `^\.(slurm_conf_meta\.LastUpdate|last_update\.number)$`, laterThanFrame},
	{"/slurm/v0.0.46/diag", `^\.statistics\.(req_time\.number|rpcs_by_(message_type|user)\[\]\.(count|total_time|average_time\.number))$`, laterThanFrame},
	{"/ping", `^\.pings\[\]\.latency$`, "it is the duration of the ping"},
	{"/slurm/v0.0.46/job", `^\.jobs\[\]\.(stdin|stderr)_expanded$`, "theirs omits the path that a job without one uses"},
	{"/slurm/v0.0.46/shares", `^\.shares\.shares\[\]\.fairshare\.level\.(set|infinite|number)$`, "theirs shows an infinite level as a finite number, with a warning"},
	{"/slurm/v0.0.46/(shares|licenses)|/slurmdb/v0.0.46/(wckeys|instances|jobs)", `^\.warnings$`, "ours has no warning for an empty list"},
	{"/slurmdb/v0.0.46/instances", `^\.instances$`, "theirs omits an empty list"},
	{"/slurmdb/v0.0.46/diag", `^\.statistics\.(RPCs|users)\[\]\.(count|time\.(average|total))$`, laterThanFrame},
	{"/slurmdb/v0.0.46/diag", `^\.pings$`, "only ours shows whether the daemon answers"},
	{"/slurmdb/v0.0.46/users", `^\.users\[\]\.(associations|default\.account)$`, framed},
	{"/slurmdb/v0.0.46/accounts", `^\.accounts\[\]\.associations$`, framed},
}

const (
	laterThanFrame = "the answer is from a later moment than the frame"
	framed         = "the frame answers a request for the associations, too"
)

// TestSnapshotAnswers compares the gateway's answers in v0.0.46, before the
// daemons of the snapshot, with those of the snapshot's slurmrestd.
func TestSnapshotAnswers(t *testing.T) {
	h := newSnapshot(t).gateway(t)
	var answers map[string][2]any
	readSnapshot(t, "rest", &answers)
	if len(answers) < 28 {
		t.Fatalf("%d answers", len(answers))
	}
	needed := make([]bool, len(snapshotDifferences))
	for path, captured := range answers {
		t.Run(path, func(t *testing.T) {
			status, got, text := ask(t, h, http.MethodGet, path, "")
			if fmt.Sprint(status) != fmt.Sprint(captured[0]) {
				t.Fatalf("status %d, want %v: %s", status, captured[0], text)
			}
			want := captured[1].(map[string]any)
			delete(want, "meta") // differs each time
			delete(got, "meta")
			for i, d := range snapshotDifferences {
				if regexp.MustCompile(d.path).MatchString(path) {
					needed[i] = equalize(regexp.MustCompile(d.fields), "", want, got) || needed[i]
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("theirs (-), ours (+):\n%s", diff)
			}
		})
	}
	for i, d := range snapshotDifferences {
		if !needed[i] {
			t.Errorf("%s: %s is no longer needed", d.path, d.fields)
		}
	}
}

// TestOlderVersionsOn2611 checks that clients of v0.0.40 to v0.0.45 work before
// daemons of 26.11, although its slurmrestd no longer serves v0.0.42 and older
// versions, and its daemons no longer accept the protocols of these.
func TestOlderVersionsOn2611(t *testing.T) {
	for _, v := range api.Versions {
		for _, segments := range [][2]string{{"slurm", "slurmdb"}, {"sched", "scheddb"}} {
			t.Run(segments[0]+" "+v.String(), func(t *testing.T) {
				s := newSnapshot(t)
				h := s.gateway(t)
				get := func(segment, path, list string, want ...any) {
					t.Helper()
					status, answer, text := ask(t, h, http.MethodGet, "/"+segment+"/"+v.String()+"/"+path, "")
					names := namesOf(answer[list])
					if status != http.StatusOK || !cmp.Equal(names, want) || len(answer["errors"].([]any)) > 0 {
						t.Errorf("%s: status %d, %s %v, want %v: %.300s", path, status, list, names, want, text)
					}
				}
				controller, accounting := segments[0], segments[1]
				get(controller, "ping/", "pings", "vm")
				get(controller, "nodes/", "nodes", "n1", "n2", "n3", "n4")
				get(controller, "node/n1", "nodes", "n1")
				get(controller, "partitions/", "partitions", "debug")
				get(controller, "partition/debug", "partitions", "debug")
				get(controller, "jobs/", "jobs", "a")
				get(controller, "job/1", "jobs", "a")
				get(controller, "reservations/", "reservations", "maint")
				get(controller, "licenses/", "licenses")
				get(accounting, "clusters/", "clusters", "tlslab")
				get(accounting, "accounts/", "accounts", "lab", "root")
				get(accounting, "users/", "users", "alice", "root")
				get(accounting, "qos/", "qos", "normal")
				get(accounting, "jobs/", "jobs")

				body := `{"script": "#!/bin/sh\n", "job": {"name": "a", "environment": ["A=b"], "current_working_directory": "/"}}`
				if v == api.V40 {
					body = strings.Replace(body, `["A=b"]`, `{"A": "b"}`, 1)
				}
				status, answer, text := ask(t, h, http.MethodPost, "/"+controller+"/"+v.String()+"/job/submit", body)
				if status != http.StatusOK || fmt.Sprint(answer["job_id"]) == "0" {
					t.Errorf("submit: status %d: %s", status, text)
				}
				if len(s.got) != 1 || s.got[0].Name != "a" || s.sizes[0] != 0xfffe {
					t.Errorf("submitted %+v with segment sizes %#x", s.got, s.sizes)
				}
				for _, change := range [][3]string{
					{http.MethodPost, "node/n1", `{"state": ["DRAIN"], "reason": "fan"}`}, {http.MethodPost, "job/1", `{"comment": "late"}`}, {http.MethodDelete, "job/1", ""},
				} {
					status, _, text = ask(t, h, change[0], "/"+controller+"/"+v.String()+"/"+change[1], change[2])
					if status != http.StatusOK {
						t.Errorf("%s %s: status %d: %s", change[0], change[1], status, text)
					}
				}
				if want := []string{"node n1 fan", "job 1 late", "kill 1 9"}; !cmp.Equal(s.changes, want) {
					t.Errorf("the controller got %q, want %q", s.changes, want)
				}
				if len(s.refused) > 0 {
					t.Errorf("messages in protocols %v, which the daemons refuse", s.refused)
				}
			})
		}
	}
}

// namesOf returns the names of records.
func namesOf(list any) (names []any) {
	records, _ := list.([]any)
	for _, r := range records {
		record := r.(map[string]any)
		name := record["name"]
		if name == nil {
			name = record["hostname"]
		}
		names = append(names, name)
	}
	return names
}

// equalize copies the fields whose paths match the regular expression from got
// to want, also if one of the two lacks them. It reports whether any of these
// fields differed.
func equalize(fields *regexp.Regexp, path string, want, got any) (differed bool) {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for k := range w {
			switch value, both := g[k]; {
			case !fields.MatchString(path + "." + k):
				differed = equalize(fields, path+"."+k, w[k], value) || differed
			case !both:
				delete(w, k)
				differed = true
			default:
				differed = !cmp.Equal(w[k], value) || differed
				w[k] = value
			}
		}
		for k := range g {
			if _, both := w[k]; !both && fields.MatchString(path+"."+k) {
				w[k], differed = g[k], true
			}
		}
	case []any:
		g, _ := got.([]any)
		for i := range min(len(w), len(g)) {
			differed = equalize(fields, path+"[]", w[i], g[i]) || differed
		}
	}
	return differed
}

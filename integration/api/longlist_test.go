package api

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// fakeController is a controller that accepts every token and answers pings. It
// has an answer for each type of request, or the same answer for all others. If closeAfterAnswer is set, it
// closes each connection after the answer. Otherwise it keeps connections open
// until the gateway closes them.
type fakeController struct {
	port      int
	openConns atomic.Int32 // connections on which a request has arrived and that are still open
	requests  atomic.Int32

	mu               sync.Mutex
	answer           []byte
	answers          map[message.Type][]byte // by type of request; has precedence
	closeAfterAnswer bool                    // close the connection after the answer
}

func newFakeController(t *testing.T) *fakeController {
	t.Helper()
	s := &fakeController{}
	s.port = harness.PlayDaemon(t, func(nc net.Conn, f message.Frame) {
		if f.Header.Type == message.RequestPing {
			pong, _ := message.Encode(f.Header.Version, 0, message.ResponseRC, nil, &message.RC{})
			nc.Write(pong)
			return
		}
		s.requests.Add(1)
		s.openConns.Add(1)
		defer s.openConns.Add(-1)
		s.mu.Lock()
		answer, closeAfterAnswer := s.answer, s.closeAfterAnswer
		if a, ok := s.answers[f.Header.Type]; ok {
			answer = a
		}
		s.mu.Unlock()
		nc.Write(answer)
		if !closeAfterAnswer {
			io.Copy(io.Discard, nc)
		}
	})
	return s
}

// setAnswer sets the answer from now on.
func (s *fakeController) setAnswer(answer []byte, closeAfterAnswer bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.closeAfterAnswer = answer, closeAfterAnswer
}

// jobList returns an answer with n jobs, about 800 bytes each.
func jobList(t *testing.T, n int) []byte {
	list := &message.JobInfo{LastUpdate: 7}
	for i := range n {
		list.Jobs.List = append(list.Jobs.List, model.Job{StepID: model.StepID{JobID: uint32(i + 1)}, Name: "long",
			Comment: strings.Repeat("x", 200), Detailed: true})
	}
	b, err := message.Encode(codec.Newest, 0, message.ResponseJobInfo, nil, list)
	harness.Must(t, err)
	return b
}

// withWrongCount returns a copy of answer, which contains n jobs. The copy
// announces n+1 jobs.
func withWrongCount(t *testing.T, answer []byte, n int) []byte {
	f, err := message.ParseFrame(answer[4:])
	harness.Must(t, err)
	b := append([]byte(nil), answer...)
	binary.BigEndian.PutUint32(b[len(b)-len(f.Body):], uint32(n+1))
	return b
}

// startGatewayFor starts a gateway for the controller s, with the environment
// variables env.
func startGatewayFor(l *harness.Lab, t *testing.T, s *fakeController, env ...string) *harness.CountedGateway {
	savedPort, savedEnv := l.Controller, l.Restd.Env
	defer func() { l.Controller, l.Restd.Env = savedPort, savedEnv }()
	l.Controller, l.Restd.Env = s.port, append(append([]string{}, savedEnv...), env...)
	return l.StartCounted(t)
}

// TestLongLists checks that a list arrives complete if it is sent in many
// pieces, and that the client can detect a list that breaks off. Both must hold
// whether the gateway reads the whole list before it sends anything, or sends
// the list while reading it.
func TestLongLists(t *testing.T) {
	const jobs = 3000
	whole := jobList(t, jobs)
	for name, env := range map[string]string{"there is room": "SCHEDRESTD_ANSWER_MEMORY=64M", "longer than the room": "SCHEDRESTD_ANSWER_MEMORY=100K"} {
		t.Run(name, func(t *testing.T) {
			s := newFakeController(t)
			k := startGatewayFor(harness.NewDaemons(t), t, s, env)
			s.setAnswer(whole, false)
			if got := len(k.Request(k.Client(), "GET", "/sched/v0.0.43/jobs", "").Want(t, http.StatusOK).List("jobs")); got != jobs {
				t.Errorf("%d jobs of %d", got, jobs)
			}
			s.setAnswer(withWrongCount(t, whole, jobs), false)
			for _, coding := range []string{"", "gzip"} {
				checkBroken(k, t, "the count is wrong", coding)
			}
			s.setAnswer(whole[:len(whole)-100], true)
			if strings.HasPrefix(name, "longer") {
				checkBroken(k, t, "it breaks off", "")
				return
			}
			k.Request(k.Client(), "GET", "/sched/v0.0.43/jobs", "").Want(t, http.StatusBadGateway)
		})
	}
}

// checkBroken requests the jobs. It fails the test unless the answer is an error,
// or begins and then breaks off.
func checkBroken(k *harness.CountedGateway, t *testing.T, name, coding string) {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+k.Address+"/sched/v0.0.43/jobs", nil)
	harness.Must(t, err)
	req.Header.Set("X-SCHED-USER-TOKEN", k.Lab.OwnToken)
	if coding != "" {
		req.Header.Set("Accept-Encoding", coding)
	}
	resp, err := (&http.Transport{DisableCompression: true}).RoundTrip(req)
	harness.Must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusBadGateway && err == nil {
		return
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != coding || len(text) == 0 || err == nil || json.Valid(text) {
		t.Errorf("%s, coding %q: status %d, %d bytes, %v", name, coding, resp.StatusCode, len(text), err)
	}
}

// TestStalledClients starts a hundred clients that request a long list and do
// not read it. These clients must hold no connection to the controller, and
// other clients must be served meanwhile.
func TestStalledClients(t *testing.T) {
	l, s := harness.NewDaemons(t), newFakeController(t)
	s.setAnswer(jobList(t, 1000), false) // a hundred of these lists fit into the half of the answer memory that one user may use
	k := startGatewayFor(l, t, s)
	for i := range 100 { // their requests differ, because equal ones would share an answer
		nc, err := net.Dial("tcp", k.Address)
		harness.Must(t, err)
		t.Cleanup(func() { nc.Close() })
		harness.Must(t, nc.(*net.TCPConn).SetReadBuffer(4096))
		_, err = fmt.Fprintf(nc, "GET /sched/v0.0.43/jobs?update_time=%d HTTP/1.1\r\nHost: x\r\nX-SCHED-USER-TOKEN: %s\r\n\r\n", i, l.OwnToken)
		harness.Must(t, err)
	}
	harness.Eventually(t, "all requests have arrived", func() bool { return s.requests.Load() == 100 })
	harness.Eventually(t, "no connection to the controller is open", func() bool { return s.openConns.Load() == 0 })
	k.Request(k.Client(), "GET", "/sched/v0.0.43/ping", "").Want(t, http.StatusOK)
}

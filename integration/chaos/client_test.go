package chaos

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"schedrestd/integration/harness"
)

// chaosKind is a way to send requests, and the number of connections that use
// it.
type chaosKind struct {
	name           string
	connections    int
	tls, keepAlive bool
	streams        int // HTTP/2 with that many concurrent streams; 0: HTTP/1.1
}

// chaosKinds are 64 connections together.
var chaosKinds = []chaosKind{
	{name: "HTTP/1.1", connections: 24, keepAlive: true},
	{name: "HTTP/1.1, a connection each", connections: 12},
	{name: "HTTP/1.1 over TLS", connections: 14, tls: true, keepAlive: true},
	{name: "HTTP/1.1 over TLS, a connection each", connections: 6, tls: true},
	{name: "HTTP/2", connections: 8, tls: true, keepAlive: true, streams: 3},
}

// chaosPause is the mean pause between two requests of a client. The pauses
// leave processor time for the other processes.
const chaosPause = 150 * time.Millisecond

// chaosClient is a client that sends one request at a time.
type chaosClient struct {
	*chaos
	kind string
	chaosKind
	number  int
	user    chaosUser
	turn    int         // selects the next of its jobs
	ownJobs []*chaosJob // its jobs that it has not cancelled
	conn    net.Conn    // nil: the next request opens a connection
	in      *bufio.Reader
	h2      *http.Client // used instead of conn and shared with other clients
}

// chaosReply is a complete answer.
type chaosReply struct {
	status int
	header http.Header
	text   []byte
	local  string // local address of the connection
	body   chaosBody
}

// chaosBody holds the parts of an answer's body that are checked.
type chaosBody struct {
	Meta struct {
		Client struct{ Source, User string }
	}
	Errors []any
	JobID  int `json:"job_id"`
	Jobs   []shownJob
	Nodes  []struct{ Name string }
	Pings  []struct {
		Hostname   string
		Responding bool
	}
}

// clients returns all clients. Users are assigned in turn, so that each kind
// has clients of all users.
func (c *chaos) clients() (all []*chaosClient) {
	for _, kind := range chaosKinds {
		for range kind.connections {
			var h2 *http.Client
			if kind.streams > 0 {
				protocols := new(http.Protocols)
				protocols.SetHTTP2(true)
				h2 = &http.Client{Transport: &http.Transport{Protocols: protocols, TLSClientConfig: c.tlsConfig()}}
			}
			for range max(1, kind.streams) {
				all = append(all, &chaosClient{chaos: c, chaosKind: kind, kind: kind.name, user: c.users[len(all)%len(c.users)], h2: h2})
			}
		}
	}
	return all
}

func (c *chaos) tlsConfig() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true} // the test made the certificate itself
}

// run sends requests until the load ends.
func (c *chaosClient) run(number int) {
	c.number = number
	defer c.closeConn()
	for {
		select {
		case <-c.done:
			return
		case <-time.After(time.Duration(rand.Int64N(int64(2 * chaosPause)))):
		}
		c.act()
	}
}

// act makes one random request of a client.
func (c *chaosClient) act() {
	select {
	case <-c.listTicks: // it is time for this client to list the jobs
		c.list()
		return
	default:
	}
	switch n := rand.IntN(100); {
	case n < 4 && c.user.canSubmit:
		c.submit()
	case n < 10 && len(c.ownJobs) > 0:
		c.cancel()
	case n < 65:
		c.getOwnJob()
	case n < 70 && !c.user.seesAll:
		c.getForeignJob()
	case n < 90:
		c.ping()
	default:
		c.node()
	}
}

// submit submits a held job and reads it back.
func (c *chaosClient) submit() bool {
	for !c.ended() {
		c.turn++
		job := c.jobs.add(fmt.Sprintf("chaos-%d-%d", c.number, c.turn), c.user.name)
		reply := c.send("POST", harness.SubmitPath, c.JobRequest("true", map[string]any{"name": job.name, "hold": true}))
		if reply == nil || reply.status != http.StatusOK {
			c.counts.add("submit: outcome unknown")
			c.jobs.setLost(job)
			continue // the next attempt uses a new name
		}
		if err := c.jobs.setAnswered(job, reply.body.JobID, c.restarts.get(), reply.header.Get("X-Request-Id")); err != nil {
			c.fail("%v: %s", err, reply.text)
			return true
		}
		c.counts.add("submit")
		c.ownJobs = append(c.ownJobs, job)
		return c.checkJob(job)
	}
	return false
}

// cancel cancels the client's oldest job. If the job has not yet survived a
// restart of the controller, cancel does nothing half of the time.
func (c *chaosClient) cancel() {
	job := c.ownJobs[0]
	survived := job.restarts < c.restarts.get()
	if !survived && rand.IntN(2) == 0 || !c.checkJob(job) {
		return
	}
	if survived {
		c.counts.add("survived")
	}
	c.ownJobs = c.ownJobs[1:]
	c.jobs.mu.Lock()
	job.cancelling = true
	c.jobs.mu.Unlock()
	var before []int // other accepted statuses: after a lost answer, the job may already be cancelled
	for !c.ended() {
		reply := c.send("DELETE", fmt.Sprintf("/sched/%s/job/%d", harness.Version, job.id), "", before...)
		if reply != nil && (reply.status == http.StatusOK || slices.Contains(before, reply.status)) {
			c.jobs.mu.Lock()
			job.cancelled = true
			c.jobs.mu.Unlock()
			c.counts.add("cancel")
			c.checkJob(job)
			return
		}
		before = []int{http.StatusConflict}
	}
}

// getOwnJob requests a job that the client's user may see.
func (c *chaosClient) getOwnJob() bool {
	job := c.jobs.pick(c.user.maySee)
	return job == nil || c.checkJob(job)
}

// getForeignJob requests a job of another user. The controller must not show
// that job.
func (c *chaosClient) getForeignJob() {
	job := c.jobs.pick(func(user string) bool { return user != c.user.name })
	if job == nil {
		return
	}
	reply := c.send("GET", fmt.Sprintf("/sched/%s/job/%d", harness.Version, job.id), "", http.StatusNotFound)
	if reply != nil && reply.status == http.StatusOK {
		c.fail("%s sees a job of %s: %s", c.user.name, job.user, reply.text)
	}
	if reply != nil && reply.status == http.StatusNotFound {
		c.counts.add("pry")
	}
}

func (c *chaosClient) checkJob(job *chaosJob) bool {
	c.jobs.mu.Lock()
	wasCancelled := job.cancelled
	c.jobs.mu.Unlock()
	reply := c.retry("GET", fmt.Sprintf("/sched/%s/job/%d", harness.Version, job.id))
	if reply == nil {
		return false
	}
	if len(reply.body.Jobs) != 1 || reply.body.Jobs[0].ID != job.id || reply.body.Jobs[0].Name != job.name {
		c.fail("asked for job %d, %s, and got %s", job.id, job.name, reply.text)
		return true
	}
	if err := c.jobs.check(reply.body.Jobs[0], wasCancelled); err != nil {
		c.fail("%v", err)
	}
	c.counts.add("look")
	return true
}

// list requests all jobs.
func (c *chaosClient) list() {
	expected := c.jobs.expected(c.user.maySee)
	reply := c.retry("GET", "/sched/"+harness.Version+"/jobs/")
	if reply == nil {
		return
	}
	if err := c.jobs.checkList(reply.body.Jobs, expected, c.user.maySee); err != nil {
		c.fail("the list of jobs: %v", err)
	}
	c.counts.add("list")
	for _, id := range c.jobs.takeLost(reply.body.Jobs, c.user.name) {
		c.send("DELETE", fmt.Sprintf("/sched/%s/job/%d", harness.Version, id), "", http.StatusNotFound, http.StatusConflict)
	}
}

func (c *chaosClient) ping() bool {
	reply := c.retry("GET", harness.PingPath)
	if reply == nil {
		return false
	}
	if p := reply.body.Pings; len(p) != 1 || p[0].Hostname != c.Node || !p[0].Responding {
		c.fail("ping: %s", reply.text)
	}
	c.counts.add("ping")
	return true
}

func (c *chaosClient) node() {
	reply := c.retry("GET", "/sched/"+harness.Version+"/node/"+c.Node)
	if reply == nil {
		return
	}
	if n := reply.body.Nodes; len(n) != 1 || n[0].Name != c.Node {
		c.fail("node: %s", reply.text)
	}
	c.counts.add("node")
}

// ended reports whether the load has ended.
func (c *chaosClient) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// retry repeats a request until the answer has the status 200. It returns nil
// if the load ends before that.
func (c *chaosClient) retry(method, path string) *chaosReply {
	for !c.ended() {
		if reply := c.send(method, path, ""); reply != nil && reply.status == http.StatusOK {
			return reply
		}
	}
	return nil
}

// send sends one request, and checks everything in the answer that does not
// depend on the request. It returns nil if there was no answer or if the answer
// is wrong. Any status except 200 and those in accepted is a refusal. After a
// refusal, send waits as long as the answer asks, but at most a second, because
// the test needs constant load.
func (c *chaosClient) send(method, path, body string, accepted ...int) *chaosReply {
	c.counts.add("requests")
	start := time.Now()
	exchange := c.exchange
	if c.h2 != nil {
		exchange = c.exchange2
	}
	reply, err := exchange(method, path, body)
	c.counts.addDuration(time.Since(start))
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		c.fail("%s %s hangs: no answer, and no end of the connection, in %s", method, path, time.Since(start))
		return nil
	case isClosed(err):
		c.counts.add("closed")
		return nil
	default:
		c.fail("%s %s: %v", method, path, err)
		return nil
	}
	c.counts.add("answered")
	c.counts.add("answered, " + c.kind)
	if err := c.check(reply, accepted); err != nil {
		c.fail("%s %s: %v: status %d: %.2000s", method, path, err, reply.status, reply.text)
		return nil
	}
	if !slices.Contains(append(accepted, http.StatusOK), reply.status) {
		c.counts.add("refused")
		c.counts.add(fmt.Sprintf("refused, %d", reply.status))
		wait, _ := strconv.Atoi(reply.header.Get("Retry-After"))
		time.Sleep(max(50*time.Millisecond, min(time.Duration(wait)*time.Second, time.Second)))
	}
	return reply
}

// check reads an answer and returns an error if something in it is wrong.
func (c *chaosClient) check(r *chaosReply, accepted []int) error {
	if t := r.header.Get("Content-Type"); t != "application/json" {
		return fmt.Errorf("Content-Type %q", t)
	}
	if err := json.Unmarshal(r.text, &r.body); err != nil {
		return err
	}
	if id := r.header.Get("X-Request-Id"); id != "" && !c.counts.isNew(id) {
		return fmt.Errorf("request %s was answered before", id)
	}
	outage := []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	if !slices.Contains(append(accepted, http.StatusOK), r.status) {
		if !slices.Contains(outage, r.status) || len(r.body.Errors) == 0 {
			return errors.New("nothing that an outage explains")
		}
		return nil
	}
	if (r.status == http.StatusOK) != (len(r.body.Errors) == 0) {
		return errors.New("status and errors do not agree")
	}
	if from := r.body.Meta.Client; from.Source != r.local || from.User != c.user.name {
		return fmt.Errorf("the answer is for %s of %s, and came to %s of %s", from.User, from.Source, c.user.name, r.local)
	}
	return nil
}

func (c *chaosClient) fail(format string, args ...any) {
	if c.counts.shouldReport() {
		c.t.Errorf("%s, by %s: %s", c.user.name, c.kind, fmt.Sprintf(format, args...))
	}
	time.Sleep(time.Second)
}

func (c *chaosClient) closeConn() {
	if c.conn != nil {
		c.conn.Close()
	}
	if c.conn = nil; c.h2 != nil {
		c.h2.CloseIdleConnections()
	}
}

// exchange sends one HTTP/1.1 request. It does not use http.Client, which would
// repeat failed requests, and would hide bytes that it reads between two
// answers.
func (c *chaosClient) exchange(method, path, body string) (*chaosReply, error) {
	reply, err := c.exchange1(method, path, body)
	if err != nil || !c.keepAlive {
		c.closeConn()
	}
	return reply, err
}

func (c *chaosClient) exchange1(method, path, body string) (*chaosReply, error) {
	if c.conn == nil {
		if err := c.dial(); err != nil {
			return nil, err
		}
	}
	c.conn.SetDeadline(time.Now().Add(chaosTimeout))
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: lab\r\nX-SCHED-USER-TOKEN: %s\r\n", method, path, c.user.token)
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	if !c.keepAlive {
		b.WriteString("Connection: close\r\n")
	}
	if _, err := io.WriteString(c.conn, b.String()+"\r\n"+body); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		return nil, err
	}
	if resp.ContentLength < 0 && !slices.Contains(resp.TransferEncoding, "chunked") {
		return nil, errors.New("nothing says where the answer ends")
	}
	reply := &chaosReply{status: resp.StatusCode, header: resp.Header, local: c.conn.LocalAddr().String()}
	if reply.text, err = io.ReadAll(resp.Body); err != nil {
		return nil, err
	}
	if n := c.in.Buffered(); n > 0 {
		rest, _ := c.in.Peek(n)
		return nil, fmt.Errorf("more data than the answer: %.200q", rest)
	}
	if !c.keepAlive {
		if rest, err := io.ReadAll(c.in); len(rest) > 0 || err != nil && !isClosed(err) {
			return nil, fmt.Errorf("after the last answer: %.200q, %w", rest, err)
		}
	}
	if resp.Close {
		c.closeConn()
	}
	return reply, nil
}

func (c *chaosClient) dial() error {
	address := strings.TrimPrefix(c.URL, "http://")
	if c.tls {
		address = c.Addr
	}
	conn, err := net.DialTimeout("tcp", address, chaosTimeout)
	if err != nil {
		return err
	}
	c.conn = conn
	if c.tls {
		conn.SetDeadline(time.Now().Add(chaosTimeout))
		secured := tls.Client(conn, c.tlsConfig())
		if err := secured.Handshake(); err != nil {
			return err
		}
		c.conn = secured
	}
	c.in = bufio.NewReader(c.conn)
	return nil
}

// exchange2 sends one request of HTTP/2.
func (c *chaosClient) exchange2(method, path, body string) (*chaosReply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), chaosTimeout)
	defer cancel()
	reply := &chaosReply{}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reply.local = i.Conn.LocalAddr().String() }})
	req, err := http.NewRequestWithContext(ctx, method, "https://"+c.Addr+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-SCHED-USER-TOKEN", c.user.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.h2.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 {
		return nil, fmt.Errorf("%s", resp.Proto)
	}
	reply.status, reply.header = resp.StatusCode, resp.Header
	reply.text, err = io.ReadAll(resp.Body)
	return reply, err
}

// isClosed reports whether err means that the other side ended the connection
// or the stream.
func isClosed(err error) bool {
	for _, target := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, target) {
			return true
		}
	}
	text := err.Error()
	for _, target := range []string{"http2: client connection lost", "http2: server sent GOAWAY", "http2: client conn", "INTERNAL_ERROR", "CANCEL", "REFUSED_STREAM", "remote error: tls: internal error"} {
		if strings.Contains(text, target) {
			return true
		}
	}
	return false
}

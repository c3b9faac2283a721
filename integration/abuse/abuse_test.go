package abuse

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"schedrestd/integration/harness"
	"schedrestd/tools/lint/section"
)

// An abuse is a request that is malformed, unusual or ambiguous. A valid
// request, called the marker, follows it in the same write. Either the gateway
// closes the connection after its answer to the abuse, or it also answers the
// marker.
type abuse struct {
	name string
	text string
	want string // expected answers, in order, without a proxy; after them the connection is closed
	open bool   // the request is incomplete: no marker follows, and the client stops sending
}

// The most frequent outcomes.
const (
	served              = "own 404, mark 404" // the gateway answered a request for an unknown node, and then the marker
	submitted           = "own 422, mark 404" // a submission that lacks nearly every field
	servedThenClosed    = "own 404"           // like served, but the connection was closed
	submittedThenClosed = "own 422"           // like submitted, but the connection was closed
)

// nonce is a placeholder in the text of an abuse. Each time the text is sent,
// the placeholder is replaced by a different number of the same length.
const nonce = "#####"

// requestBuilder determines how a client authenticates its requests.
type requestBuilder struct {
	auth        string // header lines that identify a request as the user's
	gatewayAuth string // header lines that authenticate the user at the gateway itself; a proxy rejects a client that sends them
}

func (s requestBuilder) get(headers, body string) string {
	return s.request("GET", "own", headers, body)
}

func (s requestBuilder) request(method, node, headers, body string) string {
	return s.line(method+" "+nodePath(node)+" HTTP/1.1", "Host: lab\r\n"+headers, body)
}

// line returns a request that is authenticated as the user's. It has the given
// request line, headers and body.
func (s requestBuilder) line(line, headers, body string) string {
	return line + "\r\n" + s.auth + headers + "\r\n" + body
}

// post returns a job submission. The gateway's answer names the unknown fields
// in the body.
func (s requestBuilder) post(headers, body string) string {
	return s.line("POST /sched/"+harness.Version+"/job/submit HTTP/1.1", "Host: lab\r\n"+headers, body)
}

func nodePath(node string) string { return "/sched/" + harness.Version + "/node/" + node + "-" + nonce }

// hidden returns a request that is put into the body of an abuse. A program
// that misreads where the abuse ends takes the hidden request for a separate
// request. The hidden request carries credentials that the gateway accepts and
// a proxy refuses, so the gateway would serve it.
func (s requestBuilder) hidden() string {
	return requestBuilder{auth: s.gatewayAuth}.request("GET", "evil", "", "")
}

func (s requestBuilder) marker() string { return s.request("GET", "mark", "Connection: close\r\n", "") }

// jobBody is the body of a submission.
const jobBody = `{"own-` + nonce + `":1}`

func contentLength(body string) string { return fmt.Sprintf("Content-Length: %d\r\n", len(body)) }

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// lastChunk is the end of a chunked body.
const lastChunk = "0\r\n\r\n"

// reply is an answer that was parsed by rules that permit only one
// interpretation.
type reply struct {
	status int
	id     string // the gateway's id for the request; "" if a proxy answered
	text   string
	raw    string
}

var (
	statusLine = regexp.MustCompile(`^HTTP/1\.[01] ([1-5][0-9][0-9]) [ -~]*$`)
	fieldLine  = regexp.MustCompile("^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)$")
	errNoReply = errors.New("no more answers")
)

// readReply reads one answer. It is as strict as possible, because the
// gateway must not send an ambiguous answer to a malformed request. The answer to a
// HEAD has no body; head is set if the request was a HEAD.
func readReply(in *bufio.Reader, head bool) (r reply, err error) {
	line := func() string {
		var text string
		if err == nil {
			text, err = in.ReadString('\n')
		}
		r.raw += text
		if err == nil && !strings.HasSuffix(text, "\r\n") {
			err = fmt.Errorf("a line ends without CR: %q", text)
		}
		return strings.TrimSuffix(text, "\r\n")
	}
	first := line()
	if r.raw == "" && err != nil {
		return r, errors.Join(errNoReply, err)
	}
	m := statusLine.FindStringSubmatch(first)
	if m == nil {
		return r, fmt.Errorf("status line %q (%v)", first, err)
	}
	r.status, _ = strconv.Atoi(m[1])
	fields := map[string]string{}
	for text := line(); text != "" && err == nil; text = line() {
		f := fieldLine.FindStringSubmatch(text)
		if f == nil {
			return r, fmt.Errorf("header %q", text)
		}
		name := strings.ToLower(f[1])
		if _, duplicate := fields[name]; duplicate && name != "set-cookie" && name != "vary" {
			return r, fmt.Errorf("%s twice", name)
		}
		fields[name] = f[2]
	}
	if err != nil {
		return r, err
	}
	r.id = fields["x-request-id"]
	length, isSized := fields["content-length"]
	coding, isChunked := fields["transfer-encoding"]
	switch {
	case isSized && isChunked:
		return r, errors.New("a length and chunks")
	case head || r.status == 204 || r.status == 304 || r.status < 200:
	case isChunked && coding != "chunked":
		return r, fmt.Errorf("Transfer-Encoding %q", coding)
	case isChunked:
		for {
			n, parseErr := strconv.ParseUint(line(), 16, 24)
			if err != nil || parseErr != nil {
				return r, errors.Join(err, parseErr)
			}
			body := make([]byte, n)
			if _, err = io.ReadFull(in, body); err != nil {
				return r, err
			}
			r.text += string(body)
			if end := line(); end != "" || err != nil {
				return r, fmt.Errorf("a chunk is followed by %q (%v)", end, err)
			}
			if n == 0 {
				return r, nil
			}
		}
	case isSized:
		n, parseErr := strconv.ParseUint(length, 10, 24)
		if parseErr != nil {
			return r, parseErr
		}
		body := make([]byte, n)
		if _, err = io.ReadFull(in, body); err != nil {
			return r, fmt.Errorf("a body of %d bytes: %w", n, err)
		}
		r.text = string(body)
	default: // the body ends with the connection
		body, err := io.ReadAll(in)
		if r.text = string(body); err != nil {
			return r, err
		}
	}
	return r, nil
}

// An attempt holds an abuse and the answers to it. The abuse was sent to the
// gateway directly or through a proxy.
type attempt struct {
	abuse
	number  string // replaces the nonce
	replies []reply
	err     error // error while reading the answers, or nil if the connection ended as it should
}

// sendAbuse sends an abuse and its marker. It reads until the connection ends,
// or until nothing has been received for the given time.
func sendAbuse(a abuse, number int, marker string, dial func() (net.Conn, error), timeout time.Duration) *attempt {
	e := &attempt{abuse: a, number: fmt.Sprintf("%05d", number)}
	text := a.text
	if !a.open {
		text += marker
	}
	c, err := dial()
	if e.err = err; err != nil {
		return e
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(timeout))
	go func() {
		_, _ = io.WriteString(c, strings.ReplaceAll(text, nonce, e.number)) // the other side may have closed the connection already
		if half, ok := c.(interface{ CloseWrite() error }); ok && a.open {
			_ = half.CloseWrite()
		}
	}()
	for in := bufio.NewReader(c); ; {
		r, err := readReply(in, len(e.replies) == 0 && strings.HasPrefix(a.text, "HEAD "))
		if errors.Is(err, errNoReply) {
			if !errors.Is(err, io.EOF) && (len(e.replies) == 0 || !errors.Is(err, syscall.ECONNRESET)) {
				e.err = err // if the gateway did not read all that the client sent, a reset is a normal end
			}
			return e
		}
		if r.status != 100 {
			e.replies = append(e.replies, r)
		}
		if err != nil {
			e.err = fmt.Errorf("%w in %q", err, r.raw)
			return e
		}
	}
}

var requestLine = regexp.MustCompile(`worker=\d+ .*msg=request .*\bid=([A-Z2-7]+) .*\bpath=("[^"]*"|\S*) `)

// loggedPaths returns the path of each request in the gateway's log, keyed by
// request id. A request that was refused before its path was known has no line
// in the log. loggedPaths waits until every other request has a line, because
// the gateway logs a request only after it has sent the answer.
func loggedPaths(g *harness.Gateway, list []*attempt) map[string]string {
	g.T.Helper()
	paths := map[string]string{}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		for _, m := range requestLine.FindAllStringSubmatch(g.Logged(), -1) {
			paths[m[1]] = m[2]
		}
		if !slices.ContainsFunc(list, func(e *attempt) bool { return e.lacksLogLine(paths) }) || time.Now().After(end) {
			return paths
		}
	}
}

// lacksLogLine reports whether the log still has no line for one of the
// answers.
func (e *attempt) lacksLogLine(paths map[string]string) bool {
	return slices.ContainsFunc(e.replies, func(r reply) bool { return r.id != "" && (r.status < 400 || r.status == 404) && paths[r.id] == "" })
}

var requestTag = regexp.MustCompile(`(own|mark|evil)-([0-9]{5})`)

// outcome returns the outcome of the attempt, in the notation of abuse.want.
// The outcome depends on the answers, and on the paths that the gateway logged
// for the answered requests.
func (e *attempt) outcome(t *testing.T, paths map[string]string) string {
	t.Helper()
	var list []string
	for _, r := range e.replies {
		text := fmt.Sprint(r.status)
		if m := requestTag.FindStringSubmatch(paths[r.id] + " " + r.text); m != nil {
			text = m[1] + " " + text
			if m[2] != e.number {
				t.Errorf("an answer to the request %s of another client: %s", m[0], r.raw)
			}
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// sendAbuses sends all requests of a table, up to eight at the same time. The
// function dial opens their connections.
func sendAbuses(table []abuse, first int, marker string, dial func() (net.Conn, error), timeout time.Duration) []*attempt {
	list := make([]*attempt, len(table))
	slots := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for i, a := range table {
		slots <- struct{}{}
		wg.Go(func() {
			list[i] = sendAbuse(a, first+i, marker, dial, timeout)
			<-slots
		})
	}
	wg.Wait()
	return list
}

// clientTimeout is longer than every time limit that the gateway has for
// clients.
const clientTimeout = 2 * time.Minute

// isRefusal reports whether the status means that the gateway refused the
// request.
func isRefusal(status int) bool {
	return status >= 400 && status < 500 || status == 501 || status == 505
}

// checkOutcomes fails the test unless each attempt has the outcome that the
// table expects. The client must receive the expected answers in order, each to
// one of its own requests, and then the end of the connection.
func checkOutcomes(t *testing.T, list []*attempt, paths map[string]string) {
	t.Helper()
	for _, e := range list {
		t.Run(e.name, func(t *testing.T) {
			if got := e.outcome(t, paths); got != e.want || e.err != nil {
				t.Errorf("got %q, want %q; %v", got, e.want, e.err)
				for _, r := range e.replies {
					t.Logf("%.600s", r.raw)
				}
			}
			for _, r := range e.replies {
				if r.id == "" || !isRefusal(r.status) && !strings.Contains(e.want, fmt.Sprint(r.status)) {
					t.Errorf("answered %.600s", r.raw)
				}
			}
		})
	}
}

// checkProxied checks attempts through a proxy. It fails the test if a client
// received the same answer twice, or a server error from the gateway. It also
// fails the test if a client received the answer to a hidden request, or to
// another client's request. It does not check which requests the proxy itself
// refuses, or how.
func checkProxied(t *testing.T, list []*attempt, paths map[string]string) {
	t.Helper()
	for _, e := range list {
		t.Run(e.name, func(t *testing.T) {
			got := e.outcome(t, paths)
			t.Log(got)
			seen := map[string]bool{}
			for _, r := range e.replies {
				if seen[r.id] && r.id != "" {
					t.Errorf("one answer twice: %.300s", r.raw)
				}
				seen[r.id] = true
				if r.id != "" && r.status >= 500 && r.status != 501 && r.status != 505 {
					t.Errorf("a server error of the gateway: %.600s", r.raw)
				}
			}
			if strings.Contains(got, "evil") || strings.Contains(got, "mark") && !strings.HasSuffix(got, "mark 404") {
				t.Errorf("the outcome is %s", got)
			}
		})
	}
}

// checkUnharmed fails the test if the gateway replaced workers, or if its log
// contains an error or a request that was hidden from a proxy.
func checkUnharmed(g *harness.Gateway, t *testing.T, workers []int) {
	t.Helper()
	if after := g.Workers(); len(workers) == 0 || !slices.Equal(workers, after) {
		t.Errorf("the workers are %v, before %v", after, workers)
	}
	if found := regexp.MustCompile(`.*(panic|goroutine |level=ERROR|evil-[1-9][0-9]{4}).*`).FindString(g.Logged()); found != "" {
		t.Errorf("its log has %.900s", found)
	}
}

// TestAbuses checks that every request gets either one answer, or a refusal and
// the end of the connection. It sends the requests to the gateway directly, and
// through proxies that are configured as in docs/PROXY.md or less strictly. No
// request hidden in a body may be served, and no client may receive another
// client's answer.
func TestAbuses(t *testing.T) {
	t.Parallel()
	f := harness.NewProxyLab(t)
	workers := f.Gateway.Workers()
	local := harness.Frontend{Name: "by the UNIX socket", Address: f.Socket, Headers: f.Frontends[0].Headers}
	if os.Geteuid() != 0 { // on the socket, the gateway's own user needs no credential, but some rows test requests without one
		local = f.Frontends[0]
	}
	frontends := append([]harness.Frontend{local}, f.Frontends...)
	lists := make([][]*attempt, len(frontends))
	var wg sync.WaitGroup
	for i, frontend := range frontends {
		wg.Go(func() {
			network, timeout := "tcp", clientTimeout
			if frontend.Proxied {
				timeout = 5 * time.Second // a proxy may wait longer; the gateway's log shows which requests the proxy forwarded
			}
			if strings.HasPrefix(frontend.Address, "/") {
				network = "unix"
			}
			s := requestBuilder{frontend.Headers, f.Frontends[0].Headers}
			lists[i] = sendAbuses(abuses(s), max(0, i-1)*10_000+1000*(1-min(i, 1)), s.marker(), harness.DialFunc(network, frontend.Address), timeout)
		})
	}
	wg.Wait()
	paths := loggedPaths(f.Gateway, slices.Concat(lists...))
	for i, frontend := range frontends {
		t.Run(frontend.Name, func(t *testing.T) {
			if frontend.Proxied {
				checkProxied(t, lists[i], paths)
			} else {
				checkOutcomes(t, lists[i], paths)
			}
		})
	}
	checkUnharmed(f.Gateway, t, workers)
}

var update = flag.Bool("update", false, "rewrite the number of requests in docs/generated/ATTACKS.md")

// TestAbuseTable checks that the table has at least 120 rows with different
// names, and that docs/generated/ATTACKS.md has the number of rows.
func TestAbuseTable(t *testing.T) {
	names := map[string]bool{}
	for _, a := range abuses(requestBuilder{}) {
		if names[a.name] {
			t.Errorf("%q twice", a.name)
		}
		names[a.name] = true
	}
	if len(names) < 120 {
		t.Errorf("%d rows", len(names))
	}
	text := fmt.Sprintf("| sent by a client | number |\n|---|---|\n| malformed, ambiguous or unusual requests of HTTP/1 | %d |\n| violations, floods and unusual frames of HTTP/2 | %d |\n", len(names)-len(requestBuilder{}.plain()), len(h2Abuses("")))
	section.Check(t, "../../docs/generated/ATTACKS.md", "<!-- requests: generated by go test ./integration/abuse -run TestAbuseTable -update -->\n", "<!-- end of requests -->\n", text, *update)
}

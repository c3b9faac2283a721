package abuse

import (
	"bufio"
	"errors"
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
)

// abuse is a request that is malformed, unusual or ambiguous. The marker, a valid request, is sent behind it in the
// same write. The gateway either closes the connection after the abuse, or answers the marker too.
type abuse struct {
	name string
	text string
	want string // the answers, in order, from the gateway itself; behind that the connection is closed
	open bool   // it is incomplete: there is no marker, and the client closes its side
}

// These are the most frequent outcomes.
const (
	served = "own 404, mark 404" // it asks for an unknown node; the gateway was ready for the next request
	taken  = "own 422, mark 404" // a submission that lacks nearly everything
	ended  = "own 404"           // served, and the connection closed
	last   = "own 422"           // as ended, for a submission
)

// nonce is replaced by the number of the exchange, which has the same length.
const nonce = "#####"

// speech is how one client of a way to the gateway speaks.
type speech struct {
	auth   string // makes a request the user's
	stolen string // does so at the gateway itself: a proxy accepts no client with it
}

func (s speech) get(headers, body string) string { return s.request("GET", "own", headers, body) }

func (s speech) request(method, node, headers, body string) string {
	return s.line(method+" "+nodePath(node)+" HTTP/1.1", "Host: lab\r\n"+headers, body)
}

// line returns a request with that request line, authenticated as the user.
func (s speech) line(line, headers, body string) string {
	return line + "\r\n" + s.auth + headers + "\r\n" + body
}

// post returns a submission. Its answer names the unknown fields in the body.
func (s speech) post(headers, body string) string {
	return s.line("POST /sched/"+harness.Version+"/job/submit HTTP/1.1", "Host: lab\r\n"+headers, body)
}

func nodePath(node string) string { return "/sched/" + harness.Version + "/node/" + node + "-" + nonce }

// hidden returns a request that would be served if the gateway took it for one.
// A proxy that takes it for one refuses it.
func (s speech) hidden() string { return speech{auth: s.stolen}.request("GET", "evil", "", "") }

func (s speech) marker() string { return s.request("GET", "mark", "Connection: close\r\n", "") }

// document is the body of a submission.
const document = `{"own-` + nonce + `":1}`

func sized(body string) string { return fmt.Sprintf("Content-Length: %d\r\n", len(body)) }

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// noMore ends a body of chunks.
const noMore = "0\r\n\r\n"

// reply is an answer as it was read, by rules that leave nothing open.
type reply struct {
	status int
	id     string // the gateway's name for the request; "" when a proxy answers
	text   string
	raw    string
}

var (
	statusLine = regexp.MustCompile(`^HTTP/1\.[01] ([1-5][0-9][0-9]) [ -~]*$`)
	fieldLine  = regexp.MustCompile("^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)$")
	errNoMore  = errors.New("no more answers")
)

// readReply reads one answer. It is as strict as a reader can be, because the gateway's answer to an abuse must
// not be ambiguous itself. head says that the request was a HEAD, whose answer has no body.
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
		return r, errors.Join(errNoMore, err)
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
		if _, twice := fields[name]; twice && name != "set-cookie" && name != "vary" {
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
			n, bad := strconv.ParseUint(line(), 16, 24)
			if err != nil || bad != nil {
				return r, errors.Join(err, bad)
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
		n, bad := strconv.ParseUint(length, 10, 24)
		if bad != nil {
			return r, bad
		}
		body := make([]byte, n)
		if _, err = io.ReadFull(in, body); err != nil {
			return r, fmt.Errorf("a body of %d bytes: %w", n, err)
		}
		r.text = string(body)
	default: // to the end of the connection
		body, err := io.ReadAll(in)
		if r.text = string(body); err != nil {
			return r, err
		}
	}
	return r, nil
}

// exposure is one abuse on its way through one way.
type exposure struct {
	abuse
	number  string // stands where the nonce was
	replies []reply
	failed  error // of the reading, unless it ended as it should
}

// exposed sends an abuse and its marker, and reads until the connection ends or nothing was received for the given time.
func exposed(a abuse, number int, marker string, dial func() (net.Conn, error), patience time.Duration) *exposure {
	e := &exposure{abuse: a, number: fmt.Sprintf("%05d", number)}
	text := a.text
	if !a.open {
		text += marker
	}
	c, err := dial()
	if e.failed = err; err != nil {
		return e
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	go func() {
		_, _ = io.WriteString(c, strings.ReplaceAll(text, nonce, e.number)) // who refuses it may have hung up
		if half, ok := c.(interface{ CloseWrite() error }); ok && a.open {
			_ = half.CloseWrite()
		}
	}()
	for in := bufio.NewReader(c); ; {
		r, err := readReply(in, len(e.replies) == 0 && strings.HasPrefix(a.text, "HEAD "))
		if errors.Is(err, errNoMore) {
			if !errors.Is(err, io.EOF) && (len(e.replies) == 0 || !errors.Is(err, syscall.ECONNRESET)) {
				e.failed = err // to reset is to close, on a client that sent more than was read
			}
			return e
		}
		if r.status != 100 {
			e.replies = append(e.replies, r)
		}
		if err != nil {
			e.failed = fmt.Errorf("%w in %q", err, r.raw)
			return e
		}
	}
}

var pathOf = regexp.MustCompile(`worker=\d+ .*msg=request .*\bid=([A-Z2-7]+) .*\bpath=("[^"]*"|\S*) `)

// paths returns the path of each request in the gateway's log, by the request's
// id. The line for an answer is logged after it. Requests that were refused
// before they had a path have no line.
func paths(g *harness.Gate, list []*exposure) map[string]string {
	g.T.Helper()
	paths := map[string]string{}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		for _, m := range pathOf.FindAllStringSubmatch(g.Logged(), -1) {
			paths[m[1]] = m[2]
		}
		if !slices.ContainsFunc(list, func(e *exposure) bool { return e.awaits(paths) }) || time.Now().After(end) {
			return paths
		}
	}
}

// awaits reports whether the log lacks an answer to a request that had a path.
func (e *exposure) awaits(paths map[string]string) bool {
	return slices.ContainsFunc(e.replies, func(r reply) bool { return r.id != "" && (r.status < 400 || r.status == 404) && paths[r.id] == "" })
}

var whose = regexp.MustCompile(`(own|mark|evil)-([0-9]{5})`)

// became returns the outcome of an exposure, in the notation of abuse.want,
// from the answers and the gateway's log, which identifies the request of each
// answer.
func (e *exposure) became(t *testing.T, paths map[string]string) string {
	t.Helper()
	var list []string
	for _, r := range e.replies {
		text := fmt.Sprint(r.status)
		if m := whose.FindStringSubmatch(paths[r.id] + " " + r.text); m != nil {
			text = m[1] + " " + text
			if m[2] != e.number {
				t.Errorf("an answer to the request %s of another client: %s", m[0], r.raw)
			}
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// expose sends all of a table by one way, a few at a time.
func expose(table []abuse, first int, marker string, dial func() (net.Conn, error), patience time.Duration) []*exposure {
	list := make([]*exposure, len(table))
	places := make(chan struct{}, 8)
	var all sync.WaitGroup
	for i, a := range table {
		places <- struct{}{}
		all.Go(func() {
			list[i] = exposed(a, first+i, marker, dial, patience)
			<-places
		})
	}
	all.Wait()
	return list
}

// patient is longer than the gateway waits for anything of a client.
const patient = 2 * time.Minute

// isRefusal reports whether the status blames the client.
func isRefusal(status int) bool {
	return status >= 400 && status < 500 || status == 501 || status == 505
}

// heldTo fails the test unless each exposure came to what the table says: so many answers, in that order, each to
// the request that the client made, and then the end of the connection.
func heldTo(t *testing.T, list []*exposure, paths map[string]string) {
	t.Helper()
	for _, e := range list {
		t.Run(e.name, func(t *testing.T) {
			if got := e.became(t, paths); got != e.want || e.failed != nil {
				t.Errorf("got %q, want %q; %v", got, e.want, e.failed)
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

// ofProxy fails the test when a proxy returned anything that the client did not
// ask for. It does not check which requests the proxy itself refuses, or how.
func ofProxy(t *testing.T, list []*exposure, paths map[string]string) {
	t.Helper()
	for _, e := range list {
		t.Run(e.name, func(t *testing.T) {
			got := e.became(t, paths)
			t.Log(got)
			seen := map[string]bool{}
			for _, r := range e.replies {
				if seen[r.id] && r.id != "" {
					t.Errorf("one answer twice: %.300s", r.raw)
				}
				seen[r.id] = true
				if r.id != "" && r.status >= 500 && r.status != 501 && r.status != 505 {
					t.Errorf("the gateway's fault? %.600s", r.raw)
				}
			}
			if strings.Contains(got, "evil") || strings.Contains(got, "mark") && !strings.HasSuffix(got, "mark 404") {
				t.Errorf("came to %s", got)
			}
		})
	}
}

// unharmedBy fails the test if the gateway replaced workers, or its log has an
// error or a request that was hidden from a proxy.
func unharmedBy(g *harness.Gate, t *testing.T, workers []int) {
	t.Helper()
	if after := g.Workers(); len(workers) == 0 || !slices.Equal(workers, after) {
		t.Errorf("the workers are %v, before %v", after, workers)
	}
	if bad := regexp.MustCompile(`.*(panic|goroutine |level=ERROR|evil-[1-9][0-9]{4}).*`).FindString(g.Logged()); bad != "" {
		t.Errorf("its log has %.900s", bad)
	}
}

// TestAbuses checks that every request gets one answer, or a refusal and the
// end of the connection. No request hidden in a body is served, by the gateway
// alone or behind proxies configured as in docs/PROXY.md, or worse, and no
// client receives another client's answer.
func TestAbuses(t *testing.T) {
	t.Parallel()
	f := harness.NewFronts(t)
	workers := f.Gate.Workers()
	local := harness.Front{Name: "by the UNIX socket", Address: f.Socket, Adds: f.Ways[0].Adds}
	if os.Geteuid() != 0 { // who serves needs no credential there, and some rows are about having none
		local = f.Ways[0]
	}
	ways := append([]harness.Front{local}, f.Ways...)
	lists := make([][]*exposure, len(ways))
	var all sync.WaitGroup
	for i, way := range ways {
		all.Go(func() {
			network, patience := "tcp", patient
			if way.Proxied {
				patience = 5 * time.Second // what a proxy waits for it may; the log has what the gateway was asked
			}
			if strings.HasPrefix(way.Address, "/") {
				network = "unix"
			}
			s := speech{way.Adds, f.Ways[0].Adds}
			lists[i] = expose(abuses(s), max(0, i-1)*10_000+1000*(1-min(i, 1)), s.marker(), harness.Dials(network, way.Address), patience)
		})
	}
	all.Wait()
	paths := paths(f.Gate, slices.Concat(lists...))
	for i, way := range ways {
		t.Run(way.Name, func(t *testing.T) {
			if way.Proxied {
				ofProxy(t, lists[i], paths)
			} else {
				heldTo(t, lists[i], paths)
			}
		})
	}
	unharmedBy(f.Gate, t, workers)
}

// TestAbuseTable: the table has what its name says; a row twice would count for two.
func TestAbuseTable(t *testing.T) {
	names := map[string]bool{}
	for _, a := range abuses(speech{}) {
		if names[a.name] {
			t.Errorf("%q twice", a.name)
		}
		names[a.name] = true
	}
	if len(names) < 120 {
		t.Errorf("%d rows", len(names))
	}
}

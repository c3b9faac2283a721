package attack

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/bundled/demo/site"
	"schedrestd/integration/harness"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/fault"
)

// TestAttacks checks that both daemons, and gateways with and without keys,
// refuse all bad tokens with the same text, also while the user is busy. Bad
// tokens must have no other effect.
//
// A token that no daemon accepts is sent to the daemons of one cluster, and
// each token to one of a cluster's gateways. Rows of the same kind go to one
// after the other. TestVerifiers checks each token with each kind of key.
func TestAttacks(t *testing.T) {
	t.Parallel()
	for cluster, keys := range []string{"jwt_key jwks", "jwks"} {
		t.Run("daemons with "+keys, func(t *testing.T) {
			t.Parallel()
			s := newAttackLab(t, keys)
			before := s.allWorkers()
			for i, r := range s.rows() {
				if chosen := (i + i/2) % 2; chosen == cluster || r.accepted { // of two neighbors, often one is signed with HS256 and one with RS256
					t.Run(r.name, func(t *testing.T) { s.attack(t, r) })
				}
			}
			t.Run("beside the user", s.attackBesideTheUser)
			s.checkUnharmed(t, before)
		})
	}
}

// attackLab is a cluster under attack: its daemons, several gateways, and the
// forger.
type attackLab struct {
	*harness.Lab
	*forger
	algs     string // algorithms of the daemons' keys
	gateways []*targetGateway
	body     string // body of a submission
	attempts int

	controller   *client.Client
	accounting   *client.Accounting
	trapRequests atomic.Int32 // number of requests to the trap
}

// targetGateway is a gateway under attack.
type targetGateway struct {
	name     string
	daemon   *site.Daemon
	client   *rawClient
	refusals map[string]string // first refusal of each request
}

// newAttackLab starts daemons with the given keys, and gateways with all, some
// and none of these keys.
func newAttackLab(t *testing.T, keys string) *attackLab {
	t.Helper()
	s := &attackLab{}
	trap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.trapRequests.Add(1)
		fmt.Fprintf(w, `{"keys":[%s]}`, s.json(webKey(s.attackerKey, s.kid)))
	}))
	t.Cleanup(trap.Close)
	s.Lab = harness.NewLab(t, func(l *harness.Lab) {
		secret, err := os.ReadFile(l.Key())
		harness.Must(t, err)
		s.forger = newForger(t, secret, l.Owner)
		s.trapURL = trap.URL
		harness.Must(t, site.WritePrivate(s.keySetPath(l), s.keySet()))
		l.AuthParameters = s.parameters(l, keys)
		s.algs = map[string]string{"jwt_key jwks": "HS256 RS256", "jwks": "RS256"}[keys]
		l.OwnToken = s.validToken(s.anyAlg())
		// The usual check for readiness asks the controller for a token, but
		// the controller may have no key to sign one.
		l.Ctld.Check = harness.Accepts(l.Ctld.Address)
		l.Restd.Check = func(ctx context.Context) error {
			g := site.NewGateway(l.Restd.Address, l.OwnToken)
			if _, err := g.Ping(ctx); err != nil {
				return err
			}
			return g.Diag(ctx)
		}
	})
	s.body = s.JobRequest("true", nil)
	s.gateways = []*targetGateway{{name: "the gateway with " + keys, daemon: s.Daemons["schedrestd"], client: &rawClient{address: strings.TrimPrefix(s.URL, "http://")}}}
	for _, gatewayKeys := range []string{"", "jwt_key", "jwks"} {
		if gatewayKeys != keys {
			s.gateways = append(s.gateways, s.startGatewayWith(t, gatewayKeys))
		}
	}
	for _, g := range s.gateways {
		g.refusals = map[string]string{}
		t.Cleanup(g.client.close)
		g.checkKeys(t)
	}
	at := func(p site.Part) client.Config {
		address := []client.Address{{Name: s.Node, Network: "tcp", Address: p.Address}}
		return client.Config{Controllers: address, Accounting: address, Cluster: "demo", Timeout: time.Minute}
	}
	s.controller, s.accounting = client.New(at(s.Ctld)), client.NewAccounting(at(s.DBD))
	return s
}

func (s *attackLab) keySetPath(l *harness.Lab) string {
	return filepath.Join(l.Dir, "etc", "jwks.json")
}

// parameters returns AuthAltParameters that name the given keys. For a gateway
// without keys, the parameters name a missing file, as on a machine that has
// the daemons' configuration but not their keys.
func (s *attackLab) parameters(l *harness.Lab, keys string) string {
	switch keys {
	case "":
		return "jwt_key=" + filepath.Join(l.Dir, "etc", "elsewhere")
	case "jwks":
		return "jwks=" + s.keySetPath(l)
	case "jwt_key":
		return "jwt_key=" + l.Key()
	}
	return "jwt_key=" + l.Key() + ",jwks=" + s.keySetPath(l)
}

// startGatewayWith starts another gateway, with the given keys, for the same
// daemons.
func (s *attackLab) startGatewayWith(t *testing.T, keys string) *targetGateway {
	t.Helper()
	text, err := os.ReadFile(s.Conf())
	harness.Must(t, err)
	conf := regexp.MustCompile(`(?m)^AuthAltParameters=.*$`).ReplaceAllLiteralString(string(text), `AuthAltParameters="`+s.parameters(s.Lab, keys)+`"`)
	path, listen := filepath.Join(s.Dir, "etc", "gate "+keys), fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	harness.Must(t, site.WritePrivate(path, conf))
	p := s.Restd
	p.Args = slices.Clone(p.Args)
	p.Args[1], p.Args[len(p.Args)-1] = path, listen // replaces PATH and LISTEN in -f PATH … LISTEN
	g := s.StartGatewayPart(t, p, nil)
	return &targetGateway{name: "the gateway with " + cmp.Or(keys, "nothing"), daemon: g.Daemon, client: &rawClient{address: listen}}
}

// checkKeys fails the test unless the gateway uses exactly the keys that its
// name mentions.
func (g *targetGateway) checkKeys(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(g.daemon.Log)
	harness.Must(t, err)
	for key, message := range map[string]string{"jwt_key": "key of HS256 tokens in use", "jwks": "key set of RS256 tokens in use"} {
		if want := strings.Contains(g.name, key); strings.Contains(string(text), message) != want {
			t.Fatalf("%s: %q in its log is not %t:\n%s", g.name, message, want, text)
		}
	}
}

// anyAlg returns an algorithm whose tokens this cluster accepts.
func (s *attackLab) anyAlg() string { return s.algs[:5] }

// accepts reports whether the cluster accepts r.
func (s *attackLab) accepts(r row) bool {
	return (r.accepted || r.status == http.StatusOK) && strings.Contains(s.algs, r.signedWith)
}

// attack sends the token of r to the next gateway, and to all daemons.
func (s *attackLab) attack(t *testing.T, r row) {
	status := r.status
	switch {
	case s.accepts(r):
		status = http.StatusOK
	case status == 0, status == http.StatusOK:
		status = http.StatusUnauthorized
	}
	g := s.gateways[s.attempts%len(s.gateways)]
	s.attempts++
	for _, request := range s.requests(status) {
		g.expect(t, request, "X-SCHED-USER-TOKEN: "+r.token, status)
	}
	s.attackDaemons(t, r)
	if s.attempts%8 == 0 {
		g.expect(t, pingRequest, "X-SCHED-USER-TOKEN: "+s.OwnToken, http.StatusOK)
	}
}

// request is a request to a gateway.
type request struct{ method, path, body string }

var (
	pingRequest = request{"GET", "/sched/" + harness.Version + "/ping", ""}
	diagRequest = request{"GET", "/scheddb/" + harness.Version + "/diag", ""}
)

// requests returns the requests to send with a token, one for each daemon. If
// the expected status is a refusal, one of the requests asks for a change,
// which must not be made.
func (s *attackLab) requests(status int) []request {
	if status == http.StatusOK {
		return []request{pingRequest, diagRequest}
	}
	return []request{diagRequest, {"POST", "/sched/" + harness.Version + "/job/submit", s.body}}
}

// expect sends a request with the given header lines and checks the status of
// the answer. All refusals must be identical, so that attackers can't learn
// from a refusal what was wrong.
func (g *targetGateway) expect(t *testing.T, r request, headers string, status int) {
	t.Helper()
	g.expectInGroup(t, r.path, r, headers, status)
}

// expectInGroup does the same as expect, but compares the answer with those to
// the other requests of a group. All answers with status 401 in a group must be
// identical.
func (g *targetGateway) expectInGroup(t *testing.T, group string, r request, headers string, status int) {
	t.Helper()
	a, err := g.client.send(r, headers)
	if err != nil {
		t.Errorf("%s: %s %s: %v", g.name, r.method, r.path, err)
		return
	}
	if a.Status != status {
		t.Errorf("%s: %s %s: status %d, want %d: %s", g.name, r.method, r.path, a.Status, status, brief(a.Text))
	}
	if a.Status != http.StatusUnauthorized {
		return
	}
	stable := stableAnswer(a)
	if first, ok := g.refusals[group]; !ok {
		g.refusals[group] = stable
	} else if stable != first {
		t.Errorf("%s: %s %s: refused as\n%s\nothers as\n%s", g.name, r.method, r.path, stable, first)
	}
}

var sourceField = regexp.MustCompile(`"source":"127\.0\.0\.1:\d+"`)

// stableAnswer returns an answer without the parts that differ between
// requests.
func stableAnswer(a harness.Answer) string {
	var b strings.Builder
	fmt.Fprintln(&b, a.Status)
	for _, name := range slices.Sorted(maps.Keys(a.Header)) {
		if name != "Date" && name != "X-Request-Id" && name != "Content-Length" { // the body contains the client's port, so its length varies
			fmt.Fprintln(&b, name, a.Header[name])
		}
	}
	return b.String() + sourceField.ReplaceAllString(a.Text, `"source":""`)
}

// rawClient has a connection to a gateway. If the gateway has closed the
// connection, the next request opens a new one. The tests do not use
// http.Client, because it would refuse to send half of these requests.
type rawClient struct {
	address string
	conn    net.Conn
	in      *bufio.Reader
}

func (l *rawClient) close() {
	if l.conn != nil {
		l.conn.Close()
	}
	l.conn = nil
}

// send sends a request with the given header lines.
func (l *rawClient) send(r request, headers string) (harness.Answer, error) {
	if l.conn != nil {
		if a, err := l.roundTrip(r, headers); err == nil {
			return a, nil
		}
		l.close() // the gateway has closed the connection, which it does after some refusals
	}
	var err error
	if l.conn, err = net.Dial("tcp", l.address); err != nil {
		return harness.Answer{}, err
	}
	l.in = bufio.NewReader(l.conn)
	return l.roundTrip(r, headers)
}

func (l *rawClient) roundTrip(r request, headers string) (harness.Answer, error) {
	l.conn.SetDeadline(time.Now().Add(time.Minute))
	length := ""
	if r.body != "" {
		length = fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(r.body))
	}
	// The gateway may answer and close the connection before the client has
	// written the whole body.
	_, writeErr := fmt.Fprintf(l.conn, "%s %s HTTP/1.1\r\nHost: lab\r\n%s%s\r\n\r\n%s", r.method, r.path, length, headers, r.body)
	resp, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return harness.Answer{}, errors.Join(writeErr, err)
	}
	text, err := io.ReadAll(resp.Body)
	if resp.Close || err != nil {
		l.close()
	}
	return harness.Answer{Status: resp.StatusCode, Header: resp.Header, Text: string(text)}, err
}

// maxRPC is the maximum length of a token that a daemon reads. A daemon does
// not answer requests with longer tokens.
const maxRPC = 30 << 10

// attackDaemons sends the token of r directly to the daemons.
func (s *attackLab) attackDaemons(t *testing.T, r row) {
	t.Helper()
	good := r.accepted && strings.Contains(s.algs, r.signedWith)
	for name, err := range s.callDaemons(t.Context(), model.Credential{Token: r.token}) {
		e, ok := errors.AsType[*errs.Error](err)
		switch {
		case good && err != nil:
			t.Errorf("%s refuses it: %v", name, err)
		case !good && err == nil:
			t.Errorf("%s accepts it", name)
		case !good && len(r.token) < maxRPC && (!ok || e.Number != fault.Authentication):
			t.Errorf("%s answers %v, not number %d", name, err, fault.Authentication)
		}
	}
}

// callDaemons sends a request with the credential c to each daemon. On a busy
// machine it may take several attempts to connect.
func (s *attackLab) callDaemons(ctx context.Context, c model.Credential) map[string]error {
	attempt := func(call func() error) (err error) {
		for range 5 {
			if err = call(); errs.KindOf(err) != errs.Unavailable {
				break
			}
		}
		return err
	}
	return map[string]error{
		"schedctld": attempt(func() error {
			_, err := s.controller.Nodes(ctx, c, model.Query{}, func(*model.Node) error { return nil })
			return err
		}),
		"scheddbd": attempt(func() error { return s.accounting.Verify(ctx, c) }),
	}
}

// allWorkers returns the workers of all gateways.
func (s *attackLab) allWorkers() []int {
	var pids []int
	for _, g := range s.gateways {
		pids = append(pids, harness.WorkersOf(s.Lab.T, g.daemon.PID())...)
	}
	return pids
}

// checkUnharmed fails the test unless everything works as before, with the same
// processes.
func (s *attackLab) checkUnharmed(t *testing.T, before []int) {
	t.Helper()
	if n := s.trapRequests.Load(); n > 0 {
		t.Errorf("%d requests for keys that a token named", n)
	}
	if after := s.allWorkers(); len(before) == 0 || !slices.Equal(before, after) {
		t.Errorf("the workers are %v, before %v", after, before)
	}
	logs := []string{s.Log("schedctld"), s.Log("scheddbd")}
	for _, g := range s.gateways {
		logs = append(logs, g.daemon.Log)
		for _, r := range []request{pingRequest, diagRequest} {
			g.expect(t, r, "X-SCHED-USER-TOKEN: "+s.OwnToken, http.StatusOK)
		}
	}
	for name, err := range s.callDaemons(t.Context(), model.Credential{Token: s.OwnToken}) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	unwanted := []string{"panic", "goroutine ", "level=ERROR", strings.Split(s.validToken(s.anyAlg()), ".")[2], strings.Split(s.OwnToken, ".")[2]}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		harness.Must(t, err)
		for line := range strings.Lines(string(text)) {
			if slices.ContainsFunc(unwanted, func(word string) bool { return strings.Contains(line, word) }) {
				t.Errorf("%s has %s", path, line)
				break
			}
		}
	}
}

package slurm

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// TestEveryNumber has a captured worker ask the keeper for the credential of a message
// with every number, with the token of an administrator for each scope, and send the
// messages for which it gets one to slurmctld. It may get credentials only for the
// numbers in RPC.md, and slurmctld must refuse each of them with another number or body.
//
// SLURM_NUMBERS=all means all 65,536 numbers, which takes minutes, as the keeper slows a
// worker down that asks so much. Otherwise the numbers are those among which both daemons
// have what clients send.
func TestEveryNumber(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("a controller of 22.05 closes the connection after each error")
	}
	_, issue := setUpGatewayTokens(t, m, func() {})
	m.giveKey(t, "jwt_hs256.key")
	m.run(t, "slurm", "sacctmgr", "-i", "-Q", "add", "user", "rest", "account=physics", "adminlevel=administrator")
	m.replaceWorkers(t, "cmd/schedrestd-worker/main.go", "worker.Main(worker.NewHandler)", "worker.Main(capture)",
		map[string]string{"cmd/schedrestd-worker/captured.go": "integration/slurm/testdata/captured/captured.go"})
	x := &numbersTest{machine: m, version: codec.V2411, permitted: permittedNumbers(t)}
	if m.release == "26.05" {
		x.version = codec.V2605
	}
	tokens := map[scope.Set]string{}
	for s := scope.Set(1); s < scope.All; s <<= 1 {
		tokens[s], _ = issue(gatewaytoken.Token{User: "rest", Scopes: s})
	}
	run := func(mode string) {
		t.Run(mode, func(t *testing.T) {
			m.start(t, "gateway", gatewaySocket, []string{"SLURM_JWT=daemon", "SCHEDRESTD_TOKEN_REGISTER=/etc/slurm/tokens", "SCHEDRESTD_TOKEN_MODE=" + mode},
				"/opt/gateway/schedrestd", "-v", "-f", m.conf(), "-u", "nobody", "-g", "nogroup", "unix:"+gatewaySocket)
			for _, s := range slices.Sorted(maps.Keys(tokens)) {
				t.Run(s.String(), func(t *testing.T) { x.run(t, s, tokens[s]) })
			}
		})
	}
	run("bound")
	m.useAuthSlurm(t)
	m.giveKey(t, "slurm.key")
	run("signed")
}

// permittedNumbers returns the scopes of each number in RPC.md.
func permittedNumbers(t *testing.T) map[int]scope.Set {
	text, err := os.ReadFile("../../docs/generated/RPC.md")
	must(t, err)
	permitted := map[int]scope.Set{}
	for line := range strings.Lines(string(text)) {
		var number int
		if _, err := fmt.Sscanf(line, "| %d |", &number); err != nil {
			continue
		}
		needed := strings.TrimSpace(strings.Split(line, "|")[2])
		if permitted[number] = scope.All; needed != "any" {
			permitted[number], err = scope.Parse(strings.ReplaceAll(needed, ", ", "+"))
			must(t, err)
		}
	}
	if len(permitted) < 40 {
		t.Fatalf("RPC.md has only %d numbers", len(permitted))
	}
	return permitted
}

// asked contains the keeper's answers about the messages of a range of numbers.
type asked struct {
	Got     []int // numbers of those with a credential
	Refused int   // how many are not in the token's scopes
	Other   map[string]int
}

type numbersTest struct {
	*machine
	version   codec.Version
	permitted map[int]scope.Set
}

// ask sends a request to the captured worker.
func (x *numbersTest) ask(t *testing.T, token, what string, values url.Values, answer any) {
	t.Helper()
	c := x.client(gatewaySocket)
	c.Timeout = 10 * time.Minute
	a, err := sendRequest(c, "GET", "/captured/"+what+"?"+values.Encode(), "", "X-SLURM-USER-TOKEN: "+token)
	must(t, err)
	if a.status != http.StatusOK {
		t.Fatalf("%d %.300s", a.status, a.body)
	}
	must(t, json.Unmarshal(a.body, answer))
}

// sent is the controller's answer to a message of the captured worker.
type sent struct {
	Type  message.Type
	Code  uint32
	Error string
}

// send sends a message with the credential of the message of, and reports whether
// slurmctld accepts it: it answers, or it logs that it can't read the body, which it tries
// only then.
func (x *numbersTest) send(t *testing.T, token string, of int, ofBody string, as int, asBody string) (accepted bool, s sent) {
	t.Helper()
	before := len(x.controllerLog(t))
	x.ask(t, token, "send", url.Values{"version": {fmt.Sprint(int(x.version))}, "of": {fmt.Sprint(of)}, "of_body": {fmt.Sprintf("%x", ofBody)},
		"as": {fmt.Sprint(as)}, "as_body": {fmt.Sprintf("%x", asBody)}}, &s)
	if s.Error != "" && s.Error != "EOF" && !(as == scope.PersistInit && strings.HasSuffix(s.Error, "i/o timeout")) {
		t.Fatalf("the message %d: %s", as, s.Error)
	}
	return s.Error == "" || strings.Contains(x.controllerLog(t)[before:], fmt.Sprintf("(%d) received", as)), s
}

func (x *numbersTest) controllerLog(t *testing.T) string {
	text, err := os.ReadFile(filepath.Join(x.root, "var/log/slurm/slurmctld.log"))
	must(t, err)
	return string(text)
}

// Bodies with which a message for slurmctld is no reset of the statistics, which have the
// same number. Most messages need a longer one.
const (
	minimal = "\x00\x01\x00\x00\x00\x00\x00\x00"
	other   = "\x00\x01\x00\x00\x00\x00\x00\x01"
	reset   = "\x00\x00\x00\x00\x00\x00\x00\x00"
)

const statistics = 2035

func (x *numbersTest) run(t *testing.T, s scope.Set, token string) {
	first, last := 1000, 6599
	if os.Getenv("SLURM_NUMBERS") == "all" {
		first, last = 0, 65535
	}
	var want, others []int
	for number, needed := range x.permitted {
		if needed&s != 0 {
			want = append(want, number)
		} else {
			others = append(others, number)
		}
	}
	slices.Sort(want)
	ask := func(first, last int, body string) (a asked) {
		t.Helper()
		x.ask(t, token, "ask", url.Values{"first": {fmt.Sprint(first)}, "last": {fmt.Sprint(last)}, "body": {fmt.Sprintf("%x", body)}}, &a)
		slices.Sort(a.Got)
		if a.Refused != last-first+1-len(a.Got) {
			t.Errorf("credentials for %v, %d refused, other answers: %v", a.Got, a.Refused, a.Other)
		}
		return a
	}
	begun := time.Now()
	if got := ask(first, last, minimal).Got; !slices.Equal(got, want) {
		t.Errorf("credentials for %v, want %v", got, want)
	}
	t.Logf("asked for %d in %v", last-first+1, time.Since(begun).Round(time.Millisecond))
	if got := ask(statistics, statistics, reset).Got; len(got) > 0 != (s == scope.ClusterAdmin) {
		t.Errorf("a reset of the statistics: credentials for %v", got)
	}
	for _, number := range want {
		if number == int(message.RequestResourceLayout) && x.version < codec.V2511 {
			continue // a controller of 24.11 does not know it
		}
		if accepted, answer := x.send(t, token, number, minimal, number, minimal); !accepted {
			t.Errorf("%d is refused: %+v", number, answer)
		}
		if accepted, answer := x.send(t, token, number, minimal, number, other); accepted {
			t.Errorf("%d with another body: %+v", number, answer)
		}
	}
	if s&(scope.SlurmdbRead|scope.SlurmdbWrite) != 0 {
		x.persist(t, token)
	}
	const ping, shutdown, newToken = 1008, 1005, 5039
	for _, number := range append(others, shutdown, newToken) {
		if accepted, answer := x.send(t, token, ping, minimal, number, minimal); accepted {
			t.Errorf("%d with the credential of a ping: %+v", number, answer)
		}
	}
	t.Logf("%d messages accepted, %d with another body or number refused", len(want), len(want)+len(others)+2)
}

// persist tries to open a connection to slurmctld for messages without credentials, as
// other controllers have it. slurmctld must want the user of the cluster.
func (x *numbersTest) persist(t *testing.T, token string) {
	refusals := func() int { return strings.Count(x.controllerLog(t), "Security violation, REQUEST_PERSIST_INIT") }
	for kind := range uint16(8) {
		c := codec.NewEncoder(x.version, nil)
		(&message.PersistInit{Version: x.version, ClusterName: "lab", PersistType: kind}).Walk(c)
		before, init := refusals(), string(c.Bytes())
		if accepted, answer := x.send(t, token, scope.PersistInit, init, scope.PersistInit, init); accepted {
			t.Errorf("a connection of kind %d: %+v", kind, answer)
		}
		eventually(t, "a connection is refused", func() bool { return refusals() == before+1 })
	}
}

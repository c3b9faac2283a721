package attack

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/integration/harness"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// leaks makes a new token for each way to send a token, and searches places
// where no token may be. Even a part of a token is a leak, so leaks searches
// for pieces of the payload and of the signature.
type leaks struct {
	*harness.Lab
	t      *testing.T
	key    []byte
	pieces map[string]string   // maps a piece that occurs in only one token to the way in which that token was sent
	found  map[string][]string // the places where pieces were found, by the way in which the token was sent
	said   []string            // all answers
}

// pieceLength is the length of the pieces of tokens that are searched for. It
// is short, because a token that is shortened for a message is a leak, too.
const pieceLength = 16

// hide returns a token that has not been used yet.
func (l *leaks) hide(how string, key []byte, lifespan time.Duration) string {
	now := time.Now()
	token := harness.Forge(l.t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Add(-time.Hour).Unix(), "exp": now.Add(lifespan).Unix(),
		"sun": l.Owner, "a": rand.Text() + rand.Text(), "z": rand.Text()})
	l.remember(how, token)
	return token
}

// remember adds pieces of token to those that are searched for. It omits the
// header, the dates and the user, because other tokens have the same.
func (l *leaks) remember(how, token string) {
	parts := strings.Split(token, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	harness.Must(l.t, err)
	of := []string{parts[2]}
	if dates := bytes.Index(payload, []byte(`","exp"`)); dates > 0 {
		begin := base64.RawURLEncoding.EncodedLen(len(`{"a":"`))
		of = append(of, parts[1][begin:base64.RawURLEncoding.EncodedLen(dates)-1], parts[1][len(parts[1])-30:])
	}
	for _, part := range of {
		for i := 0; i+pieceLength <= len(part); i += pieceLength / 4 {
			l.pieces[part[i:i+pieceLength]] = how
		}
	}
}

// look searches for pieces in text. place describes where text comes from.
func (l *leaks) look(place, text string) {
	letters := 0
	for i := range len(text) {
		if c := text[i]; c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			letters++
		} else {
			letters = 0
		}
		if letters < pieceLength {
			continue
		}
		if how, ok := l.pieces[text[i+1-pieceLength:i+1]]; ok && !slices.Contains(l.found[how], place) {
			l.found[how] = append(l.found[how], place)
		}
	}
}

// search searches all places that a token may have reached: every file below
// the site's directory, the command line and the environment of every process
// that the test may read, and the answers.
func (l *leaks) search() {
	harness.Must(l.t, filepath.WalkDir(l.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // the file is gone, or not a regular one
		}
		text, err := os.ReadFile(path)
		if err == nil {
			l.look(strings.TrimPrefix(path, l.Dir+"/"), string(text))
		}
		return nil
	}))
	processes, err := filepath.Glob("/proc/[0-9]*")
	harness.Must(l.t, err)
	for _, p := range processes {
		for _, name := range []string{"cmdline", "environ"} {
			if text, err := os.ReadFile(filepath.Join(p, name)); err == nil {
				l.look("/proc/"+name, string(text))
			}
		}
	}
	for _, text := range l.said {
		l.look("an answer", text)
	}
}

// send sends a request unchanged and keeps the answer.
func (l *leaks) send(address, request string) (status string) {
	l.t.Helper()
	conn, err := net.Dial("tcp", address)
	harness.Must(l.t, err)
	defer conn.Close()
	harness.Must(l.t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, _ = io.WriteString(conn, request) // a gateway that refuses the request may have closed the connection
	text, _ := io.ReadAll(conn)
	l.said = append(l.said, string(text))
	_, rest, _ := strings.Cut(string(text), " ")
	status, _, _ = strings.Cut(rest, " ")
	return status
}

// sent is a request with a token in one place, which the word TOKEN marks. The
// word GOOD stands for a valid token that is sent in the usual header.
type sent struct {
	how    string
	status string // "": any
	text   string
}

func getting(path string, headers ...string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n" + strings.Join(append(headers, "\r\n"), "\r\n")
}

func posting(body string, headers ...string) string {
	return "POST " + harness.SubmitPath + " HTTP/1.1\r\nHost: lab\r\nConnection: close\r\nContent-Length: LENGTH\r\n" + strings.Join(append(headers, "\r\n"), "\r\n") + body
}

const goodHeader = "X-SCHED-USER-TOKEN: GOOD"

// waysToSend returns requests with a token: in the places where it belongs, and
// in places where a user may put it by mistake.
func (l *leaks) waysToSend() []sent {
	ways := []sent{
		{"its header", "200", getting(harness.PingPath, "X-SCHED-USER-TOKEN: TOKEN")},
		{"its header in the other spelling", "200", getting(harness.PingPath, "X-SLURM-USER-TOKEN: TOKEN")},
		{"Bearer", "200", getting(harness.PingPath, "Authorization: Bearer TOKEN")},
		{"with the name of its user", "200", getting(harness.PingPath, "X-SCHED-USER-TOKEN: TOKEN", "X-SCHED-USER-NAME: "+l.Owner)},
		{"with an unknown user name", "401", getting(harness.PingPath, "X-SCHED-USER-TOKEN: TOKEN", "X-SCHED-USER-NAME: there.is.no.such.user")},
		{"to the accounting daemon", "200", getting(harness.DiagPath, "X-SCHED-USER-TOKEN: TOKEN")},
		{"to nowhere", "404", getting("/nowhere", "X-SCHED-USER-TOKEN: TOKEN")},
		{"with a body that is none", "400", posting("{", "X-SCHED-USER-TOKEN: TOKEN")},
		{"twice", "401", getting(harness.PingPath, "X-SCHED-USER-TOKEN: TOKEN", "X-SCHED-USER-TOKEN: TOKEN")},
		{"named in Connection", "401", getting(harness.PingPath, "X-SCHED-USER-TOKEN: TOKEN", "Connection: X-SCHED-USER-TOKEN")},
		{"Basic", "401", getting(harness.PingPath, "Authorization: Basic TOKEN")},
		{"the scheme Token", "401", getting(harness.PingPath, "Authorization: Token TOKEN")},
		{"no scheme", "401", getting(harness.PingPath, "Authorization: TOKEN")},
		{"Cookie", "401", getting(harness.PingPath, "Cookie: SCHED_JWT=TOKEN")},
		{"X-Auth-Token", "401", getting(harness.PingPath, "X-Auth-Token: TOKEN")},
		{"Proxy-Authorization", "401", getting(harness.PingPath, "Proxy-Authorization: Bearer TOKEN")},
		{"the variable as a header", "401", getting(harness.PingPath, "SCHED_JWT: TOKEN")},
		{"a header with underscores", "401", getting(harness.PingPath, "X_SCHED_USER_TOKEN: TOKEN", goodHeader)},
		{"the name's header", "401", getting(harness.PingPath, "X-SCHED-USER-NAME: TOKEN", goodHeader)},
		{"a trailer", "401", "POST " + harness.SubmitPath + " HTTP/1.1\r\nHost: lab\r\nTransfer-Encoding: chunked\r\nTrailer: X-SCHED-USER-TOKEN\r\n\r\n2\r\n{}\r\n0\r\nX-SCHED-USER-TOKEN: TOKEN\r\n\r\n"},
		{"the host", "400", strings.Replace(getting(harness.PingPath, goodHeader), "Host: lab", "Host: TOKEN/", 1)},
		{"the method", "405", strings.Replace(getting(harness.PingPath, goodHeader), "GET", "TOKEN", 1)},
		{"the version of HTTP", "400", strings.Replace(getting(harness.PingPath, goodHeader), "HTTP/1.1", "HTTP/TOKEN", 1)},
		{"a header without a name", "400", getting(harness.PingPath, "TOKEN", goodHeader)},
		{"a header's name", "200", getting(harness.PingPath, "X-TOKEN: x", goodHeader)},
		{"a header that is too large", "431", getting(harness.PingPath, "X-SCHED-USER-TOKEN: TOKEN", "X-Large: "+strings.Repeat("x", 2<<20))},
		{"Transfer-Encoding", "501", posting("{}", "Transfer-Encoding: TOKEN", goodHeader)},
		{"Content-Length", "400", getting(harness.PingPath, "Content-Length: TOKEN", goodHeader)},
		{"Expect", "417", getting(harness.PingPath, "Expect: TOKEN", goodHeader)},
		{"Content-Type", "415", posting("{}", "Content-Type: TOKEN", goodHeader)},
		{"Content-Encoding", "415", posting("{}", "Content-Encoding: TOKEN", goodHeader)},
		{"the path", "401", getting("/sched/"+harness.Version+"/node/TOKEN", goodHeader)},
		{"a job's number", "401", getting("/sched/"+harness.Version+"/job/TOKEN", goodHeader)},
		{"a path that there is not", "404", getting("/TOKEN/x", goodHeader)},
		{"the version's place", "404", getting("/sched/TOKEN/ping", goodHeader)},
		{"the URL's user", "", getting("http://TOKEN@lab"+harness.PingPath, goodHeader)},
		{"the URL's fragment", "", getting(harness.PingPath+"#TOKEN", goodHeader)},
		{"a field that there is not", "200", posting(l.JobRequest("true", map[string]any{"token": "TOKEN"}), goodHeader)},
		{"a field's name", "200", posting(l.JobRequest("true", map[string]any{"TOKEN": 1}), goodHeader)},
		{"beside the job", "422", posting(`{"X-SCHED-USER-TOKEN":"TOKEN"}`, goodHeader)},
		{"a number", "422", posting(l.JobRequest("true", map[string]any{"tasks": "TOKEN"}), goodHeader)},
		{"a word", "422", posting(l.JobRequest("true", map[string]any{"distribution": "TOKEN"}), goodHeader)},
		{"the body", "400", posting("TOKEN", goodHeader)},
		{"the body, as YAML", "422", posting("TOKEN", "Content-Type: application/yaml", goodHeader)},
		{"a body that breaks off", "400", posting(`{"job":{"x":"TOKEN"`, goodHeader)},
		{"the job's environment", "200", posting(l.JobRequest("env; cat /proc/self/environ", map[string]any{"environment": []string{"PATH=/usr/bin:/bin", "SCHED_JWT=TOKEN"}}), goodHeader)},
		{"the job's environment in the other spelling", "200", posting(l.JobRequest("env", map[string]any{"environment": []string{"SLURM_JWT=TOKEN", "PATH=/usr/bin:/bin"}}), goodHeader)},
		{"the job's environment as an object", "200", posting(l.JobRequest("env", map[string]any{"environment": map[string]string{"PATH": "/usr/bin:/bin", "SCHED_JWT": "TOKEN"}}), goodHeader)},
		{"its header, and the job's environment by any name", "200", posting(l.JobRequest("env", map[string]any{"environment": []string{"PATH=/usr/bin:/bin", "MINE=TOKEN"}}), "X-SCHED-USER-TOKEN: TOKEN")},
	}
	for _, name := range []string{"X-SCHED-USER-TOKEN", "x-slurm-user-token", "access_token", "token", "jwt", "SCHED_JWT", "slurm_jwt", "colour"} {
		ways = append(ways, sent{"the query, as " + name, "401", getting(harness.PingPath+"?"+name+"=TOKEN", goodHeader)})
	}
	for _, name := range []string{"User-Agent", "Referer", "X-Request-Id", "X-Forwarded-For", "Forwarded", "Via", "Traceparent", "Accept-Language", "If-None-Match", "Range", "From", "Origin"} {
		ways = append(ways, sent{name, "200", getting(harness.PingPath, name+": TOKEN", goodHeader)})
	}
	return ways
}

// of returns the request with the tokens filled in.
func (s sent) of(token, good string) string {
	text := strings.ReplaceAll(strings.ReplaceAll(s.text, "TOKEN", token), "GOOD", good)
	// Restore the names of headers and variables that contain TOKEN.
	text = strings.ReplaceAll(strings.ReplaceAll(text, "USER-"+token, "USER-TOKEN"), "USER_"+token, "USER_TOKEN")
	if _, body, ok := strings.Cut(text, "\r\n\r\n"); ok {
		text = strings.Replace(text, "LENGTH", fmt.Sprint(len(body)), 1)
	}
	return text
}

// plant puts a token, made only for this purpose, where leaked tokens could be
// found. The search must find it there, because a search that overlooks it
// would prove nothing about other tokens. In most places plant uses only the
// signature. It looks like any other word, so it is neither refused nor
// removed, as a whole token would be. plant returns the job that has the token,
// and the argument of its sleep(1).
func (l *leaks) plant(addresses []string) (job int, sleep string) {
	l.t.Helper()
	token := l.hide(planted, []byte("a key that is good for nothing.."), time.Hour)
	word := token[strings.LastIndexByte(token, '.')+1:]
	for _, address := range addresses {
		if got := l.send(address, getting("/sched/"+harness.Version+"/node/"+word, "X-SCHED-USER-TOKEN: "+l.OwnToken)); got != "404" {
			l.t.Fatalf("an unknown node: %s", got)
		}
	}
	for _, name := range []string{"schedctld", "scheddbd"} { // clients can't choose what these log
		f, err := os.OpenFile(l.Log(name), os.O_APPEND|os.O_WRONLY, 0)
		harness.Must(l.t, err)
		_, err = fmt.Fprintf(f, "planted by the test: %s\n", word)
		harness.Must(l.t, err)
		harness.Must(l.t, f.Close())
	}
	sleep = harness.UniqueSleep()
	job = l.Submit("env; sh -c 'sleep "+sleep+"; :' "+word, map[string]any{"name": word, "environment": []string{"PATH=/usr/bin:/bin", "PLANTED=" + token}})
	harness.Eventually(l.t, "the planted job runs", func() bool { return harness.Running(l.t, sleep) == 1 })
	l.said = append(l.said, l.Job(job).Text)
	return job, sleep
}

const planted = "planted"

// TestTokensLeak sends tokens in all valid ways and many invalid ones, with the
// most verbose log, to a gateway that has the key, to one that does not, and to
// the daemons. Afterwards no part of a token may be in a log, a file, an
// answer, a command line, the environment of a process or a job's output.
func TestTokensLeak(t *testing.T) {
	t.Parallel()
	const most = "-vvvvvv"
	l := &leaks{t: t, pieces: map[string]string{}, found: map[string][]string{}}
	l.Lab = harness.NewLab(t, harness.WithOptions([]string{most}), func(l *harness.Lab) {
		l.Ctld.Args, l.DBD.Args = append(l.Ctld.Args, "-v"), append(l.DBD.Args, "-v")
	})
	k := l.Tolled(t)
	var err error
	l.key, err = os.ReadFile(l.Key())
	harness.Must(t, err)
	l.remember("the lab's own", l.OwnToken)
	addresses := []string{strings.TrimPrefix(l.URL, "http://"), k.Address}
	job, sleep := l.plant(addresses)

	kinds := []struct {
		name     string
		key      []byte
		lifespan time.Duration
	}{{"good", l.key, time.Hour}, {"forged", []byte("a key that is not the cluster's.."), time.Hour}, {"expired", l.key, -time.Minute}}
	for i, address := range addresses {
		gateway := []string{"with the key", "without"}[i]
		for _, way := range l.waysToSend() {
			for _, kind := range kinds {
				how := fmt.Sprintf("%s, %s, gateway %s", way.how, kind.name, gateway)
				got := l.send(address, way.of(l.hide(how, kind.key, kind.lifespan), l.OwnToken))
				want := way.status
				if kind.name != "good" && !strings.Contains(way.text, goodHeader) && want != "404" && want != "431" {
					want = "401"
				}
				if got != cmp.Or(want, got) || got == "" {
					t.Errorf("%s: status %q, want %s", how, got, want)
				}
			}
		}
	}
	for _, kind := range kinds {
		l.sendRPC(kind.name, func(how string) string {
			return l.hide(how+", "+kind.name+", by RPC", kind.key, kind.lifespan)
		})
	}
	harness.Eventually(t, "all jobs but the planted one have ended", func() bool {
		a := l.Ask("GET", "/sched/"+harness.Version+"/jobs", "").Want(t, 200)
		running := 0
		for i := range a.List("jobs") {
			if s := fmt.Sprint(a.Get("jobs", i, "job_state")); strings.Contains(s, "PENDING") || strings.Contains(s, "RUNNING") {
				running++
			}
		}
		return running == 1
	})
	l.search() // while the processes run and still hold the tokens
	l.Schedctl(t, "cancel", fmt.Sprint(job))
	l.AwaitEnd(job)
	harness.Eventually(t, "its processes have ended", func() bool { return harness.Running(t, sleep) == 0 })
	harness.Eventually(t, "the accounting daemon has its record", func() bool {
		l.search()
		return slices.ContainsFunc(l.found[planted], func(place string) bool { return strings.HasPrefix(place, "state/scheddbd.sqlite") })
	})
	k.Stop()
	for _, name := range []string{"schedrestd", "schedctld", "scheddbd"} {
		l.Daemons[name].Stop()
	}
	l.search() // after everything has been written
	l.judge(filepath.Base(k.Log))
}

// sendRPC sends tokens directly to both daemons, also in fields for user names.
func (l *leaks) sendRPC(kind string, hide func(how string) string) {
	ctx := l.t.Context()
	tcp := func(port int) []client.Address {
		return []client.Address{{Name: l.Node, Network: "tcp", Address: fmt.Sprintf("127.0.0.1:%d", port)}}
	}
	ctl := client.New(client.Config{Controllers: tcp(l.Controller)})
	dbd := client.NewAccounting(client.Config{Accounting: tcp(l.Accounting), Cluster: "demo"})
	for how, ask := range map[string]func(cred model.Credential) error{
		"to the controller":        func(cred model.Credential) error { return ctl.Verify(ctx, cred) },
		"to the accounting daemon": func(cred model.Credential) error { return dbd.Verify(ctx, cred) },
		"for a job": func(cred model.Credential) error {
			_, err := ctl.Submit(ctx, cred, &model.JobDesc{Name: "rpc", Script: "#!/bin/sh\nenv\n", WorkDir: l.Work, Environment: []string{"PATH=/usr/bin:/bin", "SCHED_JWT=" + cred.Token}})
			return err
		},
	} {
		err := ask(model.Credential{Token: hide(how)})
		if (err == nil) != (kind == "good") {
			l.t.Errorf("%s, %s: %v", how, kind, err)
		}
		l.said = append(l.said, fmt.Sprint(err))
	}
	_, err := ctl.Token(ctx, model.Credential{Token: l.OwnToken}, hide("as the name of whom a token is for"), time.Minute)
	l.said = append(l.said, fmt.Sprint(err))
	for how, verify := range map[string]func(cred model.Credential) error{
		"as the name of whom to act as":                      func(cred model.Credential) error { return ctl.Verify(ctx, cred) },
		"as the name of whom to act as, to the other daemon": func(cred model.Credential) error { return dbd.Verify(ctx, cred) },
	} {
		err := verify(model.Credential{Token: l.OwnToken, ActAs: hide(how)})
		if err == nil {
			l.t.Errorf("%s: accepted", how)
		}
		l.said = append(l.said, fmt.Sprint(err))
	}
}

// judge reports the tokens that were found. It also fails the test unless the
// planted token was found in every place.
func (l *leaks) judge(gateLog string) {
	places := l.found[planted]
	delete(l.found, planted)
	for _, want := range []string{"log/schedrestd", "log/" + gateLog, "log/schedctld", "log/scheddbd", "state/schedctld/", "state/scheddbd.sqlite", "work/sched-",
		"/proc/cmdline", "/proc/environ", "an answer"} {
		if !slices.ContainsFunc(places, func(place string) bool { return strings.HasPrefix(place, want) }) {
			l.t.Errorf("the planted token was not found in %s, only in %q, so the search proves nothing", want, places)
		}
	}
	for how, where := range l.found {
		l.t.Errorf("a token sent in %s: found in %q", how, where)
	}
}

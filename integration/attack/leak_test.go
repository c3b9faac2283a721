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

// A leaks value searches for tokens in places where no token may be. It uses a
// new token for each way to send a token. Even a part of a token is a leak, so
// it searches for pieces of the payload and of the signature.
type leaks struct {
	*harness.Lab
	t       *testing.T
	key     []byte
	pieces  map[string]string   // maps a piece, which occurs in only one token, to the way in which that token was sent
	found   map[string][]string // maps the way in which a token was sent to the places where its pieces were found
	answers []string            // all answers
}

// pieceLength is the length of the pieces of tokens to search for. It is short,
// because a message that contains only a part of a token is a leak, too.
const pieceLength = 16

// newToken returns a token that has not been used yet.
func (l *leaks) newToken(origin string, key []byte, lifespan time.Duration) string {
	now := time.Now()
	token := harness.NewToken(l.t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Add(-time.Hour).Unix(), "exp": now.Add(lifespan).Unix(),
		"sun": l.Owner, "a": rand.Text() + rand.Text(), "z": rand.Text()})
	l.addPieces(origin, token)
	return token
}

// addPieces adds pieces of token to l.pieces. It omits the header, the dates
// and the user, because these also occur in other tokens.
func (l *leaks) addPieces(origin, token string) {
	parts := strings.Split(token, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	harness.Must(l.t, err)
	segments := []string{parts[2]}
	if dates := bytes.Index(payload, []byte(`","exp"`)); dates > 0 {
		begin := base64.RawURLEncoding.EncodedLen(len(`{"a":"`))
		segments = append(segments, parts[1][begin:base64.RawURLEncoding.EncodedLen(dates)-1], parts[1][len(parts[1])-30:])
	}
	for _, part := range segments {
		for i := 0; i+pieceLength <= len(part); i += pieceLength / 4 {
			l.pieces[part[i:i+pieceLength]] = origin
		}
	}
}

// searchText searches the given text for pieces of tokens. place says where the
// text comes from.
func (l *leaks) searchText(place, text string) {
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
		if origin, ok := l.pieces[text[i+1-pieceLength:i+1]]; ok && !slices.Contains(l.found[origin], place) {
			l.found[origin] = append(l.found[origin], place)
		}
	}
}

// search searches all places that a token may have reached: every file below
// the site's directory, the answers, and the command line and environment of
// every process that the test may read.
func (l *leaks) search() {
	l.searchFiles(l.Dir)
	processes, err := filepath.Glob("/proc/[0-9]*")
	harness.Must(l.t, err)
	for _, p := range processes {
		for _, name := range []string{"cmdline", "environ"} {
			if text, err := os.ReadFile(filepath.Join(p, name)); err == nil {
				l.searchText("/proc/"+name, string(text))
			}
		}
	}
	for _, text := range l.answers {
		l.searchText("an answer", text)
	}
}

// searchFiles searches every file below dir.
func (l *leaks) searchFiles(dir string) {
	harness.Must(l.t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // the file is gone or is not regular
		}
		text, err := os.ReadFile(path)
		if err == nil {
			l.searchText(strings.TrimPrefix(path, l.Dir+"/"), string(text))
		}
		return nil
	}))
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
	l.answers = append(l.answers, string(text))
	_, rest, _ := strings.Cut(string(text), " ")
	status, _, _ = strings.Cut(rest, " ")
	return status
}

// tokenRequest is a request that contains a token in one place. In text, TOKEN
// stands for this token, and GOOD stands for a valid token in the usual header.
type tokenRequest struct {
	name   string
	status string // "": any
	text   string
}

func getRequest(path string, headers ...string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n" + strings.Join(append(headers, "\r\n"), "\r\n")
}

func postRequest(body string, headers ...string) string {
	return "POST " + harness.SubmitPath + " HTTP/1.1\r\nHost: lab\r\nConnection: close\r\nContent-Length: LENGTH\r\n" + strings.Join(append(headers, "\r\n"), "\r\n") + body
}

const goodHeader = "X-SCHED-USER-TOKEN: GOOD"

// tokenRequests returns requests with a token in a proper place, or in a place
// where a user may put it by mistake.
func (l *leaks) tokenRequests() []tokenRequest {
	requests := []tokenRequest{
		{"its header", "200", getRequest(harness.PingPath, "X-SCHED-USER-TOKEN: TOKEN")},
		{"its header in the other spelling", "200", getRequest(harness.PingPath, "X-SLURM-USER-TOKEN: TOKEN")},
		{"Bearer", "200", getRequest(harness.PingPath, "Authorization: Bearer TOKEN")},
		{"with the name of its user", "200", getRequest(harness.PingPath, "X-SCHED-USER-TOKEN: TOKEN", "X-SCHED-USER-NAME: "+l.Owner)},
		{"with an unknown user name", "401", getRequest(harness.PingPath, "X-SCHED-USER-TOKEN: TOKEN", "X-SCHED-USER-NAME: there.is.no.such.user")},
		{"to the accounting daemon", "200", getRequest(harness.DiagPath, "X-SCHED-USER-TOKEN: TOKEN")},
		{"to nowhere", "404", getRequest("/nowhere", "X-SCHED-USER-TOKEN: TOKEN")},
		{"with a body that is none", "400", postRequest("{", "X-SCHED-USER-TOKEN: TOKEN")},
		{"twice", "401", getRequest(harness.PingPath, "X-SCHED-USER-TOKEN: TOKEN", "X-SCHED-USER-TOKEN: TOKEN")},
		{"named in Connection", "401", getRequest(harness.PingPath, "X-SCHED-USER-TOKEN: TOKEN", "Connection: X-SCHED-USER-TOKEN")},
		{"Basic", "401", getRequest(harness.PingPath, "Authorization: Basic TOKEN")},
		{"the scheme Token", "401", getRequest(harness.PingPath, "Authorization: Token TOKEN")},
		{"no scheme", "401", getRequest(harness.PingPath, "Authorization: TOKEN")},
		{"Cookie", "401", getRequest(harness.PingPath, "Cookie: SCHED_JWT=TOKEN")},
		{"X-Auth-Token", "401", getRequest(harness.PingPath, "X-Auth-Token: TOKEN")},
		{"Proxy-Authorization", "401", getRequest(harness.PingPath, "Proxy-Authorization: Bearer TOKEN")},
		{"the variable as a header", "401", getRequest(harness.PingPath, "SCHED_JWT: TOKEN")},
		{"a header with underscores", "401", getRequest(harness.PingPath, "X_SCHED_USER_TOKEN: TOKEN", goodHeader)},
		{"the name's header", "401", getRequest(harness.PingPath, "X-SCHED-USER-NAME: TOKEN", goodHeader)},
		{"a trailer", "401", "POST " + harness.SubmitPath + " HTTP/1.1\r\nHost: lab\r\nTransfer-Encoding: chunked\r\nTrailer: X-SCHED-USER-TOKEN\r\n\r\n2\r\n{}\r\n0\r\nX-SCHED-USER-TOKEN: TOKEN\r\n\r\n"},
		{"the host", "400", strings.Replace(getRequest(harness.PingPath, goodHeader), "Host: lab", "Host: TOKEN/", 1)},
		{"the method", "405", strings.Replace(getRequest(harness.PingPath, goodHeader), "GET", "TOKEN", 1)},
		{"the version of HTTP", "400", strings.Replace(getRequest(harness.PingPath, goodHeader), "HTTP/1.1", "HTTP/TOKEN", 1)},
		{"a header without a name", "400", getRequest(harness.PingPath, "TOKEN", goodHeader)},
		{"a header's name", "200", getRequest(harness.PingPath, "X-TOKEN: x", goodHeader)},
		{"a header that is too large", "431", getRequest(harness.PingPath, "X-SCHED-USER-TOKEN: TOKEN", "X-Large: "+strings.Repeat("x", 2<<20))},
		{"Transfer-Encoding", "501", postRequest("{}", "Transfer-Encoding: TOKEN", goodHeader)},
		{"Content-Length", "400", getRequest(harness.PingPath, "Content-Length: TOKEN", goodHeader)},
		{"Expect", "417", getRequest(harness.PingPath, "Expect: TOKEN", goodHeader)},
		{"Content-Type", "415", postRequest("{}", "Content-Type: TOKEN", goodHeader)},
		{"Content-Encoding", "415", postRequest("{}", "Content-Encoding: TOKEN", goodHeader)},
		{"the path", "401", getRequest("/sched/"+harness.Version+"/node/TOKEN", goodHeader)},
		{"a job's number", "401", getRequest("/sched/"+harness.Version+"/job/TOKEN", goodHeader)},
		{"a path that there is not", "404", getRequest("/TOKEN/x", goodHeader)},
		{"the version's place", "404", getRequest("/sched/TOKEN/ping", goodHeader)},
		{"the URL's user", "", getRequest("http://TOKEN@lab"+harness.PingPath, goodHeader)},
		{"the URL's fragment", "", getRequest(harness.PingPath+"#TOKEN", goodHeader)},
		{"a field that there is not", "200", postRequest(l.JobRequest("true", map[string]any{"token": "TOKEN"}), goodHeader)},
		{"a field's name", "200", postRequest(l.JobRequest("true", map[string]any{"TOKEN": 1}), goodHeader)},
		{"beside the job", "422", postRequest(`{"X-SCHED-USER-TOKEN":"TOKEN"}`, goodHeader)},
		{"a number", "422", postRequest(l.JobRequest("true", map[string]any{"tasks": "TOKEN"}), goodHeader)},
		{"a word", "422", postRequest(l.JobRequest("true", map[string]any{"distribution": "TOKEN"}), goodHeader)},
		{"the body", "400", postRequest("TOKEN", goodHeader)},
		{"the body, as YAML", "422", postRequest("TOKEN", "Content-Type: application/yaml", goodHeader)},
		{"a body that breaks off", "400", postRequest(`{"job":{"x":"TOKEN"`, goodHeader)},
		{"the job's environment", "200", postRequest(l.JobRequest("env; cat /proc/self/environ", map[string]any{"environment": []string{"PATH=/usr/bin:/bin", "SCHED_JWT=TOKEN"}}), goodHeader)},
		{"the job's environment in the other spelling", "200", postRequest(l.JobRequest("env", map[string]any{"environment": []string{"SLURM_JWT=TOKEN", "PATH=/usr/bin:/bin"}}), goodHeader)},
		{"the job's environment as an object", "200", postRequest(l.JobRequest("env", map[string]any{"environment": map[string]string{"PATH": "/usr/bin:/bin", "SCHED_JWT": "TOKEN"}}), goodHeader)},
		{"its header, and the job's environment by any name", "200", postRequest(l.JobRequest("env", map[string]any{"environment": []string{"PATH=/usr/bin:/bin", "MINE=TOKEN"}}), "X-SCHED-USER-TOKEN: TOKEN")},
	}
	for _, name := range []string{"X-SCHED-USER-TOKEN", "x-slurm-user-token", "access_token", "token", "jwt", "SCHED_JWT", "slurm_jwt", "colour"} {
		requests = append(requests, tokenRequest{"the query, as " + name, "401", getRequest(harness.PingPath+"?"+name+"=TOKEN", goodHeader)})
	}
	for _, name := range []string{"User-Agent", "Referer", "X-Request-Id", "X-Forwarded-For", "Forwarded", "Via", "Traceparent", "Accept-Language", "If-None-Match", "Range", "From", "Origin"} {
		requests = append(requests, tokenRequest{name, "200", getRequest(harness.PingPath, name+": TOKEN", goodHeader)})
	}
	return requests
}

// render returns the request with the tokens filled in.
func (s tokenRequest) render(token, good string) string {
	text := strings.ReplaceAll(strings.ReplaceAll(s.text, "TOKEN", token), "GOOD", good)
	// Restore the names of headers and variables that contain TOKEN.
	text = strings.ReplaceAll(strings.ReplaceAll(text, "USER-"+token, "USER-TOKEN"), "USER_"+token, "USER_TOKEN")
	if _, body, ok := strings.Cut(text, "\r\n\r\n"); ok {
		text = strings.Replace(text, "LENGTH", fmt.Sprint(len(body)), 1)
	}
	return text
}

// plant puts a token into places where a leaked token could appear. If the
// search missed the planted token, it would prove nothing about other tokens.
// In most places plant uses only the token's signature, which looks like any
// other word. A whole token would be refused or removed there. plant returns
// the number of the job that contains the token, and the argument of the job's
// sleep(1).
func (l *leaks) plant(addresses []string) (job int, sleep string) {
	l.t.Helper()
	token := l.newToken(planted, []byte("a key that is good for nothing.."), time.Hour)
	word := token[strings.LastIndexByte(token, '.')+1:]
	for _, address := range addresses {
		if got := l.send(address, getRequest("/sched/"+harness.Version+"/node/"+word, "X-SCHED-USER-TOKEN: "+l.OwnToken)); got != "404" {
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
	harness.Eventually(l.t, "the planted job runs", func() bool { return harness.CountSleeps(l.t, sleep) == 1 })
	l.answers = append(l.answers, l.Job(job).Text)
	return job, sleep
}

const planted = "planted"

// TestTokensLeak sends tokens in all valid ways and in many invalid ways. It
// sends them to a gateway that has the key, to a gateway that does not, and to
// the daemons. All of these log as verbosely as possible. Afterwards no part of
// a token may be in a log, a file, an answer, a command line, a process's
// environment or a job's output.
func TestTokensLeak(t *testing.T) {
	t.Parallel()
	const verbose = "-vvvvvv"
	l := &leaks{t: t, pieces: map[string]string{}, found: map[string][]string{}}
	l.Lab = harness.NewLab(t, harness.WithOptions([]string{verbose}), func(l *harness.Lab) {
		l.Ctld.Args, l.DBD.Args = append(l.Ctld.Args, "-v"), append(l.DBD.Args, "-v")
	})
	k := l.StartCounted(t)
	var err error
	l.key, err = os.ReadFile(l.Key())
	harness.Must(t, err)
	l.addPieces("the lab's own", l.OwnToken)
	addresses := []string{strings.TrimPrefix(l.URL, "http://"), k.Address}
	job, sleep := l.plant(addresses)

	kinds := []struct {
		name     string
		key      []byte
		lifespan time.Duration
	}{{"good", l.key, time.Hour}, {"forged", []byte("a key that is not the cluster's.."), time.Hour}, {"expired", l.key, -time.Minute}}
	for i, address := range addresses {
		gateway := []string{"with the key", "without"}[i]
		for _, req := range l.tokenRequests() {
			for _, kind := range kinds {
				origin := fmt.Sprintf("%s, %s, gateway %s", req.name, kind.name, gateway)
				got := l.send(address, req.render(l.newToken(origin, kind.key, kind.lifespan), l.OwnToken))
				want := req.status
				if kind.name != "good" && !strings.Contains(req.text, goodHeader) && want != "404" && want != "431" {
					want = "401"
				}
				if got != cmp.Or(want, got) || got == "" {
					t.Errorf("%s: status %q, want %s", origin, got, want)
				}
			}
		}
	}
	for _, kind := range kinds {
		l.sendRPC(kind.name, func(origin string) string {
			return l.newToken(origin+", "+kind.name+", by RPC", kind.key, kind.lifespan)
		})
	}
	harness.Eventually(t, "all jobs but the planted one have ended", func() bool {
		a := l.Request("GET", "/sched/"+harness.Version+"/jobs", "").Want(t, 200)
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
	harness.Eventually(t, "its processes have ended", func() bool { return harness.CountSleeps(t, sleep) == 0 })
	harness.Eventually(t, "the accounting daemon has its record", func() bool {
		l.searchFiles(filepath.Join(l.Dir, "state"))
		return slices.ContainsFunc(l.found[planted], func(place string) bool { return strings.HasPrefix(place, "state/scheddbd.sqlite") })
	})
	k.Stop()
	for _, name := range []string{"schedrestd", "schedctld", "scheddbd"} {
		l.Daemons[name].Stop()
	}
	l.search() // after everything has been written
	l.report(filepath.Base(k.Log))
}

// sendRPC sends tokens directly to both daemons, and also puts tokens into
// fields for user names.
func (l *leaks) sendRPC(kind string, newToken func(origin string) string) {
	ctx := l.t.Context()
	tcp := func(port int) []client.Address {
		return []client.Address{{Name: l.Node, Network: "tcp", Address: fmt.Sprintf("127.0.0.1:%d", port)}}
	}
	ctl := client.New(client.Config{Controllers: tcp(l.Controller)})
	dbd := client.NewAccounting(client.Config{Accounting: tcp(l.Accounting), Cluster: "demo"})
	for origin, call := range map[string]func(cred model.Credential) error{
		"to the controller":        func(cred model.Credential) error { return ctl.Verify(ctx, cred) },
		"to the accounting daemon": func(cred model.Credential) error { return dbd.Verify(ctx, cred) },
		"for a job": func(cred model.Credential) error {
			_, err := ctl.Submit(ctx, cred, &model.JobDesc{Name: "rpc", Script: "#!/bin/sh\nenv\n", WorkDir: model.Text(l.Work), Environment: []string{"PATH=/usr/bin:/bin", "SCHED_JWT=" + cred.Token}})
			return err
		},
	} {
		err := call(model.Credential{Token: newToken(origin)})
		if (err == nil) != (kind == "good") {
			l.t.Errorf("%s, %s: %v", origin, kind, err)
		}
		l.answers = append(l.answers, fmt.Sprint(err))
	}
	_, err := ctl.Token(ctx, model.Credential{Token: l.OwnToken}, newToken("as the user of a new token"), time.Minute)
	l.answers = append(l.answers, fmt.Sprint(err))
	for origin, verify := range map[string]func(cred model.Credential) error{
		"as the name of the user to act as":                      func(cred model.Credential) error { return ctl.Verify(ctx, cred) },
		"as the name of the user to act as, to the other daemon": func(cred model.Credential) error { return dbd.Verify(ctx, cred) },
	} {
		err := verify(model.Credential{Token: l.OwnToken, ActAs: newToken(origin)})
		if err == nil {
			l.t.Errorf("%s: accepted", origin)
		}
		l.answers = append(l.answers, fmt.Sprint(err))
	}
}

// report fails the test if any token except the planted one was found. It also
// fails the test unless the planted token was found in every expected place.
func (l *leaks) report(gateLog string) {
	places := l.found[planted]
	delete(l.found, planted)
	for _, want := range []string{"log/schedrestd", "log/" + gateLog, "log/schedctld", "log/scheddbd", "state/schedctld/", "state/scheddbd.sqlite", "work/sched-",
		"/proc/cmdline", "/proc/environ", "an answer"} {
		if !slices.ContainsFunc(places, func(place string) bool { return strings.HasPrefix(place, want) }) {
			l.t.Errorf("the planted token was not found in %s, only in %q, so the search proves nothing", want, places)
		}
	}
	for origin, foundIn := range l.found {
		l.t.Errorf("a token sent in %s: found in %q", origin, foundIn)
	}
}

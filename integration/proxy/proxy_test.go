package proxy

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/integration/harness"
)

// through sends a request to the address of a front, and returns the answer.
// The headers in way.Adds make it a request of the user.
func through(f *harness.Fronts, t *testing.T, way harness.Front, method, path, body string) harness.Answer {
	t.Helper()
	answers := harness.Exchange(t, way.Address, 2, fmt.Sprintf("%s /sched/%s/%s HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, harness.Version, path, way.Adds, len(body), body))
	if len(answers) != 1 {
		t.Fatalf("%s: %d answers", way.Name, len(answers))
	}
	return answers[0]
}

// tokenBegins is the beginning of every token: {" in base64.
const tokenBegins = "eyJ"

// TestProxy checks that behind proxies configured as in docs/PROXY.md users
// keep their identities in requests, jobs and logs. Logs must also have the
// name of the user whose token the proxy uses. A user without a password must
// be rejected.
func TestProxy(t *testing.T) {
	t.Parallel()
	f := harness.NewFronts(t, "require_user_name")
	for _, way := range f.Ways {
		t.Run(way.Name, func(t *testing.T) {
			if got := through(f, t, way, "GET", "ping", "").CountedAs(); got != "as "+f.User.Name {
				t.Errorf("counted %s", got)
			}
			nobody := way
			if nobody.Adds = ""; way.Proxied {
				nobody.Adds = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(f.User.Name+":guess")) + "\r\n"
			}
			if got := through(f, t, nobody, "GET", "ping", "").CountedAs(); got != "401" {
				t.Errorf("without a password counted %s", got)
			}
			harness.NeedRoot(t)
			a := through(f, t, way, "POST", "job/submit", f.JobRequest("id -un; env", nil))
			if a.CountedAs() != "as "+f.User.Name {
				t.Fatalf("submitted: %s", a.Text)
			}
			id := int(a.Get("job_id").(float64))
			if a := f.AwaitEnd(id); a.Get("jobs", 0, "user_name") != f.User.Name {
				t.Errorf("the job is %v's", a.Get("jobs", 0, "user_name"))
			}
			if got := f.Output(t, id); !strings.HasPrefix(got, f.User.Name+"\n") || strings.Contains(got, tokenBegins) {
				t.Errorf("the job printed:\n%s", got)
			}
			log, err := os.ReadFile(f.Log("schedctld"))
			harness.Must(t, err)
			if !regexp.MustCompile(fmt.Sprintf(`msg="job accepted" job=%d uid=%d (user=%s )?by=%s `, id, f.User.UID, f.User.Name, f.Holder)).Match(log) {
				t.Errorf("schedctld's log does not have the owner of job %d and the user of its token:\n%s", id, log)
			}
		})
	}
	both := f.User.Name + " by " + f.Holder
	if got := f.Gate.ServedAs(); got[both] < len(f.Ways) || len(got) != 1 {
		t.Errorf("according to its log, the gateway served %v, want only %q", got, both)
	}
	if !strings.HasPrefix(f.OwnToken, tokenBegins) || strings.Contains(f.Gate.Logged(), tokenBegins) {
		t.Error("the gateway's log has the token")
	}
}

// TestNameIsNeeded checks that require_user_name refuses a token that may act
// for all users if it comes without a name. This protects against a proxy that
// first adds its headers, and then removes the headers that the client lists in
// Connection. A client could make such a proxy remove the name, and the gateway
// would not see the client's Connection header.
func TestNameIsNeeded(t *testing.T) {
	t.Parallel()
	for name, served := range map[string]bool{"": true, "require_user_name": false} {
		t.Run("SCHEDRESTD_SECURITY="+name, func(t *testing.T) {
			f := harness.NewFronts(t, name)
			address := stripping(f, t)
			ask := func(more string) string {
				answers := harness.Exchange(t, address, 1, "GET /sched/"+harness.Version+"/ping HTTP/1.1\r\nHost: cluster\r\n"+more+"\r\n")
				if len(answers) != 1 {
					t.Fatalf("%d answers", len(answers))
				}
				return answers[0].CountedAs()
			}
			if got := ask("Connection: close\r\n"); got != "as "+f.User.Name {
				t.Errorf("an ordinary request counted %s", got)
			}
			want := "401"
			if served {
				want = "as " + f.Holder // proves that the attack works without the switch
			}
			if got := ask("Connection: close, X-SCHED-USER-NAME\r\n"); got != want {
				t.Errorf("with the name removed it counted %s, want %s", got, want)
			}
			withoutAuthentication(f, t, want)
			if got := f.Gate.ServedAs()[f.Holder] > 0; got != served {
				t.Errorf("served as %s: %v", f.Holder, got)
			}
		})
	}
}

// withoutAuthentication checks nginx without a password prompt. If the client
// claims no name, nginx must send none, and the request then counts as a
// request of the token's owner. If the client claims a name, nginx passes it
// on.
func withoutAuthentication(f *harness.Fronts, t *testing.T, want string) {
	t.Helper()
	before := len(f.Ways)
	f.Nginx(t, "open nginx", harness.Replaced(t, harness.CodeBlock(t, "PROXY.md", "/etc/nginx/conf.d/sched.conf"), `auth_basic cluster;`, `auth_basic off;`))
	if len(f.Ways) == before {
		return
	}
	open := f.Ways[before]
	claimed := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(f.User.Name+":guess")) + "\r\n"
	for adds, want := range map[string]string{"": want, claimed: "as " + f.User.Name} {
		open.Adds = adds
		if got := through(f, t, open, "GET", "ping", "").CountedAs(); got != want {
			t.Errorf("nginx with auth_basic off: with %q it counted %s, want %s", adds, got, want)
		}
	}
}

// stripping starts a proxy that adds headers before it removes those listed in
// Connection, as Go's own proxy does with a Director. It returns the proxy's
// address.
func stripping(f *harness.Fronts, t *testing.T) string {
	t.Helper()
	to, err := url.Parse("http://" + f.Ways[0].Address)
	harness.Must(t, err)
	//lint:ignore SA1019 the test needs a proxy with this fault
	proxy := &httputil.ReverseProxy{Director: func(r *http.Request) {
		r.URL.Scheme, r.URL.Host = to.Scheme, to.Host
		r.Header.Set("X-SCHED-USER-TOKEN", f.OwnToken)
		r.Header.Set("X-SCHED-USER-NAME", f.User.Name)
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	server := &http.Server{Handler: proxy}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return l.Addr().String()
}

// TestUnknownName checks that an answer does not reveal whether a user exists.
// It must equal the answer to any other bad credential, byte for byte except
// for the request's id.
func TestUnknownName(t *testing.T) {
	t.Parallel()
	f := harness.NewFronts(t)
	ask := func(headers ...string) string {
		text := "GET /sched/" + harness.Version + "/node/" + f.Node + " HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
		answers := harness.Exchange(t, f.Ways[0].Address, 1, text)
		if len(answers) != 1 {
			t.Fatalf("%d answers", len(answers))
		}
		a := answers[0]
		for _, own := range []string{"X-Request-Id", "Date"} {
			a.Header.Del(own)
		}
		var out bytes.Buffer
		fmt.Fprintln(&out, a.Status)
		_ = a.Header.Write(&out)
		return out.String() + regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(a.Text, "CLIENT")
	}
	token, name := "X-SCHED-USER-TOKEN: "+f.OwnToken, "X-SCHED-USER-NAME: "
	head, _, _ := strings.Cut(f.OwnToken, ".")
	want := ask("X-SCHED-USER-TOKEN: " + head + ".e30." + strings.Repeat("A", 43))
	if !strings.HasPrefix(want, "401\n") {
		t.Fatalf("a forged token: %s", want)
	}
	for _, headers := range [][]string{
		{token, name + "nobody-has-this-name"},
		{token, name + "4294967295"},
		{token, name + "nobody-has-this-name", name + f.User.Name},
		{token, name + "nobody has this name"},
		{},
	} {
		if diff := cmp.Diff(want, ask(headers...)); diff != "" {
			t.Errorf("%q: (-forged +got):\n%s", headers[max(0, len(headers)-1):], diff)
		}
	}
	if got := ask(token, name+f.User.Name); !strings.HasPrefix(got, "200\n") {
		t.Errorf("a user who exists: %s", got)
	}
}

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

// sendThrough sends a request to a frontend, with the headers that identify the
// user, and returns the answer.
func sendThrough(f *harness.ProxyLab, t *testing.T, frontend harness.Frontend, method, path, body string) harness.Answer {
	t.Helper()
	answers := harness.Exchange(t, frontend.Address, 2, fmt.Sprintf("%s /sched/%s/%s HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, harness.Version, path, frontend.Headers, len(body), body))
	if len(answers) != 1 {
		t.Fatalf("%s: %d answers", frontend.Name, len(answers))
	}
	return answers[0]
}

// tokenBegins is the beginning of every token: {" in base64.
const tokenBegins = "eyJ"

// TestProxy checks proxies that are configured as in deploy/examples. Users must
// keep their identities in requests, jobs and logs. The gateway's log must also name
// the user of the token that the proxy uses. A user without a password must be rejected.
func TestProxy(t *testing.T) {
	t.Parallel()
	f := harness.NewPortalLab(t)
	for _, frontend := range f.Frontends {
		t.Run(frontend.Name, func(t *testing.T) {
			if got := sendThrough(f, t, frontend, "GET", "ping", "").UserOrStatus(); got != "as "+f.User.Name {
				t.Errorf("counted %s", got)
			}
			own := frontend
			if frontend.Proxied && !strings.HasPrefix(frontend.Name, "careless") { // the example removes the headers of clients about users
				own.Headers += "X-SLURM-USER-NAME: " + f.TokenOwner + "\r\nX-SLURM-USER-TOKEN: x.y.z\r\n"
			}
			if got := sendThrough(f, t, own, "GET", "ping", "").UserOrStatus(); got != "as "+f.User.Name {
				t.Errorf("with headers of its own counted %s", got)
			}
			nobody := frontend
			if nobody.Headers = ""; frontend.Proxied {
				nobody.Headers = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(f.User.Name+":guess")) + "\r\n"
			}
			if got := sendThrough(f, t, nobody, "GET", "ping", "").UserOrStatus(); got != "401" {
				t.Errorf("without a password counted %s", got)
			}
			harness.NeedRoot(t)
			a := sendThrough(f, t, frontend, "POST", "job/submit", f.JobRequest("id -un; env", nil))
			if a.UserOrStatus() != "as "+f.User.Name {
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
			if !regexp.MustCompile(fmt.Sprintf(`msg="job accepted" job=%d uid=%d (user=%s )?peer=`, id, f.User.UID, f.User.Name)).Match(log) {
				t.Errorf("schedctld's log does not have the owner of job %d:\n%s", id, log)
			}
		})
	}
	identity := f.User.Name + " by " + f.TokenOwner
	if got := f.Gateway.StopAndCountUsers(); got[identity] < len(f.Frontends) || len(got) != 1 {
		t.Errorf("according to its log, the gateway served %v, want only %q", got, identity)
	}
	if !strings.HasPrefix(f.OwnToken, tokenBegins) || strings.Contains(f.Gateway.Logged(), tokenBegins) {
		t.Error("the gateway's log has the token")
	}
}

// TestNameIsNeeded checks the switch require_user_name. If it is set and a
// request names no user, the gateway must refuse a token that may act for all
// users.
//
// The switch protects against a proxy that first adds its headers, and then
// removes the headers that the client lists in Connection. A client could make
// such a proxy remove the user's name, and the gateway would not see the
// client's Connection header.
func TestNameIsNeeded(t *testing.T) {
	t.Parallel()
	for name, served := range map[string]bool{"": true, "require_user_name": false} {
		t.Run("SCHEDRESTD_SECURITY="+name, func(t *testing.T) {
			f := harness.NewProxyLab(t, name)
			address := startStrippingProxy(f, t)
			send := func(headers string) string {
				answers := harness.Exchange(t, address, 1, "GET /sched/"+harness.Version+"/ping HTTP/1.1\r\nHost: cluster\r\n"+headers+"\r\n")
				if len(answers) != 1 {
					t.Fatalf("%d answers", len(answers))
				}
				return answers[0].UserOrStatus()
			}
			if got := send("Connection: close\r\n"); got != "as "+f.User.Name {
				t.Errorf("an ordinary request counted %s", got)
			}
			want := "401"
			if served {
				want = "as " + f.TokenOwner // proves that the attack works without the switch
			}
			if got := send("Connection: close, X-SCHED-USER-NAME\r\n"); got != want {
				t.Errorf("with the name removed it counted %s, want %s", got, want)
			}
			checkWithoutAuth(f, t, want)
			if got := f.Gateway.StopAndCountUsers()[f.TokenOwner] > 0; got != served {
				t.Errorf("served as %s: %v", f.TokenOwner, got)
			}
		})
	}
}

// checkWithoutAuth checks nginx without a password prompt. If the client claims
// no name, nginx must send none, and the result must be want. If the client
// claims a name, nginx passes the name on.
func checkWithoutAuth(f *harness.ProxyLab, t *testing.T, want string) {
	t.Helper()
	before := len(f.Frontends)
	f.StartNginx(t, "open nginx", harness.Substitute(t, harness.NginxExample(t), `auth_basic cluster;`, `auth_basic off;`))
	if len(f.Frontends) == before {
		return
	}
	frontend := f.Frontends[before]
	claimed := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(f.User.Name+":guess")) + "\r\n"
	for headers, want := range map[string]string{"": want, claimed: "as " + f.User.Name} {
		frontend.Headers = headers
		if got := sendThrough(f, t, frontend, "GET", "ping", "").UserOrStatus(); got != want {
			t.Errorf("nginx with auth_basic off: with %q it counted %s, want %s", headers, got, want)
		}
	}
}

// startStrippingProxy starts a proxy that first adds its headers, and then
// removes the headers that are listed in Connection. Go's own proxy does the
// same if it has a Director. startStrippingProxy returns the proxy's address.
func startStrippingProxy(f *harness.ProxyLab, t *testing.T) string {
	t.Helper()
	target, err := url.Parse("http://" + f.Frontends[0].Address)
	harness.Must(t, err)
	//lint:ignore SA1019 the test needs a proxy with this fault
	proxy := &httputil.ReverseProxy{Director: func(r *http.Request) {
		r.URL.Scheme, r.URL.Host = target.Scheme, target.Host
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
// The answer for an unknown user must equal the answer to any other bad
// credential, except for the request's id, the date and the client's address.
func TestUnknownName(t *testing.T) {
	t.Parallel()
	f := harness.NewProxyLab(t)
	send := func(headers ...string) string {
		text := "GET /sched/" + harness.Version + "/node/" + f.Node + " HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
		answers := harness.Exchange(t, f.Frontends[0].Address, 1, text)
		if len(answers) != 1 {
			t.Fatalf("%d answers", len(answers))
		}
		a := answers[0]
		for _, varying := range []string{"X-Request-Id", "Date"} {
			a.Header.Del(varying)
		}
		var out bytes.Buffer
		fmt.Fprintln(&out, a.Status)
		_ = a.Header.Write(&out)
		return out.String() + regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(a.Text, "CLIENT")
	}
	token, name := "X-SCHED-USER-TOKEN: "+f.OwnToken, "X-SCHED-USER-NAME: "
	head, _, _ := strings.Cut(f.OwnToken, ".")
	want := send("X-SCHED-USER-TOKEN: " + head + ".e30." + strings.Repeat("A", 43))
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
		if diff := cmp.Diff(want, send(headers...)); diff != "" {
			t.Errorf("%q: (-forged +got):\n%s", headers[max(0, len(headers)-1):], diff)
		}
	}
	if got := send(token, name+f.User.Name); !strings.HasPrefix(got, "200\n") {
		t.Errorf("a user who exists: %s", got)
	}
}

package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// pair is two gateways on one machine, which share nothing but the daemons. The
// first also has a UNIX socket that only the proxy's group can use.
type pair struct {
	*harness.ProxyLab
	t        *testing.T
	certFile string
	address  [2]string // HOST:PORT of the https:// listeners
	gateways [2]*harness.Gateway
}

// startPair starts the daemons, the gateways, and the lab's own gateway.
func startPair(t *testing.T) *pair {
	p := newPair(t)
	for i := range p.gateways {
		p.start(i)
	}
	return p
}

// newPair starts only the daemons and the lab's own gateway.
func newPair(t *testing.T) *pair {
	p := &pair{ProxyLab: &harness.ProxyLab{User: harness.OrdinaryUser(t), ProxyUser: "proxy"}, t: t}
	if _, ok := harness.LookupAccount(p.ProxyUser); !ok {
		t.Skip("this machine has no user " + p.ProxyUser)
	}
	p.Lab = harness.NewLab(t, func(l *harness.Lab) {
		id := harness.NewIdentity(t, nil)
		p.certFile = filepath.Join(l.Dir, "etc", "cert.pem")
		key := filepath.Join(l.Dir, "etc", "key.pem")
		harness.Must(t, os.WriteFile(p.certFile, id.CertPEM, 0o644))
		harness.Must(t, os.WriteFile(key, id.KeyPEM, 0o600))
		harness.Must(t, os.WriteFile(filepath.Join(l.Dir, "etc", "site.pem"), append(id.CertPEM, id.KeyPEM...), 0o600))
		l.Extra = "TLSParameters=restd_cert_file=" + p.certFile + ",restd_cert_key_file=" + key + "\nMessageTimeout=300\n" // of a busy machine
	})
	p.AddRegister(t)
	p.Socket = filepath.Join(harness.SocketDir(t, p.Lab), "socket")
	for i := range p.gateways {
		p.address[i] = fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
		harness.Must(t, os.Mkdir(p.keys(i), 0o700))
	}
	return p
}

func (p *pair) keys(i int) string { return filepath.Join(p.Dir, fmt.Sprint("keys", i)) }

// start starts the gateway i, or starts it again.
func (p *pair) start(i int) {
	p.t.Helper()
	args := []string{"https://" + p.address[i]}
	if i == 0 {
		args = []string{"--socket-mode", "0660", "--socket-group", p.ProxyUser, args[0], "unix:" + p.Socket}
	}
	p.gateways[i] = p.Lab.StartGateway(p.t, append(p.env(i), "SCHEDRESTD_DEBUG=debug"), args...)
}

// env returns the variables of the gateway i.
func (p *pair) env(i int) []string {
	return append(p.GatewayEnv(), "SCHEDRESTD_SECURITY=require_user_name", "SCHEDRESTD_IDEMPOTENCY_FILE="+filepath.Join(p.keys(i), "keys"),
		"SCHEDRESTD_TRUSTED_PROXIES=127.0.0.1,unix:"+p.ProxyUser)
}

// haproxy returns the example for HAProxy, with the addresses of the gateways.
func (p *pair) haproxy(tokens string) string {
	return harness.Substitute(p.t, harness.Example(p.t, "haproxy.cfg"), `192\.0\.2\.12:6821`, p.address[1], `/etc/haproxy/gateways\.pem`, p.certFile,
		`gateways\.example\.org`, "localhost", ` :8443 ssl crt /etc/haproxy/site\.pem.*$`, " "+tokens)
}

// nginx does the same for nginx.
func (p *pair) nginx(tokens string) string {
	return harness.Substitute(p.t, harness.Example(p.t, "nginx.conf"), `192\.0\.2\.11:6821`, p.address[0], `192\.0\.2\.12:6821`, p.address[1],
		`/etc/nginx/gateways\.pem`, p.certFile, `gateways\.example\.org`, "localhost", `^\tlisten 8443 ssl.*;$`, "\tlisten "+tokens+";")
}

// visitor is a client of a proxy.
type visitor struct {
	p        *pair
	name     string
	frontend harness.Frontend
	from     string   // its address
	tokens   []string // its tokens, the newest last; empty for a password
}

// send sends a request with the visitor's newest token.
func (v visitor) send(method, path, body string, headers ...string) harness.Answer {
	v.p.t.Helper()
	req, err := http.NewRequest(method, "http://"+v.frontend.Address+"/sched/"+harness.Version+"/"+path, strings.NewReader(body))
	harness.Must(v.p.t, err)
	lines := strings.Split(strings.TrimSpace(v.frontend.Headers), "\r\n")
	if len(v.tokens) > 0 {
		lines = []string{"X-SLURM-USER-TOKEN: " + v.tokens[len(v.tokens)-1]}
	}
	for _, line := range append(lines, headers...) {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	if body != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(v.from)}}
	resp, err := (&http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext}).RoundTrip(req)
	harness.Must(v.p.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	harness.Must(v.p.t, err)
	return harness.Answer{Status: resp.StatusCode, Header: resp.Header, Text: string(text)}
}

// home returns the gateway that has answered a request.
func (p *pair) home(a harness.Answer) (home int) {
	p.t.Helper()
	line := regexp.MustCompile(`msg=request id=` + regexp.QuoteMeta(a.Header.Get("X-Request-Id")) + ` .* id_from=proxy forwarded_for=127\.0\.0\.`)
	harness.Eventually(p.t, "a gateway logs the request, with the client's address", func() bool {
		for home = range p.gateways {
			if line.MatchString(p.gateways[home].Logged()) {
				return true
			}
		}
		return false
	})
	return home
}

// submitted returns the number in the answer to a submission.
func submitted(a harness.Answer) string {
	return regexp.MustCompile(`"job_id":\d+`).FindString(a.Text)
}

// TestTwoGateways checks that the examples for proxies keep what other pages
// promise: with an Idempotency-Key a repeated submission starts no second job,
// not even with another token, or while the user's gateway is down; waits end and
// streams go on; users keep their identity; requests that other sites cause are
// refused; and long bodies and logs arrive.
func TestTwoGateways(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	for _, name := range []string{"haproxy", "nginx"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness.FindProgram(t, name, map[string]string{"haproxy": "haproxy", "nginx": "nginx-light"}[name])
			p := startPair(t)
			tokens := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
			if name == "haproxy" {
				p.StartHAProxy(t, name, p.haproxy(tokens))
			} else {
				p.StartNginx(t, name, p.nginx(tokens))
			}
			own := harness.Frontend{Name: name + " tokens", Address: tokens, Headers: "X-SLURM-USER-TOKEN: " + p.UserToken(p.User.Name) + "\r\n", Proxied: true}
			visitors := []visitor{{p: p, name: "password", frontend: p.Frontends[0], from: "127.0.0.9"}}
			for i, user := range []string{"games", "daemon", "bin", "mail", "games", "daemon"} {
				if _, ok := harness.LookupAccount(user); !ok {
					continue
				}
				v := visitor{p: p, name: user, frontend: own, from: fmt.Sprintf("127.0.0.%d", 2+i)}
				for _, life := range []time.Duration{time.Hour, 2 * time.Hour} {
					token, err := p.Token(t.Context(), user, life)
					harness.Must(t, err)
					v.tokens = append(v.tokens, token)
				}
				visitors = append(visitors, v)
			}
			p.checkKeys(visitors)
			p.checkIdentity(visitors[0], visitors[1])
			for _, frontend := range []harness.Frontend{p.Frontends[0], own} {
				if got := waitThrough(t, frontend, "jobs/?wait=4s"); got != 304 {
					t.Errorf("%s: after a wait: status %d, want 304", frontend.Name, got)
				}
				checkEvents(t, p.ProxyLab, frontend)
				checkForged(p.ProxyLab, t, frontend)
			}
			timeouts := regexp.MustCompile(`(?m)^\s*(?:timeout server|proxy_read_timeout) (\d+)s`).FindAllStringSubmatch(harness.Example(t, map[string]string{"haproxy": "haproxy.cfg", "nginx": "nginx.conf"}[name]), -1)
			for _, m := range timeouts {
				if seconds, _ := strconv.Atoi(m[1]); seconds <= 900 {
					t.Errorf("%s: slurmdbd may take 900 s", m[0])
				}
			}
			if len(timeouts) == 0 {
				t.Error("no timeouts")
			}
		})
	}
}

// checkKeys submits with an Idempotency-Key as each visitor, and repeats this with
// another token, while the visitor's gateway is down, and after its restart.
func (p *pair) checkKeys(visitors []visitor) {
	p.t.Helper()
	body := p.JobRequest("true", map[string]any{"hold": true})
	first, homes := make([]harness.Answer, len(visitors)), map[int]int{}
	for i, v := range visitors {
		key := fmt.Sprint("Idempotency-Key: key of ", i)
		if len(v.tokens) > 0 {
			v.tokens = v.tokens[:1]
		}
		if first[i] = v.send("POST", "job/submit", body, key); first[i].Status != 200 {
			p.t.Fatalf("%s: status %d: %s", v.name, first[i].Status, first[i].Text)
		}
		homes[p.home(first[i])]++
	}
	if len(homes) != 2 {
		p.t.Errorf("the gateways of the users are %v: one has none", homes)
	}
	repeat := func(event string, want func(i int, a harness.Answer) bool) {
		for i, v := range visitors {
			if a := v.send("POST", "job/submit", body, fmt.Sprint("Idempotency-Key: key of ", i)); !want(i, a) {
				p.t.Errorf("%s: %s repeats a submission (%s): status %d, %v\n%s", event, v.name, submitted(first[i]), a.Status, a.Header, a.Text)
			}
		}
	}
	replayed := func(i int, a harness.Answer) bool {
		return a.Status == 200 && a.Header.Get("Idempotency-Replayed") == "true" && submitted(a) == submitted(first[i])
	}
	repeat("with another token", replayed)
	for down := range p.gateways {
		home := make([]int, len(visitors))
		for i := range visitors {
			home[i] = p.home(first[i])
		}
		before := p.gateways[down].Logged() // home searches it
		harness.Must(p.t, p.gateways[down].Stop())
		repeat(fmt.Sprintf("while gateway %d is down", down), func(i int, a harness.Answer) bool {
			return home[i] != down && replayed(i, a) || home[i] == down && a.Status == 503 && a.Header.Get("Retry-After") == "5"
		})
		for _, v := range visitors {
			if a := v.send("GET", "ping", ""); a.Status != 200 {
				p.t.Errorf("while gateway %d is down, %s gets status %d: %s", down, v.name, a.Status, a.Text)
			}
		}
		p.start(down)
		harness.Eventually(p.t, "the gateway is used again", func() bool {
			for i, v := range visitors {
				if home[i] == down && p.home(v.send("GET", "ping", "")) != down {
					return false
				}
			}
			return true
		})
		for i := range visitors {
			if home[i] == down && !strings.Contains(before, first[i].Header.Get("X-Request-Id")) {
				p.t.Error("the first submission is not in the log of its gateway")
			}
		}
		repeat(fmt.Sprintf("after gateway %d was started again", down), replayed)
		for i, v := range visitors { // for the next round, the answers that are in the logs
			if home[i] == down {
				first[i] = v.send("POST", "job/submit", body, fmt.Sprint("Idempotency-Key: key of ", i))
			}
		}
	}
	if got := len(visitors); got != p.countJobs() {
		p.t.Errorf("%d jobs, want %d", p.countJobs(), got)
	}
}

// countJobs returns the number of jobs that the controller has.
func (p *pair) countJobs() int {
	p.t.Helper()
	return len(p.Request("GET", "/sched/"+harness.Version+"/jobs/", "").Want(p.t, http.StatusOK).List("jobs"))
}

// checkIdentity checks that a proxy replaces the identity that a client with a
// password claims, and changes nothing for a client with a token.
func (p *pair) checkIdentity(password, own visitor) {
	p.t.Helper()
	served := func(a harness.Answer) string {
		if a.Status != 200 {
			return strconv.Itoa(a.Status)
		}
		return regexp.MustCompile(`"user": ?"([^"]*)"`).FindStringSubmatch(a.Text)[1]
	}
	for _, tt := range []struct {
		v       visitor
		headers []string
		want    string
	}{
		{password, nil, p.User.Name},
		{password, []string{"X-SLURM-USER-NAME: root"}, p.User.Name},
		{password, []string{"X-SCHED-USER-NAME: root", "X-SCHED-USER-TOKEN: x.y.z"}, p.User.Name},
		{password, []string{"X-SLURM-USER-TOKEN: " + p.OwnToken}, p.User.Name},
		{own, nil, own.name},
		{own, []string{"X-SLURM-USER-NAME: " + own.name}, own.name},
		{own, []string{"X-SLURM-USER-NAME: root"}, "401"},
		{own, []string{"X-SLURM-USER-TOKEN: " + p.OwnToken}, "401"}, // require_user_name
		{own, []string{"X-SLURM-USER-TOKEN: " + p.OwnToken, "X-SLURM-USER-NAME: daemon"}, "daemon"},
		{own, []string{"X-SLURM-USER-TOKEN: x.y.z"}, "401"},
	} {
		if got := served(tt.v.send("GET", "ping", "", tt.headers...)); got != tt.want {
			p.t.Errorf("%s with %.60q is served as %s, want %s", tt.v.name, tt.headers, got, tt.want)
		}
	}
	if id := own.send("GET", "ping", "", "X-Request-Id: of-the-client").Header.Get("X-Request-Id"); id == "" || id == "of-the-client" {
		p.t.Errorf("the request has the id %q", id)
	}
	long := p.JobRequest("true #"+strings.Repeat("x", 1500<<10), map[string]any{"hold": true})
	for _, v := range []visitor{password, own} {
		if a := v.send("POST", "job/submit", long); a.Status != 200 {
			p.t.Errorf("%s submits 1.5 MB: status %d: %.300s", v.name, a.Status, a.Text)
		}
	}
}

// requeueVersion is a version of the API that has a GET that changes something.
const requeueVersion = "v0.0.45"

// checkForged checks that requests that a page of another site has caused are
// refused behind a proxy, and those of the gateway's own page are not.
func checkForged(f *harness.ProxyLab, t *testing.T, frontend harness.Frontend) {
	t.Helper()
	a := sendThrough(f, t, frontend, "POST", "job/submit", f.JobRequest("true", map[string]any{"hold": true}))
	if a.Status != 200 {
		t.Fatalf("%s: submitted: %s", frontend.Name, a.Text)
	}
	job := fmt.Sprint("job/", a.Get("job_id"))
	browser := "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n"
	for _, tt := range []struct {
		method, path, body, headers string
		want                        int
	}{
		{"GET", job + "/requeue", "", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", 403},
		{"GET", job + "/requeue", "", "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n", 403},
		{"GET", job + "/requeue", "", "", 403}, // an old browser, and a page without Referer
		{"GET", job + "/requeue", "", "Referer: https://evil.example.org/\r\n", 403},
		{"POST", job, `{"comment":"x"}`, "Sec-Fetch-Site: cross-site\r\nOrigin: https://evil.example.org\r\nContent-Type: application/json\r\n", 403},
		{"POST", job, `{"comment":"x"}`, "Origin: https://evil.example.org\r\n", 403},
		{"POST", job, `{"comment":"x"}`, "Origin: null\r\nContent-Type: text/plain\r\n", 403},
		{"POST", job, `{"comment":"x"}`, "Origin: http://cluster\r\n", 415},
		{"DELETE", job, "", "Sec-Fetch-Site: same-site\r\nOrigin: https://wiki.example.org\r\n", 403},
		{"POST", job, `{"comment":"x"}`, "Origin: http://cluster\r\nContent-Type: application/json\r\n", 200}, // needs the client's Host
		{"POST", job, `{"comment":"x"}`, "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nOrigin: http://cluster\r\nContent-Type: application/json\r\n", 200},
		{"DELETE", job, "", "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nOrigin: http://cluster\r\n", 200},
	} {
		answers := harness.Exchange(t, frontend.Address, 1, fmt.Sprintf("%s /sched/%s/%s HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\nContent-Length: %d\r\n%s%s%s\r\n%s",
			tt.method, requeueVersion, tt.path, len(tt.body), frontend.Headers, browser, tt.headers, tt.body))
		if len(answers) != 1 || answers[0].Status != tt.want {
			t.Errorf("%s: %s %s with %q: %v, want status %d", frontend.Name, tt.method, tt.path, tt.headers, answers, tt.want)
		}
	}
}

// TestExamplesWithTLS starts the examples with their own lines about TLS and
// HTTP/2, and checks that what a page of another site causes is refused over
// HTTP/2, too.
func TestExamplesWithTLS(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	p := startPair(t)
	own := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	sitePEM := filepath.Join(p.Dir, "etc", "site.pem")
	token := p.UserToken(p.User.Name)
	check := func(t *testing.T) {
		client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		defer client.CloseIdleConnections()
		for site, want := range map[string]int{"cross-site": 403, "same-origin": 200} {
			req, err := http.NewRequest("POST", "https://"+own+"/sched/"+harness.Version+"/job/submit", strings.NewReader(p.JobRequest("true", nil)))
			harness.Must(t, err)
			for name, value := range map[string]string{"Content-Type": "application/json", "X-SLURM-USER-TOKEN": token, "Sec-Fetch-Site": site, "Origin": "https://" + own} {
				req.Header.Set(name, value)
			}
			resp, err := client.Do(req)
			harness.Must(t, err)
			text, _ := io.ReadAll(resp.Body)
			if resp.Body.Close(); resp.StatusCode != want || resp.ProtoMajor != 2 {
				t.Errorf("%s: status %d over %s, want %d: %s", site, resp.StatusCode, resp.Proto, want, text)
			}
		}
	}
	t.Run("haproxy", func(t *testing.T) {
		harness.FindProgram(t, "haproxy", "haproxy")
		p.StartHAProxy(t, "haproxy TLS", harness.Substitute(t, p.haproxy("PORT"), `^\tbind PORT$`, "\tbind "+own+" ssl crt "+sitePEM+" alpn h2,http/1.1"))
		check(t)
	})
	t.Run("nginx", func(t *testing.T) {
		harness.FindProgram(t, "nginx", "nginx-light")
		own = fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
		p.StartNginx(t, "nginx TLS", harness.Substitute(t, p.nginx("PORT"), `^\tlisten PORT;$`,
			"\tlisten "+own+" ssl http2;\n ssl_certificate "+sitePEM+";\n ssl_certificate_key "+sitePEM+";"))
		check(t)
	})
}

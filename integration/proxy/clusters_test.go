package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"schedrestd/bundled/demo/site"
	"schedrestd/integration/harness"
	"schedrestd/internal/socket/sockettest"
)

// A member is one of several clusters on this machine. Its gateway listens where
// schedrestd@NAME.socket would, below the directory run instead of /run.
type member struct {
	*harness.Lab
	name, token string
	gateway     *harness.Gateway
}

// startMember starts a controller and its gateway, which accepts gateway tokens. If
// like is not nil, both clusters have the same key and the same register of tokens.
func startMember(t *testing.T, name, run string, like *member) *member {
	t.Helper()
	m := &member{name: name, Lab: harness.PrepareLab(t)}
	m.Cluster = name
	register := filepath.Join(m.Dir, "tokens")
	if like == nil {
		harness.ReplaceFile(t, register, nil, 0o644)
	} else {
		m.AuthParameters, register = "jwt_key="+like.Key(), filepath.Join(like.Dir, "tokens")
	}
	harness.Must(t, m.Configure())
	m.Up(m.Ctld)
	m.OwnToken = m.UserToken("")
	m.token = m.OwnToken
	dir := filepath.Join(run, "schedrestd@"+name)
	harness.Must(t, os.Mkdir(dir, 0o755))
	m.Restd = m.Schedrestd(harness.Bin, "unix:"+filepath.Join(dir, "socket"))
	m.gateway = m.StartGatewayPart(t, m.Restd, []string{"SCHEDRESTD_PENALTIES=off", "SCHEDRESTD_TOKEN_REGISTER=" + register})
	return m
}

// startClustersProxy starts HAProxy with the example for several clusters, which has
// the clusters a and b. The clusters of the test get the lines of cluster b.
func startClustersProxy(t *testing.T, members []*member, run string) (address string) {
	t.Helper()
	dir := t.TempDir()
	config, clusters, program := filepath.Join(dir, "haproxy.cfg"), filepath.Join(dir, "clusters.map"), harness.FindProgram(t, "haproxy", "haproxy")
	address = fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	text, section, _ := strings.Cut(harness.Example(t, "haproxy-clusters.cfg"), "\nbackend cluster-b\n")
	text, _, _ = strings.Cut(text, "backend cluster-a\n")
	entries := regexp.MustCompile(`(?m)^b\S* b\n`).FindAllString(harness.Example(t, "haproxy-clusters.map"), -1)
	names := ""
	for _, m := range members {
		text += "backend cluster-" + m.name + "\n" + strings.ReplaceAll(section, "@b/", "@"+m.name+"/")
		names += regexp.MustCompile(`\bb\b`).ReplaceAllString(strings.Join(entries, ""), m.name)
	}
	text = harness.Substitute(t, text, ` :443 ssl crt /etc/haproxy/site\.pem.*$`, " "+address, `/etc/haproxy/sched-clusters\.map`, clusters, `unix@/run/`, "unix@"+run+"/")
	harness.Must(t, os.WriteFile(config, []byte("global\n\tmaxconn 500\n\n"+text), 0o600))
	harness.Must(t, os.WriteFile(clusters, []byte(names), 0o600))
	members[0].StartProgram(t, "haproxy", address, program, "-db", "-f", config)
	return address
}

// askCluster sends a request through the proxy, and returns the status and the name
// of the cluster in the answer.
func askCluster(t *testing.T, address, host, path, token string) (status int, cluster any) {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+address+path, nil)
	harness.Must(t, err)
	req.Host = host
	if token != "" {
		req.Header.Set("X-SCHED-USER-TOKEN", token)
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // follows no redirect
	harness.Must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	harness.Must(t, err)
	a := harness.Answer{Status: resp.StatusCode}
	if json.Unmarshal(text, &a.Body) == nil {
		cluster = a.Get("meta", "sched", "cluster")
	}
	return a.Status, cluster
}

// TestClusters starts several clusters (their number is in CLUSTERS) behind the
// example for HAProxy. The host name or the path must lead to the right cluster, which
// must refuse the tokens of the others. A request for a cluster whose gateway is down
// must not reach another one.
func TestClusters(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	harness.FindProgram(t, "haproxy", "haproxy")
	count := 3
	if text := os.Getenv("CLUSTERS"); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		harness.Must(t, err)
	}
	run := sockettest.Dir(t)
	harness.Must(t, os.Chmod(run, 0o755))
	members := []*member{startMember(t, "first", run, nil)}
	members = append(members, startMember(t, "twin", run, members[0]))
	for i := len(members); i < count; i++ {
		members = append(members, startMember(t, fmt.Sprint("c", i), run, nil))
	}
	address := startClustersProxy(t, members, run)
	const jobs = "/sched/" + harness.Version + "/jobs"
	want := func(what string, host, path, token string, status int, cluster any) {
		t.Helper()
		if gotStatus, gotCluster := askCluster(t, address, host, path, token); gotStatus != status || gotCluster != cluster {
			t.Errorf("%s: %d from cluster %v, want %d from %v", what, gotStatus, gotCluster, status, cluster)
		}
	}
	for i, m := range members {
		host, other := m.name+".sched.example.org", members[len(members)-1] // which has another key
		if i > 1 {
			other = members[0]
		}
		harness.Eventually(t, "the proxy finds the gateway of "+m.name, func() bool {
			status, _ := askCluster(t, address, host, "/readyz", "")
			return status == 200
		})
		want(m.name+" by its host", host, jobs, m.token, 200, m.name)
		want(m.name+" by its host and port", strings.ToUpper(host)+":8443", jobs, m.token, 200, m.name)
		want(m.name+" by its path", "sched.example.org", "/clusters/"+m.name+jobs, m.token, 200, m.name)
		want(m.name+" by its path without a slash", address, "/clusters/"+m.name, "", 302, nil)
		want("the path of another cluster, with the host of "+m.name, host, "/clusters/"+other.name+jobs, m.token, 404, m.name)
		want("the token of "+m.name+" at "+other.name, other.name+".sched.example.org", jobs, m.token, 401, other.name)
		want("the token of "+m.name+" at "+other.name+" by its path", address, "/clusters/"+other.name+jobs, m.token, 401, other.name)
	}
	for _, path := range []string{jobs, "/clusters/" + jobs, "/clusters/nowhere" + jobs, "/clusters/%66irst" + jobs, "//clusters/first" + jobs, "/clusters"} {
		want(path+" of no cluster", "nowhere.example.org", path, members[0].token, 404, nil)
	}

	// The name of the cluster in a gateway token decides even if the clusters have
	// the same key and the same register.
	first, twin := members[0], members[1]
	out, err := exec.Command(filepath.Join(harness.Bin, "schedctl"), "-f", first.Conf(), "token", "create", "--scope", "compute.read", "--user", first.Owner,
		"--for", "1h", "--register", filepath.Join(first.Dir, "tokens")).Output()
	harness.Must(t, err)
	_, token, _ := strings.Cut(strings.TrimSpace(string(out)), "=")
	harness.Eventually(t, "the gateway accepts its token", func() bool {
		status, _ := askCluster(t, address, "first.sched.example.org", jobs, token)
		return status == 200
	})
	want("the gateway token of first at twin", "twin.sched.example.org", jobs, token, 401, "twin")

	checkSchedctl(t, members, address)
	harness.Must(t, twin.gateway.Stop())
	harness.Eventually(t, "the proxy misses the gateway", func() bool {
		status, _ := askCluster(t, address, "twin.sched.example.org", jobs, twin.token)
		return status == 503
	})
	want("first, while twin is down", "first.sched.example.org", jobs, first.token, 200, "first")
}

// checkSchedctl checks that schedctl finds each cluster in the file of clusters.
func checkSchedctl(t *testing.T, members []*member, address string) {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "clusters")
	var lines string
	for _, m := range members {
		token := filepath.Join(home, m.name+".token")
		harness.Must(t, site.WritePrivate(token, m.token))
		lines += fmt.Sprintf("%s http://%s/clusters/%s ~/%s.token\n", m.name, address, m.name, m.name)
	}
	harness.Must(t, os.WriteFile(file, []byte(lines), 0o644))
	for i, m := range members {
		cmd := exec.Command(filepath.Join(harness.Bin, "schedctl"), "ping")
		cmd.Env = []string{"HOME=" + home, "SCHED_CLUSTERS_FILE=" + file, "SCHED_CLUSTER=" + m.name, "SCHED_JWT=" + members[(i+1)%len(members)].token}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), " UP ") || !strings.HasSuffix(string(out), "/clusters/"+m.name+"\n") {
			t.Errorf("%s: %v\n%s", m.name, err, out)
		}
	}
}

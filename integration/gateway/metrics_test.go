package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// scrapeMetrics fetches the metrics. It returns a map from the name and labels
// of each sample to its value, and the whole text of the answer.
func scrapeMetrics(t *testing.T, network, address string) (map[string]float64, string) {
	t.Helper()
	c := harness.NewClient(func() (net.Conn, error) { return net.Dial(network, address) })
	resp, err := c.Get("http://localhost/metrics")
	harness.Must(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	harness.Must(t, err)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, raw)
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, number, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if number == "" {
			name, number, _ = strings.Cut(name, " ")
		} else {
			name += "}"
		}
		if values[name], err = strconv.ParseFloat(number, 64); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	return values, string(raw)
}

// TestMetrics checks that each counter is the sum over all workers. No counter
// may decrease when a worker is killed, when all workers are replaced, or when
// the exporter is killed. Metrics must contain no secrets.
func TestMetrics(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	address, rest := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	g := l.StartGateway(t, []string{"SCHEDRESTD_METRICS=" + address}, rest)
	g.Eventually(t, "the exporter runs", func() bool { return strings.Contains(g.Logged(), "exporter ready") })
	const requests = `schedrestd_http_requests_total{method="GET",route="/sched/ping",status="200",version="` + harness.Version + `"}`
	last := map[string]float64{}
	requestsSent := 0.
	checkCounts := func(after string) string {
		t.Helper()
		for range 5 {
			g.CheckServes(rest)
			requestsSent++
		}
		var text string
		harness.Eventually(t, "all requests are counted after "+after, func() bool {
			var now map[string]float64
			now, text = scrapeMetrics(t, "tcp", address)
			for name, n := range last {
				if base, _, _ := strings.Cut(name, "{"); strings.HasSuffix(base, "_total") && now[name] < n {
					t.Fatalf("after %s: %s went from %v to %v", after, name, n, now[name])
				}
			}
			last = now
			return now[requests] >= requestsSent
		})
		if last[requests] != requestsSent {
			t.Fatalf("after %s: %v requests, %v were sent", after, last[requests], requestsSent)
		}
		return text
	}
	text := checkCounts("the start")
	for _, pid := range g.Workers() {
		harness.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	g.Eventually(t, "new workers", func() bool { return strings.Count(g.Logged(), "worker ready") >= 4 })
	checkCounts("workers were killed")
	if died := last[`schedrestd_workers_exited_total{cause="died"}`]; died != 2 {
		t.Errorf("%v workers were killed", died)
	}
	harness.Must(t, syscall.Kill(g.PID(), syscall.SIGHUP))
	g.Eventually(t, "a reload", func() bool { return strings.Contains(g.Logged(), "configuration reloaded") })
	checkCounts("a reload")
	if n := last["schedrestd_generations_total"]; n != 2 {
		t.Errorf("%v generations", n)
	}
	pid := harness.DescendantNamed(t, g.PID(), "schedrestd-expo")
	status := harness.StatusOf(t, pid)
	if os.Geteuid() == 0 {
		worker := harness.StatusOf(t, g.Workers()[0])
		if status["Uid"] == worker["Uid"] || strings.HasPrefix(status["Uid"], "0") || strings.Trim(status["CapEff"], "0") != "" {
			t.Errorf("exporter: Uid %q, CapEff %q; worker: Uid %q", status["Uid"], status["CapEff"], worker["Uid"])
		}
	}
	if status["Seccomp"] != "2" || status["NoNewPrivs"] != "1" {
		t.Errorf("Seccomp %q, NoNewPrivs %q", status["Seccomp"], status["NoNewPrivs"])
	}
	harness.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	g.Eventually(t, "another exporter", func() bool { return strings.Count(g.Logged(), "exporter ready") == 2 })
	text += checkCounts("the exporter was killed")
	a := l.Request("GET", "/sched/"+harness.Version+"/ping", "")
	for kind, secret := range map[string]string{"the name of a user": fmt.Sprint(a.Get("meta", "client", "user")), "a token": l.OwnToken, "an address": "127.0.0.1"} {
		if secret == "" || secret == "<nil>" {
			t.Errorf("%s is not known to the test", kind)
		} else if strings.Contains(text, secret) {
			t.Errorf("%s is in the metrics", kind)
		}
	}
}

// TestReloadRejected checks that the service manager and the metrics report a
// rejected reload until another one succeeds.
func TestReloadRejected(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: fmt.Sprintf("@schedrestd-%d-%s", os.Getpid(), t.Name()), Net: "unixgram"})
	harness.Must(t, err)
	defer manager.Close()
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	g := l.StartGateway(t, []string{"SCHEDRESTD_METRICS=" + address, "NOTIFY_SOCKET=" + manager.LocalAddr().String()}, fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)))
	g.Eventually(t, "the exporter runs", func() bool { return strings.Contains(g.Logged(), "exporter ready") })
	good, err := os.ReadFile(l.Conf())
	harness.Must(t, err)
	const kept = "reload failed, old configuration kept: "
	for i, tt := range []struct {
		name, text string
		status     []string // of systemctl
		rejected   float64
	}{
		{"a wrong value", string(good) + "\nSchedctldPort=none\n", []string{kept, ": SchedctldPort: want a port"}, 1},
		{"two mistakes, and a line that would be another assignment", string(good) + "\nSchedctldPort=none\nREADY=1\nMessageTimeout=-1", []string{kept, "SchedctldPort", "MessageTimeout"}, 1},
		{"UTF-16", "\xff\xfeC\x00l\x00", []string{kept, "it looks like UTF-16, but must be UTF-8 or ASCII"}, 1},
		{"mended", string(good), []string{""}, 0},
	} {
		harness.Must(t, os.WriteFile(l.Conf(), []byte(tt.text), 0o600))
		harness.Must(t, syscall.Kill(g.PID(), syscall.SIGHUP))
		for reloading := false; ; {
			buf := make([]byte, 8192)
			harness.Must(t, manager.SetReadDeadline(time.Now().Add(2*time.Minute)))
			n, err := manager.Read(buf)
			harness.Must(t, err)
			state := string(buf[:n])
			reloading = reloading || strings.HasPrefix(state, "RELOADING=1")
			status, ready := strings.CutPrefix(state, "READY=1\nSTATUS=")
			if !ready || !reloading {
				continue // of the start
			}
			for _, want := range tt.status {
				if !strings.Contains(status, want) || (want == "") != (status == "") || strings.Contains(status, "\n") {
					t.Errorf("%s: status %q, want %q", tt.name, status, want)
				}
			}
			break
		}
		harness.Eventually(t, fmt.Sprintf("the metric after %d, %s", i, tt.name), func() bool {
			now, _ := scrapeMetrics(t, "tcp", address)
			n, ok := now["schedrestd_reload_rejected"]
			return ok && n == tt.rejected
		})
	}
}

// TestWatchMetrics checks the metrics, and the counters in the log, of a request
// that waits for a change, and of two streams of events, which share a reader.
func TestWatchMetrics(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	address, rest := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	g := l.StartGateway(t, []string{"SCHEDRESTD_METRICS=" + address, "SCHEDRESTD_WATCH_INTERVAL=100ms"}, "-t1", rest)
	g.Eventually(t, "the exporter runs", func() bool { return strings.Contains(g.Logged(), "exporter ready") })
	l.URL = "http://" + rest
	url := l.URL + "/sched/" + harness.Version + "/"
	send := func(ctx context.Context, path string, header ...string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
		harness.Must(t, err)
		r.Header.Set("X-SCHED-USER-TOKEN", l.OwnToken)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		harness.Must(t, err)
		return resp
	}
	shows := func(when string, want map[string]float64) {
		t.Helper()
		var now map[string]float64
		harness.Eventually(t, "the metrics "+when, func() bool {
			now, _ = scrapeMetrics(t, "tcp", address)
			for name, n := range want {
				if now["schedrestd_"+name] != n {
					return false
				}
			}
			return true
		})
	}
	some := func(when string, names ...string) {
		t.Helper()
		harness.Eventually(t, "the metrics "+when, func() bool {
			now, _ := scrapeMetrics(t, "tcp", address)
			for _, name := range names {
				if now["schedrestd_"+name] == 0 {
					return false
				}
			}
			return true
		})
	}
	const query = "jobs?fields=job_id,comment"
	current := send(t.Context(), query)
	current.Body.Close()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var streams []*http.Response
	for range 2 {
		streams = append(streams, send(ctx, query, "Accept", "text/event-stream"))
	}
	answered := make(chan *http.Response)
	go func() { answered <- send(t.Context(), query+"&wait=60s", "If-None-Match", current.Header.Get("ETag")) }()
	shows("while they wait", map[string]float64{"watch_requests": 1, "watch_streams": 2, "watch_readers": 1, "watch_connections": 3, "slots_used": 0,
		"http_requests_in_flight": 3, `watch_events_total{kind="snapshot"}`: 2})
	some("of the reader", `watch_reads_total{result="unchanged"}`, "watch_rpc_saved_total", `rpc_reused_total{reason="kept"}`, "watch_connections_max")
	harness.Must(t, syscall.Kill(g.PID(), syscall.SIGUSR1))
	harness.Eventually(t, "the counters in the log", func() bool {
		return strings.Contains(g.Logged(), "connections.watching=3 ") && strings.Contains(g.Logged(), "watch.requests=3 ")
	})
	l.Submit("sleep 60", map[string]any{"hold": true})
	resp := <-answered
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the request that waits: %s", resp.Status)
	}
	shows("after a change", map[string]float64{"watch_requests": 0, "watch_streams": 2, `watch_waits_total{result="changed"}`: 1,
		`watch_waits_total{result="timeout"}`: 0, "watch_wakes_total": 1, `watch_events_total{kind="added"}`: 2})
	leave()
	for _, s := range streams {
		s.Body.Close()
	}
	shows("after the end", map[string]float64{"watch_streams": 0, "watch_readers": 0, "watch_connections": 0, "http_requests_in_flight": 0})
}

// TestMetricsSocket checks that metrics can also be served on a UNIX socket,
// and that the socket is removed when the gateway exits.
func TestMetricsSocket(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	path := filepath.Join(harness.SocketDir(t, l), "metrics")
	g := l.StartGateway(t, nil, "--metrics", "unix:"+path, "--socket-mode", "0660", fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)))
	g.Eventually(t, "the exporter runs", func() bool { return strings.Contains(g.Logged(), "exporter ready") })
	if values, _ := scrapeMetrics(t, "unix", path); values["schedrestd_slots"] != 124 {
		t.Errorf("%v slots", values["schedrestd_slots"])
	}
	info, err := os.Stat(path)
	harness.Must(t, err)
	if info.Mode().Perm() != 0o660 {
		t.Errorf("mode %s", info.Mode())
	}
	g.Stop()
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket was not removed when the gateway exited")
	}
}

// TestMetricsAddress checks that an invalid address is refused.
func TestMetricsAddress(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	defer busy.Close()
	for address, want := range map[string]string{
		"https://127.0.0.1:9820": "without TLS", "nonsense": "metrics", busy.Addr().String(): "listen on",
	} {
		if log := l.FailsToStart(t, nil, nil, append(l.Restd.Args[:len(l.Restd.Args)-1:len(l.Restd.Args)-1], "--metrics", address, "127.0.0.1:0")...); !strings.Contains(log, want) {
			t.Errorf("%s: %s", address, log)
		}
	}
}

// TestQueries runs a real Prometheus, which scrapes a gateway under load. The
// queries of the dashboards must return results. The metrics in the alert rules
// must exist, and Prometheus must be able to evaluate the rules.
func TestQueries(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("needs prometheus: apt-get install prometheus")
	}
	l := harness.NewDaemons(t)
	address, rest := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	l.StartGateway(t, nil, "--metrics", address, rest)
	examples, err := filepath.Abs("../../deploy/examples")
	harness.Must(t, err)
	dir := t.TempDir()
	conf := harness.Substitute(t, readFile(t, filepath.Join(examples, "prometheus.yml")), "127.0.0.1:9820", address)
	token := filepath.Join(dir, "token")
	harness.Must(t, os.WriteFile(token, []byte(l.OwnToken), 0o600))
	conf = harness.Substitute(t, conf, "/etc/prometheus/slurm.token", token, "127.0.0.1:6820", rest, "scrape_interval: 60s", "scrape_interval: 500ms")
	conf = "global: {scrape_interval: 500ms, evaluation_interval: 1s}\n" + conf
	harness.Must(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(conf), 0o644))
	harness.Must(t, os.WriteFile(filepath.Join(dir, "prometheus-alerts.yml"), []byte(readFile(t, filepath.Join(examples, "prometheus-alerts.yml"))), 0o644))
	web := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	cmd := exec.CommandContext(t.Context(), program, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+web)
	var log strings.Builder
	cmd.Stderr = &log
	harness.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // t.Context() has ended before this call, so Prometheus is killed
	load, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for load.Err() == nil {
			for _, path := range []string{"/sched/" + harness.Version + "/jobs", "/sched/" + harness.Version + "/nodes", "/nowhere", "/healthz"} {
				req, _ := http.NewRequestWithContext(load, http.MethodGet, "http://"+rest+path, nil)
				req.Header.Set("X-SCHED-USER-TOKEN", l.OwnToken)
				if resp, err := http.DefaultClient.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}
		}
	}()
	query := func(expr string) (n int, err error) {
		resp, err := http.Get("http://" + web + "/api/v1/query?query=" + url.QueryEscape(expr))
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		var answer struct {
			Status, Error string
			Data          struct{ Result []any }
		}
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			return 0, err
		}
		if answer.Status != "success" {
			return 0, errors.New(answer.Error)
		}
		return len(answer.Data.Result), nil
	}
	harness.Eventually(t, "Prometheus has a rate", func() bool {
		n, err := query(`rate(schedrestd_http_requests_total{route="/sched/jobs",status="200"}[10s]) > 0`)
		return err == nil && n > 0
	})
	harness.Eventually(t, "Prometheus has the cluster's nodes", func() bool {
		n, err := query(`slurm_nodes{job="schedrestd-cluster"} == 1 and rate(slurm_nodes[10s]) == 0`)
		return err == nil && n == 1
	})
	for file, instance := range map[string]string{"grafana-dashboard.json": address, "grafana-cluster.json": rest} {
		for _, expr := range queries(t, readFile(t, filepath.Join(examples, file))) {
			expr = strings.NewReplacer("$__rate_interval", "10s", "$instance", instance).Replace(expr)
			n, err := query(expr)
			if err != nil || n == 0 && !strings.Contains(expr, "rpc_errors_total") && !strings.Contains(expr, "cluster_gres") { // these have no results, because no daemon fails and there is no GRES
				t.Errorf("%s: %d results, %v", expr, n, err)
			}
		}
	}
	// The metrics in the conditions of the alerts must exist, and no alert may
	// fire for this gateway.
	if n, err := query(`ALERTS{alertname=~"Schedrestd.*",alertstate="firing"}`); err != nil || n > 0 {
		t.Errorf("%d alerts, %v", n, err)
	}
	for _, line := range strings.Split(readFile(t, filepath.Join(examples, "prometheus-alerts.yml")), "\n") {
		for _, name := range regexp.MustCompile(`(schedrestd|slurm)_[a-z_]+`).FindAllString(line, -1) {
			if name == "schedrestd_rpc_errors_total" {
				continue
			}
			if n, err := query(name); err != nil || n == 0 {
				t.Errorf("%s, of an alert: %d results, %v", name, n, err)
			}
		}
	}
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	harness.Eventually(t, "all rules are evaluated", func() bool {
		resp, err := http.Get("http://" + web + "/api/v1/rules")
		harness.Must(t, err)
		defer resp.Body.Close()
		harness.Must(t, json.NewDecoder(resp.Body).Decode(&rules))
		for _, g := range rules.Data.Groups {
			for _, r := range g.Rules {
				if r.Health != "ok" {
					return false
				}
			}
		}
		return len(rules.Data.Groups) > 0
	})
}

// TestAlerts checks that the alert rules for the cluster fire when they should,
// and not otherwise.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs promtool: apt-get install prometheus")
	}
	if out, err := exec.Command(promtool, "test", "rules", "testdata/alerts.yml").CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// queries returns the queries of a dashboard.
func queries(t *testing.T, dashboard string) (list []string) {
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	harness.Must(t, json.Unmarshal([]byte(dashboard), &d))
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			list = append(list, target.Expr)
		}
	}
	if len(list) < 20 {
		t.Fatalf("%d queries", len(list))
	}
	return list
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	harness.Must(t, err)
	return string(raw)
}

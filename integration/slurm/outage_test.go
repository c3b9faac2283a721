package slurm

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// maxDuration is the maximum duration of a request, whatever happens to the
// daemons. It includes the time that the gateway gives a controller to answer.
// This time is 10 seconds unless MessageTimeout sets another limit.
const maxDuration = 45 * time.Second

// signal sends a daemon of the cluster a signal.
func (m *machine) signal(t *testing.T, name, signal string) {
	t.Helper()
	m.run(t, "root", "pkill", "-"+signal, "-x", name)
	if signal != "STOP" {
		return
	}
	eventually(t, name+" has stopped", func() bool { // each of its threads
		for _, state := range strings.Fields(m.run(t, "root", "ps", "-L", "-C", name, "-o", "state=")) {
			if state != "T" {
				return false
			}
		}
		return true
	})
}

// restart starts a daemon of the cluster again.
func (m *machine) restart(t *testing.T, name string) {
	t.Helper()
	_, err := m.script("start", name)
	must(t, err)
}

// requestStatus returns the status of an answer and the code of its first
// error. It fails the test when the answer takes too long.
func requestStatus(t *testing.T, c *http.Client, path, token string) (int, string) {
	t.Helper()
	start := time.Now()
	var headers []string
	if token != "" {
		headers = append(headers, "X-SLURM-USER-TOKEN: "+token)
	}
	a, err := sendRequest(c, "GET", path, "", headers...)
	must(t, err)
	if elapsed := time.Since(start); elapsed > maxDuration {
		t.Errorf("%s took %v", path, elapsed)
	}
	var body struct{ Errors []struct{ Code string } }
	if err := json.Unmarshal(a.body, &body); err != nil {
		t.Fatalf("%s: status %d, %v: %.300s", path, a.status, err, a.body)
	}
	if a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "" {
		t.Errorf("%s: status 503 without Retry-After", path)
	}
	if len(body.Errors) == 0 {
		return a.status, ""
	}
	return a.status, body.Errors[0].Code
}

// descriptors returns the number of files and sockets that the gateway's
// processes have open.
func (d *daemon) descriptors(t *testing.T) int {
	t.Helper()
	const count = `for p in $1 $(pgrep -P $1); do ls /proc/$p/fd; done | wc -l`
	n, err := strconv.Atoi(d.m.run(t, "root", "sh", "-c", count, "sh", d.pid))
	must(t, err)
	if n < 10 {
		t.Fatalf("the gateway has %d descriptors: they were not found", n)
	}
	return n
}

// TestOutage kills the daemons, or suspends them with SIGSTOP, while a gateway
// continues to run. During each outage, requests must get the expected status
// within the time limit, and requests that do not need the daemon must succeed.
// After the outage, the gateway must serve requests again without intervention.
// At the end, the gateway must not have more open descriptors than before.
func TestOutage(t *testing.T) {
	m := useCluster(t)
	// By default, a request waits for 15 minutes for a slurmdbd that is connected, but does not answer.
	gateway := m.start(t, "gateway", gatewaySocket, []string{"SLURM_JWT=daemon", "SCHEDRESTD_ACCOUNTING_TIMEOUT=15s"},
		"/opt/gateway/schedrestd", "-v", "-f", m.conf(), "-u", "nobody", "-g", "nogroup", "unix:"+gatewaySocket)
	c := m.client(gatewaySocket)
	const jobs, accounts = "/slurm/v0.0.42/jobs", "/slurmdb/v0.0.42/accounts"
	want := func(t *testing.T, path string, want int) {
		t.Helper()
		if got, code := requestStatus(t, c, path, m.token); got != want {
			t.Errorf("%s: status %d (%s), want %d", path, got, code, want)
		}
	}
	awaitServed := func(t *testing.T, path string) {
		t.Helper()
		eventually(t, path+" is answered again", func() bool {
			got, _ := requestStatus(t, c, path, m.token)
			return got == http.StatusOK
		})
	}
	awaitServed(t, jobs)
	awaitServed(t, accounts)
	useAllWorkers := func() {
		t.Helper()
		for range 20 { // enough requests for each worker to open its permanent descriptors
			client := m.client(gatewaySocket)
			for _, path := range []string{jobs, accounts} {
				if got, code := requestStatus(t, client, path, m.token); got != http.StatusOK {
					t.Errorf("%s: status %d (%s)", path, got, code)
				}
			}
			client.CloseIdleConnections()
		}
	}
	useAllWorkers()
	before := gateway.descriptors(t)
	defer func() { // after the subtests
		useAllWorkers()
		var after int
		eventually(t, "the gateway has as few descriptors as before", func() bool {
			after = gateway.descriptors(t)
			return after <= before
		})
		t.Logf("%d descriptors before the outages, %d after", before, after)
	}()

	t.Run("slurmctld is killed", func(t *testing.T) {
		m.signal(t, "slurmctld", "KILL")
		want(t, jobs, http.StatusServiceUnavailable)
		a, err := sendRequest(c, "POST", "/slurm/v0.0.42/job/submit", submission("/dev/null"), "X-SLURM-USER-TOKEN: "+m.token)
		if err != nil || a.status != http.StatusServiceUnavailable {
			t.Errorf("submit: %v, status %d: %.300s", err, a.status, a.body)
		}
		a, err = sendRequest(c, "GET", "/slurm/v0.0.42/ping", "", "X-SLURM-USER-TOKEN: "+m.token)
		if err != nil || !strings.Contains(string(a.body), "DOWN") && a.status == http.StatusOK {
			t.Errorf("ping: %v, status %d: %.300s", err, a.status, a.body)
		}
		m.restart(t, "slurmctld")
		awaitServed(t, jobs)
	})
	t.Run("slurmctld is stopped", func(t *testing.T) {
		m.signal(t, "slurmctld", "STOP")
		defer func() {
			m.signal(t, "slurmctld", "CONT")
			awaitServed(t, jobs)
		}()
		got, code := requestStatus(t, c, jobs, m.token)
		if got != http.StatusServiceUnavailable && got != http.StatusGatewayTimeout && got != http.StatusBadGateway {
			t.Errorf("status %d (%s)", got, code)
		}
	})
	t.Run("slurmdbd is killed", func(t *testing.T) {
		m.signal(t, "slurmdbd", "KILL")
		want(t, accounts, http.StatusServiceUnavailable)
		want(t, jobs, http.StatusOK)
		m.restart(t, "slurmdbd")
		awaitServed(t, accounts)
	})
	t.Run("slurmdbd is stopped", func(t *testing.T) {
		m.signal(t, "slurmdbd", "STOP")
		defer func() {
			m.signal(t, "slurmdbd", "CONT")
			awaitServed(t, accounts)
		}()
		got, code := requestStatus(t, c, accounts, m.token)
		if got != http.StatusServiceUnavailable && got != http.StatusGatewayTimeout && got != http.StatusBadGateway {
			t.Errorf("status %d (%s)", got, code)
		}
		want(t, jobs, http.StatusOK)
	})
	t.Run("munged is killed", func(t *testing.T) {
		m.signal(t, "munged", "KILL")
		want(t, jobs, http.StatusOK) // a token does not need munged
		m.restart(t, "munged")
		awaitServed(t, jobs)
	})
}

// TestMungedOutage checks an outage of munged. Users whom munged verifies must
// get 503 during the outage, and be served again afterwards.
func TestMungedOutage(t *testing.T) {
	m := useCluster(t)
	alice := users[0]
	m.gateway(t, "-u", alice.name, "-g", alice.name, "-a", "rest_auth/local")
	c := m.clientAs(alice.id, alice.id, gatewaySocket)
	requestJobs := func() int {
		got, _ := requestStatus(t, c, "/slurm/v0.0.42/jobs", "")
		return got
	}
	eventually(t, "the gateway answers", func() bool { return requestJobs() == http.StatusOK })
	m.signal(t, "munged", "KILL")
	if got := requestJobs(); got != http.StatusServiceUnavailable {
		t.Errorf("without munged: status %d, want 503", got)
	}
	m.restart(t, "munged")
	eventually(t, "service returns", func() bool { return requestJobs() == http.StatusOK })
}

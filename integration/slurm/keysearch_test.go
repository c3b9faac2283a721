package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/api"
)

// TestKeySearch submits jobs with Idempotency-Keys through two gateways that share nothing,
// while one of them is killed again and again, and repeats each submission at both until
// it is answered. For each key there must be one job in slurmdbd, and all answers must name
// it. SLURM_KEYS is the number of keys.
func TestKeySearch(t *testing.T) {
	m := freshCluster(t)
	keys := 60
	if n, err := strconv.Atoi(os.Getenv("SLURM_KEYS")); err == nil {
		keys = n
	}
	gateways := [2]*daemon{}
	var clients [2]*http.Client
	begin := func(i int) {
		t.Helper()
		name := fmt.Sprint("gateway", i)
		socket := "/run/" + name + ".sock"
		gateways[i] = m.start(t, name, socket, []string{"SLURM_JWT=daemon", "SCHEDRESTD_IDEMPOTENCY_SEARCH=on", "SCHEDRESTD_IDEMPOTENCY_FILE=/var/log/" + name + ".keys"},
			"/opt/gateway/schedrestd", "-v", "-f", m.conf(), "-u", "nobody", "-g", "nogroup", "unix:"+socket)
		if clients[i] == nil {
			clients[i] = m.client(socket)
		}
	}
	for i := range gateways {
		must(t, os.RemoveAll(filepath.Join(m.root, "var/log", fmt.Sprint("gateway", i, ".keys"))))
		begin(i)
	}
	alice, err := m.createToken("alice")
	must(t, err)
	token := "X-SLURM-USER-TOKEN: " + alice
	send := func(gateway int, name, key string) (status int, job, code string, replayed bool) {
		body := fmt.Sprintf(`{"job": {"name": %q, "script": "#!/bin/sh\nexec true", "current_working_directory": "/tmp", "environment": ["A=b"], "standard_output": "/dev/null"}}`, name)
		a, err := sendRequest(clients[gateway], "POST", "/slurm/v0.0.42/job/submit", body, token, "Idempotency-Key: "+key)
		if err != nil {
			return 0, "", "", false
		}
		var answered struct {
			Job    int `json:"job_id"`
			Errors []struct {
				Code string `json:"code"`
			} `json:"errors"`
		}
		_ = json.Unmarshal([]byte(a.body), &answered)
		if len(answered.Errors) > 0 {
			code = answered.Errors[0].Code
		}
		return a.status, fmt.Sprint(answered.Job), code, a.header.Get(api.HeaderReplayed) == "true"
	}
	var mu sync.Mutex
	jobs, refused, tries, replays := map[string]string{}, map[string]int{}, 0, 0
	var submitters sync.WaitGroup
	for s := range 4 {
		submitters.Go(func() {
			for n := s; n < keys; n += 4 {
				key := fmt.Sprint("key ", n)
				for try := 0; ; try++ {
					status, job, code, replayed := send((n+try)%2, "search"+fmt.Sprint(n), key)
					mu.Lock()
					tries++
					if status == 200 {
						jobs[key] = job
						if replayed {
							replays++
						}
						mu.Unlock()
						break
					}
					refused[fmt.Sprint(status, " ", code)]++
					mu.Unlock()
					if try > 300 {
						t.Errorf("%s: no answer: %d %s", key, status, code)
						return
					}
					time.Sleep(50 * time.Millisecond) // the pace of a client that tries again
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { submitters.Wait(); close(done) }()
	kills := 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(300 * time.Millisecond): // the pace of the failures
			i := kills % 2
			m.run(t, "root", "kill", "-KILL", gateways[i].pid)
			<-gateways[i].ended
			eventually(t, "its last process ends", func() bool {
				_, err := m.try("root", "flock", "-n", fmt.Sprint("/run/gateway", i, ".sock.lock"), "true")
				return err == nil
			})
			begin(i)
			kills++
		}
	}
	t.Logf("%d keys, %d requests, %d gateways killed, %d answers repeated; other answers: %v", keys, tries, kills, replays, refused)
	for key, job := range jobs {
		for i := range gateways {
			status, again, code, replayed := send(i, "search"+strings.TrimPrefix(key, "key "), key)
			for try := 0; code == "outcome_unknown" && try < 5; try++ { // slurmdbd may not have the job yet
				status, again, code, replayed = send(i, "search"+strings.TrimPrefix(key, "key "), key)
			}
			if status != 200 || again != job || !replayed {
				t.Errorf("%s, gateway %d: %d %s, job %s, replayed: %v; first it was %s", key, i, status, code, again, replayed, job)
			}
			if status, _, code, _ := send(i, "another", key); status != 422 || code != "idempotency_key_reused" {
				t.Errorf("%s, gateway %d, with another job: %d %s", key, i, status, code)
			}
		}
	}
	var recorded map[string]int // how many jobs have a name
	eventually(t, "slurmdbd knows all jobs", func() bool {
		recorded = map[string]int{}
		for name := range strings.FieldsSeq(m.run(t, "root", "sacct", "-a", "-n", "-X", "-D", "-P", "-S", "now-1hours", "-o", "jobname")) {
			recorded[name]++
		}
		return len(recorded) >= keys
	})
	for n := range keys {
		if name := fmt.Sprint("search", n); recorded[name] != 1 {
			t.Errorf("%d jobs in slurmdbd for %s", recorded[name], name)
		}
	}
	if line := m.run(t, "root", "sacct", "-n", "-X", "-P", "-j", jobs["key 0"], "-o", "submitline"); !strings.HasPrefix(line, "Idempotency-Key ") || strings.Contains(line, "key 0") {
		t.Errorf("SubmitLine is %q", line)
	}
}

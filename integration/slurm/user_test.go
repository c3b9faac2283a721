package slurm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUser is a user's day at the gateway, with a token of the cluster's, in every API version: look, submit, look
// again, cancel.
func TestUser(t *testing.T) {
	m := real(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	c := m.client(ourSocket)
	token := "X-SLURM-USER-TOKEN: " + m.token
	for _, version := range []string{"v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43"} {
		t.Run(version, func(t *testing.T) {
			do := func(method, path, body string, want int, headers ...string) string {
				t.Helper()
				a, err := ask(c, method, "/slurm/"+version+path, body, headers...)
				must(t, err)
				if a.status != want {
					t.Fatalf("%s %s: status %d, want %d: %.500s", method, path, a.status, want, a.body)
				}
				return string(a.body)
			}
			if body := do("GET", "/ping", "", 200, token); !strings.Contains(body, `"pinged":"UP"`) {
				t.Errorf("ping: %s", body)
			}
			if body := do("GET", "/nodes", "", 200, token); strings.Count(body, `"slurmd_start_time"`) != 9 {
				t.Errorf("nodes: %.1000s", body)
			}
			do("GET", "/node/node1", "", 200, token)
			do("GET", "/node/none", "", 404, token)
			output := "/tmp/day-" + version
			os.Remove(filepath.Join(m.root, output))
			var job string
			if version == "v0.0.42" {
				job = handIn(t, c, output, token)
			} else {
				var answer struct {
					JobID json.Number `json:"job_id"`
				}
				must(t, json.Unmarshal([]byte(do("POST", "/job/submit", submission(output), 200, token)), &answer))
				job = answer.JobID.String()
			}
			m.ranAs(t, job, "alice", 20001, output)
			if body := do("GET", "/job/"+job, "", 200, token); !strings.Contains(body, `"COMPLETED"`) {
				t.Errorf("job: %.2000s", body)
			}
			waits := m.run(t, "alice", "sbatch", "--parsable", "-H", "--wrap=exit")
			do("DELETE", "/job/"+waits, "", 200, token)
			if state := m.run(t, "root", "squeue", "-h", "-t", "all", "-j", waits, "-o", "%T"); state != "CANCELLED" {
				t.Errorf("after DELETE job %s is %s", waits, state)
			}
			do("DELETE", "/job/4000000", "", 404, token)
			do("GET", "/jobs", "", 401)
			do("GET", "/jobs", "", 401, token[:len(token)-4]+"AAAA")
			do("GET", "/jobs", "", 401, token, "X-SLURM-USER-NAME: root")
		})
	}
	t.Run("no such partition", func(t *testing.T) {
		text := strings.Replace(submission("/dev/null"), `"name":"who"`, `"name":"who","partition":"none"`, 1)
		a, err := ask(c, "POST", "/slurm/v0.0.42/job/submit", text, token)
		must(t, err)
		if a.status < 400 || a.status >= 500 || !strings.Contains(string(a.body), "artition") {
			t.Errorf("status %d: %s", a.status, a.body)
		}
	})
}

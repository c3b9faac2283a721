package slurm

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestSubmitOnce repeats a submission with the same Idempotency-Key. The
// repetition must create no other job, and its answer must have the same job
// number and message as the first answer. Heterogeneous jobs are tried too.
func TestSubmitOnce(t *testing.T) {
	m := real(t)
	m.start(t, "gateway", ourSocket, []string{"SLURM_JWT=daemon", "SCHEDRESTD_NAMES=slurm", "SCHEDRESTD_IDEMPOTENCY_FILE=/root/keys"},
		"/opt/gateway/schedrestd", "-f", m.slurm().conf, "-u", "nobody", "-g", "nogroup", "unix:"+ourSocket)
	one := strings.Replace(submission("/dev/null"), `"name":"who"`, `"name":"praised"`, 1)
	var parts map[string]any
	must(t, json.Unmarshal([]byte(one), &parts))
	several, err := json.Marshal(map[string]any{"script": parts["script"], "jobs": []any{parts["job"], parts["job"]}})
	must(t, err)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			d := day{t, m.client(ourSocket), version, "X-SLURM-USER-TOKEN: " + m.token}
			for name, body := range map[string]string{"one": one, "several": string(several)} {
				key := "Idempotency-Key: " + name + " " + version
				first := d.ask("POST", "/slurm/…/job/submit", body, http.StatusOK, d.token, key)
				again := d.ask("POST", "/slurm/…/job/submit", body, http.StatusOK, d.token, key)
				if first.JobID == "" || again.JobID != first.JobID || again.UserMsg != first.UserMsg || name == "one" && first.UserMsg == "" {
					t.Errorf("%s: job %q, %q, then job %q, %q", name, first.JobID, first.UserMsg, again.JobID, again.UserMsg)
				}
				if other := d.ask("POST", "/slurm/…/job/submit", body, http.StatusOK, d.token); other.JobID == first.JobID {
					t.Errorf("%s: job %q for a submission without the key", name, other.JobID)
				}
			}
		})
	}
}

package slurm

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestSubmitOnce repeats submissions with the same Idempotency-Key. The
// repetition must not create another job, and its answer must have the same job
// number and message as the first answer. This must also hold for heterogeneous
// jobs.
func TestSubmitOnce(t *testing.T) {
	m := useCluster(t)
	m.start(t, "gateway", gatewaySocket, []string{"SLURM_JWT=daemon", "SCHEDRESTD_NAMES=slurm", "SCHEDRESTD_IDEMPOTENCY_FILE=/root/keys"},
		"/opt/gateway/schedrestd", "-f", m.slurmBackend().conf, "-u", "nobody", "-g", "nogroup", "unix:"+gatewaySocket)
	oneJob := strings.Replace(submission("/dev/null"), `"name":"who"`, `"name":"praised"`, 1)
	var parts map[string]any
	must(t, json.Unmarshal([]byte(oneJob), &parts))
	hetJob, err := json.Marshal(map[string]any{"script": parts["script"], "jobs": []any{parts["job"], parts["job"]}})
	must(t, err)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			d := userSession{t, m.client(gatewaySocket), version, "X-SLURM-USER-TOKEN: " + m.token}
			for name, body := range map[string]string{"one": oneJob, "several": string(hetJob)} {
				key := "Idempotency-Key: " + name + " " + version
				first := d.request("POST", "/slurm/…/job/submit", body, http.StatusOK, d.token, key)
				second := d.request("POST", "/slurm/…/job/submit", body, http.StatusOK, d.token, key)
				if first.JobID == "" || second.JobID != first.JobID || second.UserMsg != first.UserMsg || name == "one" && first.UserMsg == "" {
					t.Errorf("%s: job %q, %q, then job %q, %q", name, first.JobID, first.UserMsg, second.JobID, second.UserMsg)
				}
				if unkeyed := d.request("POST", "/slurm/…/job/submit", body, http.StatusOK, d.token); unkeyed.JobID == first.JobID {
					t.Errorf("%s: job %q for a submission without the key", name, unkeyed.JobID)
				}
			}
		})
	}
}

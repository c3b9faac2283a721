package slurm

import (
	"net/http"
	"strings"
	"testing"
)

// TestSubmitPolicy checks the messages from a site's policy
// (testdata/conf/job_submit.lua). In every API version, they must reach the
// user who submits a job, whether the policy accepts or refuses the job.
func TestSubmitPolicy(t *testing.T) {
	m := useCluster(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			d := userSession{t, m.client(gatewaySocket), version, "X-SLURM-USER-TOKEN: " + m.token}
			submit := func(name string, status int) response {
				t.Helper()
				body := strings.Replace(submission("/dev/null"), `"name":"who"`, `"name":"`+name+`"`, 1)
				return d.request("POST", "/slurm/…/job/submit", body, status, d.token)
			}
			if s := submit("who", http.StatusOK); s.UserMsg != "" {
				t.Errorf("for a job that the policy does not name, the message is %q", s.UserMsg)
			}
			const praise = "grüße \"und\" Dank\nfor a job with a name"
			if s := submit("praised", http.StatusOK); s.UserMsg != praise || s.JobID == "" {
				t.Errorf("job %q has %q, want %q", s.JobID, s.UserMsg, praise)
			}
			s := submit("refused", http.StatusUnprocessableEntity)
			const reason = "no job of this name, see https://example.org/names"
			if len(s.Errors) != 1 || !strings.Contains(s.Errors[0].Description, reason) {
				t.Errorf("refused with %+v, want %q", s.Errors, reason)
			}
		})
	}
}

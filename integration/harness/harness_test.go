package harness

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/internal/feature"
)

func TestMain(m *testing.M) { Main(m) }

// TestCancelAll checks that cancelAll, which is called after a failed test,
// cancels all jobs, however many the test has submitted.
func TestCancelAll(t *testing.T) {
	l := NewLab(t)
	for range 12 {
		l.Submit("true", map[string]any{"hold": true})
	}
	l.cancelAll()
	jobs := l.Request("GET", "/sched/"+Version+"/jobs", "").Want(t, 200)
	if n := len(jobs.List("jobs")); n != 12 {
		t.Fatalf("the controller lists %d jobs", n)
	}
	for i := range jobs.List("jobs") {
		if got := fmt.Sprint(jobs.Get("jobs", i, "job_state")); got != "[CANCELLED]" {
			t.Errorf("job %v is %s", jobs.Get("jobs", i, "job_id"), got)
		}
	}
}

// TestDocuments checks that there are documents for each API version, and
// that they contain the paths in both spellings.
func TestDocuments(t *testing.T) {
	for _, p := range feature.AllParsers() {
		for _, path := range []string{"/sched/%s/ping", "/slurm/%s/jobs", "/scheddb/%s/users", "/slurmdb/%s/diag"} {
			names := api.NamesSched
			if strings.HasPrefix(path, "/slurm") {
				names = api.NamesSlurm
			}
			d, err := documents[documentKey{p.Name(), names}]()
			Must(t, err)
			req, err := http.NewRequest("GET", "http://lab"+fmt.Sprintf(path, p.Name()), nil)
			Must(t, err)
			router, err := d.router(req.URL.Path)
			if router == nil {
				t.Errorf("%s: not in the document, %v", req.URL, err)
			} else if _, _, err := router.FindRoute(req); err != nil {
				t.Errorf("%s: %v", req.URL, err)
			}
		}
	}
}

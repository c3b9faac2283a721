package api

import (
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// TestResumedStream checks that a client that comes back with the last id gets
// an answer at once, although nothing has changed, and then the changes. A
// client whose id is unknown must get the whole list.
func TestResumedStream(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	url, token := l.URL+"/sched/"+harness.Version+"/jobs/?fields=job_id,job_state,name", "X-SCHED-USER-TOKEN: "+l.OwnToken
	first := harness.Follow(t, url, token)
	known := first.Next()
	if known.Name != "snapshot" || known.Data != `{"jobs":[],"more":false}` || known.ID == "" {
		t.Fatalf("the first event is %v", known)
	}
	first.Close()

	resumed := harness.Follow(t, url, token, "Last-Event-ID: "+known.ID)
	id := l.Submit("sleep 3", nil) // longer than the gateway takes to find the job
	e := resumed.Next()
	if e.Name == "reset" { // the change was found before the worker recorded changes
		if e = resumed.Next(); e.Name == "snapshot" {
			e.Name = "added"
		}
	}
	if e.Name != "added" || !strings.Contains(e.Data, `"name":"test"`) || e.ID == "" || e.ID == known.ID {
		t.Errorf("after the submission of job %d: %v", id, e)
	}
	resumed.Await("changed", `["COMPLETED"]`)

	lost := harness.Follow(t, url, token, "Last-Event-ID: unknown")
	if e := lost.Next(); e.Name != "reset" || e.Data != "{}" || e.ID != "" {
		t.Errorf("with an unknown id: %v", e)
	}
	if e := lost.Next(); e.Name != "snapshot" || !strings.Contains(e.Data, `["COMPLETED"]`) {
		t.Errorf("with an unknown id: %v", e)
	}
}

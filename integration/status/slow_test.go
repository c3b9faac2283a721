package status

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestSlowDetails checks that the pages of a job and of a node are shown although
// their answers take longer than the time between two changes of the lists.
func TestSlowDetails(t *testing.T) {
	t.Parallel()
	nodes, jobs, partitions := cluster(4, 40)
	c := newController(t, nodes, jobs, partitions)
	g := startFor(t, c)
	wait := func(r *http.Request, d time.Duration) {
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
	}
	p := harness.OpenStatus(t, startProxy(t, "http://"+g.Address, func(r *http.Request) {
		r.Header.Del("Cache-Control") // each list is a new one
		switch {
		case r.Header.Get("Accept") == "text/event-stream":
			r.Header.Set("Accept", "application/json")
		case strings.Contains(r.URL.Path, "/job/"):
			wait(r, 7*time.Second)
		case strings.Contains(r.URL.Path, "/node/"):
			wait(r, 13*time.Second)
		}
	}))
	p.SignIn(g.Lab.OwnToken)
	p.AwaitText("Every 5 s")
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	go func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-time.After(time.Second):
				c.change(func() { c.jobs[0].Name = fmt.Sprint("run-", i); c.nodes[0].FreeMem.Number++ })
			}
		}
	}()
	p.Show("job/100001")
	p.AwaitText("/home/root/run.sh") // not in the list
	p.Show("node/" + nodes[0].Name)
	p.AwaitText("Architecture")
	p.Check(g.Lab.OwnToken)
}

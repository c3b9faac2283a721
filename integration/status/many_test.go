package status

import (
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"schedrestd/integration/harness"
	"schedrestd/rpc/message"
)

// TestManyPages opens several pages of the same user (STATUS_PAGES, 5), each with
// a browser profile of its own, and checks that the controller gets no more
// requests than from one reader in each worker.
func TestManyPages(t *testing.T) {
	const workers = 2
	pages := 5
	if n, err := strconv.Atoi(os.Getenv("STATUS_PAGES")); err == nil {
		pages = n
	}
	nodes, jobs, partitions := cluster(40, 100)
	c := newController(t, nodes, jobs, partitions)
	g := startFor(t, c)
	proxy := startProxy(t, "http://"+g.Address, func(r *http.Request) { r.Header.Set("X-SCHED-USER-TOKEN", g.Lab.OwnToken) })
	p := harness.OpenStatus(t, proxy)
	p.Await("changes arrive as a stream", `document.querySelector(".fresh.live") !== null`)
	// measure returns the numbers of requests for lists within a while.
	measure := func() map[message.Type]int {
		before := c.counts()
		time.Sleep(10 * time.Second)
		after := c.counts()
		for kind := range after {
			after[kind] -= before[kind]
		}
		return after
	}
	one := measure()
	for range pages - 1 {
		p.OpenElsewhere(proxy + "/status")
	}
	harness.Eventually(t, "all pages have started", func() bool {
		started := 0
		for _, title := range p.Titles() {
			if title == "Overview – demo" {
				started++
			}
		}
		return started == pages
	})
	harness.Eventually(t, "the last pages have read their lists", func() bool {
		now := c.counts()
		time.Sleep(3 * time.Second)
		return c.counts()[message.RequestJobInfo]-now[message.RequestJobInfo] <= 3*workers+1
	})
	many := measure()
	t.Logf("requests within 10 s: one page %v, %d pages %v", one, pages, many)
	for _, kind := range []message.Type{message.RequestJobInfo, message.RequestNodeInfo, message.RequestPartitionInfo} {
		if got, limit := many[kind], workers*(one[kind]+5); got > limit {
			t.Errorf("%d requests of type %d with %d pages, %d with one", got, kind, pages, one[kind])
		}
	}
}

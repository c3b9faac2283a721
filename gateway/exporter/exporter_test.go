package exporter

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/metric"
	"schedrestd/metric/table"
)

// exporterWithValues returns an exporter with a fake dispatcher, which sends
// the given values in several messages. *requests counts the requests that the
// dispatcher receives.
func exporterWithValues(t *testing.T, values map[uint16]uint64) (e *exporter, requests *int) {
	t.Helper()
	requests = new(int)
	e = newExporter(func(m ipc.Message, _ ...int) error {
		*requests++
		go func() {
			for cell, n := range values {
				_, _ = e.Handle(ipc.Received{Message: &query.Samples{Cells: []query.Sample{{Cell: cell, N: n}}}})
			}
			_, _ = e.Handle(ipc.Received{Message: &query.Samples{Last: true}})
		}()
		return nil
	})
	return e, requests
}

func scrape(t *testing.T, e *exporter) (status int, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	e.http.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Code, w.Body.String()
}

// everyCell returns a value for each cell.
func everyCell() map[uint16]uint64 {
	values := map[uint16]uint64{}
	for cell := range table.New().Cells {
		values[uint16(cell)] = 1
	}
	return values
}

// TestScrape checks that each value is sent with the right metric name and
// labels. In small families, values of 0 must be sent too.
func TestScrape(t *testing.T) {
	all := table.New()
	status, call := all.Operation("/sched/jobs", http.MethodGet), all.Durations.Cell(all.Operation("/sched/jobs", http.MethodGet))
	e, _ := exporterWithValues(t, map[uint16]uint64{
		uint16(all.Requests.Cell(status, 1, all.Status(200))): 7,
		uint16(call):                                         1, // 1 ms
		uint16(call + 3):                                     2, // 10 ms
		uint16(call + len(metric.Buckets)):                   1,
		uint16(call + len(metric.Buckets) + 1):               1_500_000,
		uint16(metric.WorkersExited.Cell(metric.ExitKilled)): 2,
	})
	code, text := scrape(t, e)
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	for _, want := range []string{
		`schedrestd_http_requests_total{method="GET",route="/sched/jobs",status="200",version="v0.0.40"} 7`,
		`schedrestd_http_request_duration_seconds_bucket{method="GET",route="/sched/jobs",le="0.001"} 1`,
		`schedrestd_http_request_duration_seconds_bucket{method="GET",route="/sched/jobs",le="0.01"} 3`,
		`schedrestd_http_request_duration_seconds_bucket{method="GET",route="/sched/jobs",le="10"} 3`,
		`schedrestd_http_request_duration_seconds_bucket{method="GET",route="/sched/jobs",le="+Inf"} 4`,
		`schedrestd_http_request_duration_seconds_sum{method="GET",route="/sched/jobs"} 1.5`,
		`schedrestd_workers_exited_total{cause="killed"} 2`,
		`schedrestd_workers_exited_total{cause="died"} 0`,
		`schedrestd_slots_waiting 0`,
		`schedrestd_build_info{`,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("missing: %s", want)
		}
	}
}

// TestSamplesAreReused checks that the exporter sends only one request to the
// dispatcher for several scrapes within cacheTTL.
func TestSamplesAreReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, requests := exporterWithValues(t, map[uint16]uint64{uint16(metric.SlotsWaiting.Cell()): 1})
		for _, step := range []struct {
			wait time.Duration
			want int
		}{{0, 1}, {0, 1}, {cacheTTL - time.Nanosecond, 1}, {time.Nanosecond, 2}, {0, 2}} {
			time.Sleep(step.wait)
			if code, text := scrape(t, e); code != http.StatusOK || !strings.Contains(text, "\nschedrestd_slots_waiting 1\n") {
				t.Fatalf("%d %s", code, text)
			}
			if *requests != step.want {
				t.Errorf("after %s: %d requests to the dispatcher, want %d", step.wait, *requests, step.want)
			}
		}
	})
}

// TestPromtool checks that promtool reports no problem with any metric.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs promtool: apt-get install prometheus")
	}
	e, _ := exporterWithValues(t, everyCell())
	_, text := scrape(t, e)
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	t.Logf("%d lines", strings.Count(text, "\n"))
}

// TestDispatcherGone checks that a scrape fails if the dispatcher sends no
// samples. The exporter must not reuse old samples.
func TestDispatcherGone(t *testing.T) {
	e := newExporter(func(ipc.Message, ...int) error { return errors.New("gone") })
	if code, text := scrape(t, e); code != http.StatusInternalServerError || strings.Contains(text, "build_info{") {
		t.Errorf("%d %s", code, text)
	}
}

// TestOtherPaths checks that the exporter refuses unknown paths and methods
// without asking the dispatcher.
func TestOtherPaths(t *testing.T) {
	e, requests := exporterWithValues(t, nil)
	for path, want := range map[string]int{"GET /": 404, "GET /metrics/": 404, "POST /metrics": 405, "GET /debug/pprof/": 404} {
		method, target, _ := strings.Cut(path, " ")
		w := httptest.NewRecorder()
		e.http.Handler.ServeHTTP(w, httptest.NewRequest(method, target, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	if *requests != 0 {
		t.Errorf("%d requests to the dispatcher", *requests)
	}
}

// TestBounded checks the limit on connections. A connection above the limit
// must wait until one of the accepted connections is closed.
func TestBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const limit = 2
	b := &limitListener{Listener: l, sem: make(chan struct{}, limit)}
	accepted := make(chan net.Conn)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			c, err := b.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	})
	for range limit + 1 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first, second := <-accepted, <-accepted
	select {
	case <-accepted:
		t.Error("a connection above the limit was accepted")
	case <-time.After(50 * time.Millisecond):
	}
	first.Close()
	first.Close() // frees only one place
	<-accepted
	l.Close()
	second.Close() // frees a slot for the waiting Accept
	done.Wait()
}

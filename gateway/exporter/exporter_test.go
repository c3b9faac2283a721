package exporter

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/limit"
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

// TestLateSamples checks that parts of an answer that come too late for a scrape are
// no part of the answer to another request, that no request is sent before they have
// come, and that they do not end the exporter.
func TestLateSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		e := newExporter(func(ipc.Message, ...int) error { requests++; return nil })
		answer := func(n uint64) {
			for _, last := range []bool{false, false, true} {
				if _, err := e.Handle(ipc.Received{Message: &query.Samples{Last: last, Cells: []query.Sample{{Cell: 1, N: n}}}}); err != nil {
					t.Fatalf("samples %d: %v", n, err)
				}
			}
		}
		if _, err := e.samples(); err != errTimeout {
			t.Errorf("without an answer: %v", err)
		}
		if _, err := e.samples(); err != errTimeout || requests != 1 {
			t.Errorf("still without an answer: %v; %d requests", err, requests)
		}
		answer(1)
		time.Sleep(time.Second)
		go func() { time.Sleep(time.Second); answer(2) }()
		if values, err := e.samples(); err != nil || values[1] != 2 || requests != 2 {
			t.Errorf("got %v, %v; %d requests", values, err, requests)
		}
		if _, err := e.Handle(ipc.Received{Message: new(query.Samples)}); err == nil {
			t.Error("samples are accepted that were not requested")
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

// TestIdleConnections checks that connections on which no request is being
// answered do not keep others out, whether they have had a request or none, and
// that a connection that is being answered stays.
func TestIdleConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e, _ := exporterWithValues(t, nil)
	go e.http.Serve(newListener(l))
	defer e.Close()
	for i := range 3 * limit.MetricsConns.Total {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		switch i % 3 {
		case 0: // sends nothing
			continue
		case 1: // sends a part of a request
			if _, err := c.Write([]byte("GET /metr")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if _, err := c.Write([]byte("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("connection %d: %v, %v", i, answer, err)
		}
	}
}

// played is a connection of a client with a given address.
type played struct {
	net.Conn
	addr   string
	closed bool
}

func (p *played) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(p.addr))
}
func (p *played) Close() error { p.closed = true; return nil }

// TestConnectionsOfSources checks which connections are closed for a new one.
func TestConnectionsOfSources(t *testing.T) {
	l := newListener(nil)
	var all []*played
	conns := map[*played]*conn{}
	admit := func(addr string) *conn {
		p := &played{addr: addr}
		all = append(all, p)
		conns[p] = l.admit(p)
		return conns[p]
	}
	closed := func() (n int) {
		for _, p := range all {
			if p.closed {
				n++
				delete(conns, p)
			}
		}
		return n
	}
	share := limit.MetricsConns.Share
	first := admit("[2001:db8::1]:1")
	first.place.Keep()
	for n := range share { // the addresses of a /64 are one source
		if admit(fmt.Sprintf("[2001:db8::%x]:1", n+2)) == nil {
			t.Fatalf("connection %d refused", n)
		}
	}
	if !all[1].closed || closed() != 1 || l.conns.Held(first.source) != share {
		t.Fatalf("%d closed, %d open of one source", closed(), l.conns.Held(first.source))
	}
	var scraper *conn
	for range share {
		scraper = admit("192.0.2.1:1")
	}
	if closed() != 1 {
		t.Fatalf("%d closed although there was room", closed())
	}
	scraper.place.Keep()
	if admit("198.51.100.1:1") == nil || closed() != 2 || !all[2].closed {
		t.Errorf("%d closed for a third source", closed())
	}
	first.place.Offer()
	for range share - 1 { // the first of these in the place of a scraper
		if admit("[2001:db8::1]:2") == nil || all[0].closed {
			t.Fatal("a connection whose request was answered is not the last to be closed")
		}
	}
	if admit("[2001:db8::1]:3") == nil || !all[0].closed || closed() != 2+share {
		t.Errorf("%d closed, or not the one that has been without a request longest", closed())
	}
	for _, one := range conns { // all are being answered
		one.place.Keep()
	}
	before := closed()
	for _, addr := range []string{"203.0.113.1:1", "192.0.2.1:1", "[2001:db8::1]:4"} {
		if admit(addr) != nil || closed() != before {
			t.Error("a connection that is being answered was closed")
		}
	}
	scraper.Close()
	scraper.Close()
	if n, _ := l.conns.Counts(); n != limit.MetricsConns.Total-1 {
		t.Errorf("%d places are taken", n)
	}
	if c := admit("203.0.113.1:1"); c == nil || closed() != before+1 { // the scraper
		t.Error("refused although there is room")
	}
}

// TestRequestsOfConnection checks that a connection can be closed before and
// after each request and while its answer is sent, whatever the requests were,
// and that nothing is left of it afterwards.
func TestRequestsOfConnection(t *testing.T) {
	e, _ := exporterWithValues(t, nil)
	l := newListener(nil)
	for _, request := range []string{"GET /metrics", "HEAD /metrics", "GET /other", "POST /metrics", "OPTIONS *"} {
		c := l.admit(&played{addr: "192.0.2.1:1"})
		offered := func() int { _, n := l.conns.Counts(); return n }
		for range 3 {
			method, target, _ := strings.Cut(request, " ")
			w := watched{httptest.NewRecorder(), func() {
				if offered() != 1 {
					t.Errorf("%s: the connection stays open although its client may not read the answer", request)
				}
			}}
			e.http.Handler.ServeHTTP(w, httptest.NewRequestWithContext(withConn(t.Context(), c), method, target, nil))
			if n := offered(); n != 1 {
				t.Errorf("%s: the connection can be closed %d times", request, n)
			}
		}
		c.Close()
		if open, _ := l.conns.Counts(); open != 0 || offered() != 0 {
			t.Fatalf("%s: a closed connection is left: %d and %d", request, open, offered())
		}
	}
}

// watched calls before whenever a part of the answer is sent.
type watched struct {
	http.ResponseWriter
	before func()
}

func (w watched) Write(b []byte) (int, error) {
	w.before()
	return w.ResponseWriter.Write(b)
}

// TestScrapesOfSources checks that scrapes of one source, whose answers take
// long, leave room for those of another, and that their connections stay open.
func TestScrapesOfSources(t *testing.T) {
	answer := make(chan struct{})
	e := newExporter(func(ipc.Message, ...int) error { <-answer; return errors.New("gone") })
	l := newListener(nil)
	var clients sync.WaitGroup
	for _, step := range []struct {
		addr           string
		inUse, waiting int // afterwards
	}{
		{"192.0.2.1:1", 1, 0}, {"192.0.2.1:2", 2, 0}, {"192.0.2.1:3", 2, 1}, {"192.0.2.1:4", 2, 2}, {"198.51.100.1:1", 3, 2},
	} {
		c := l.admit(&played{addr: step.addr})
		clients.Go(func() {
			r := httptest.NewRequestWithContext(withConn(t.Context(), c), http.MethodGet, "/metrics", nil)
			e.http.Handler.ServeHTTP(httptest.NewRecorder(), r)
		})
		for {
			if inUse, waiting := e.places.Counts(); inUse == step.inUse && waiting == step.waiting {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	if _, offered := l.conns.Counts(); offered != 0 {
		t.Errorf("%d connections can be closed while their answers are being made", offered)
	}
	close(answer)
	clients.Wait()
}

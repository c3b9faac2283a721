package worker

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/ipc/work"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// A generator is a controller that generates a list of jobs while it sends it,
// so that the benchmarks can measure the memory of this process. It counts its
// connections.
type generator struct {
	address   work.Address
	jobs      int
	records   [][]byte     // encoded jobs, which the list repeats with other ids
	length    int          // of the list, in bytes
	constant  atomic.Bool  // the list does not change; otherwise each list has another time of the last backfill
	version   atomic.Int64 // number of changes: each job with a lower index has its second record
	changedAt atomic.Int64 // time of the last one, in nanoseconds
	lists     atomic.Int64 // requested lists
	singles   atomic.Int64 // requested jobs
	open      atomic.Int64 // connections
	mostOpen  atomic.Int64
	sending   atomic.Int64 // lists that have been requested and are not yet sent
	mostLists atomic.Int64
}

// jobIDOffset is the offset of the id in an encoded job.
const jobIDOffset = 8

// newGenerator starts a generator. One of perRunning jobs runs.
func newGenerator(b testing.TB, jobs, nodes, perRunning int) *generator {
	g := &generator{jobs: jobs}
	for i := range min(jobs, 1000) {
		list := &message.JobInfo{}
		list.Jobs.List = []model.Job{newJob(uint32(i), uint32(nodes), i%perRunning == 0)}
		e := codec.NewEncoder(codec.Newest, nil)
		list.Walk(e)
		g.records = append(g.records, e.Bytes()[len(g.head(0)):])
	}
	g.length = len(g.head(0))
	for i := range jobs {
		g.length += len(g.records[i%len(g.records)])
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	g.address = work.Address{Name: "ctl", Network: "tcp", Address: ln.Addr().String()}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			wait.Go(func() { g.serve(b, nc) })
		}
	})
	b.Cleanup(func() { ln.Close(); wait.Wait() })
	return g
}

// head returns the beginning of the body of the n-th list.
func (g *generator) head(n int64) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(g.jobs))
	b = binary.BigEndian.AppendUint64(b, uint64(1_700_000_000+n))
	if g.constant.Load() {
		n = 0
	}
	return binary.BigEndian.AppendUint64(b, uint64(1_700_000_000+n))
}

func concurrent(now, most *atomic.Int64) (done func()) {
	for n, m := now.Add(1), most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
	}
	return func() { now.Add(-1) }
}

// change changes a job.
func (g *generator) change() {
	g.changedAt.Store(time.Now().UnixNano())
	g.version.Add(1)
}

// record returns the encoded job with this index, and length the length of all.
func (g *generator) record(i int, version int64) []byte {
	if int64(i) < version {
		i++
	}
	return g.records[i%len(g.records)]
}

func (g *generator) lengthAt(version int64) int {
	length := g.length
	for i := range int(version) {
		length += len(g.record(i, version)) - len(g.record(i, 0))
	}
	return length
}

func (g *generator) serve(b testing.TB, nc net.Conn) {
	defer nc.Close()
	defer concurrent(&g.open, &g.mostOpen)()
	request, err := wire.Read(nc, 1<<20)
	if err != nil {
		return
	}
	f, _ := message.ParseFrame(request)
	if f.Header.Type == message.RequestJobInfoSingle {
		var one message.JobInfoSingleRequest
		must(b, f.Decode(&one))
		g.sendOne(b, nc, int(one.JobID.Number))
		return
	}
	if f.Header.Type != message.RequestJobInfo {
		pong, err := message.Encode(codec.Newest, 0, message.ResponseRC, nil, &message.RC{})
		must(b, err)
		nc.Write(pong)
		return
	}
	n, version := g.lists.Add(1), g.version.Load()
	sent := concurrent(&g.sending, &g.mostLists)
	defer func() { sent() }()
	front, err := message.Front(codec.Newest, 0, message.ResponseJobInfo, nil, g.lengthAt(version))
	must(b, err)
	w := bufio.NewWriterSize(nc, 256<<10)
	w.Write(front)
	w.Write(g.head(n))
	var id [4]byte
	for i := range g.jobs {
		record := g.record(i, version)
		binary.BigEndian.PutUint32(id[:], uint32(i+1))
		w.Write(record[:jobIDOffset])
		w.Write(id[:])
		if _, err := w.Write(record[jobIDOffset+4:]); err != nil {
			return
		}
	}
	sent() // before the client can have received the last byte, and request the next list
	sent = func() {}
	w.Flush()
}

// sendOne sends the job with this id.
func (g *generator) sendOne(b testing.TB, nc net.Conn, id int) {
	g.singles.Add(1)
	record := slices.Clone(g.record(id-1, g.version.Load()))
	binary.BigEndian.PutUint32(record[jobIDOffset:], uint32(id))
	head := g.head(0)
	binary.BigEndian.PutUint32(head, 1)
	front, err := message.Front(codec.Newest, 0, message.ResponseJobInfo, nil, len(head)+len(record))
	must(b, err)
	nc.Write(slices.Concat(front, head, record))
}

// A reader is an http.ResponseWriter of a client that reads at most one piece of
// 64 KiB in each pause.
type reader struct {
	header http.Header
	status int
	bytes  int
	coding string // Accept-Encoding
	pause  time.Duration
	begun  func()          // called at the first byte
	ctx    context.Context // ends when the client disconnects
}

func (r *reader) Header() http.Header { return r.header }
func (r *reader) WriteHeader(n int)   { r.status = n }
func (r *reader) Write(b []byte) (int, error) {
	if r.bytes == 0 && r.begun != nil {
		r.begun()
	}
	r.bytes += len(b)
	if r.pause > 0 {
		select {
		case <-time.After(r.pause * time.Duration(len(b)) / (64 << 10)):
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
	return len(b), nil
}

// get requests path and returns the status, or 0 if the answer broke off.
func (r *reader) get(ctx context.Context, h http.Handler, token, path string) (status int) {
	return r.getIf(ctx, h, token, path, "")
}

// getIf requests path if its tag has changed.
func (r *reader) getIf(ctx context.Context, h http.Handler, token, path, tag string) (status int) {
	return request(ctx, h, r, r, token, path, map[string]string{"If-None-Match": tag, "Accept-Encoding": r.coding})
}

// follow follows the changes of a list.
func (f *follower) follow(ctx context.Context, h http.Handler, token, path string) {
	request(ctx, h, f, &f.reader, token, path, map[string]string{"Accept": "text/event-stream"})
}

// request sends a request whose answer w gets.
func request(ctx context.Context, h http.Handler, w http.ResponseWriter, r *reader, token, path string, header map[string]string) (status int) {
	defer func() {
		if recover() != nil { // the handler aborts the connection
			status = 0
		}
	}()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "/sched/v0.0.43/"+path, nil)
	if err != nil {
		panic(err)
	}
	q.Header.Set("X-SCHED-USER-TOKEN", token)
	for name, value := range header {
		if value != "" {
			q.Header.Set(name, value)
		}
	}
	r.header, r.status, r.ctx = http.Header{}, http.StatusOK, ctx
	h.ServeHTTP(w, q)
	return r.status
}

func quiet(b *testing.B) {
	log := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	b.Cleanup(func() { slog.SetDefault(log) })
}

// BenchmarkScale measures lists of a cluster with 500 000 jobs, 20 000 of which
// run, and 100 000 nodes: one list in several forms, and forty readers that are
// so slow that none of them comes to the end.
func BenchmarkScale(b *testing.B) {
	quiet(b)
	g := newGenerator(b, 500_000, 100_000, 25)
	for _, bb := range []struct{ name, path string }{
		{"state", "jobs?state=RUNNING"}, {"six fields", "jobs?fields=" + sixFields}, {"state, six fields", "jobs?state=RUNNING&fields=" + sixFields}, {"whole", "jobs"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			h, peak, used := listHandler(b, g.address), watchMemory(b), processorTime(b)
			g.mostOpen.Store(0)
			n := 0
			for b.Loop() {
				r := &reader{}
				if status := r.get(b.Context(), h, tokenOf("ann"), bb.path); status != http.StatusOK {
					b.Fatal(status)
				}
				n = r.bytes
			}
			b.ReportMetric(float64((processorTime(b)-used).Milliseconds())/float64(b.N), "CPU-ms/op")
			b.ReportMetric(float64(n)/1e6, "JSON-MB")
			b.ReportMetric(float64(g.length)/1e6, "RPC-MB")
			b.ReportMetric(float64(peak())/(1<<20), "peak-MB")
			b.ReportMetric(float64(g.mostOpen.Load()), "conns")
		})
	}
	for _, users := range []int{1, 40} {
		b.Run(fmt.Sprintf("40 slow readers, %d users", users), func(b *testing.B) {
			for b.Loop() {
				h, peak := listHandler(b, g.address), watchMemory(b)
				g.lists.Store(0)
				g.mostOpen.Store(g.open.Load())
				ctx, cancel := context.WithTimeout(b.Context(), 90*time.Second)
				var begun, refused atomic.Int64
				var wait sync.WaitGroup
				for i := range 40 {
					wait.Go(func() {
						r := &reader{pause: 50 * time.Millisecond, begun: func() { begun.Add(1) }}
						if r.get(ctx, h, tokenOf(fmt.Sprint("user", i%users)), "jobs") == http.StatusServiceUnavailable {
							refused.Add(1)
						}
					})
				}
				<-ctx.Done()
				most := g.mostOpen.Load()
				cancel()
				wait.Wait()
				b.ReportMetric(float64(begun.Load()-refused.Load()), "served")
				b.ReportMetric(float64(refused.Load()), "refused")
				b.ReportMetric(float64(g.lists.Load()), "RPCs")
				b.ReportMetric(float64(peak())/(1<<20), "peak-MB")
				b.ReportMetric(float64(most), "conns")
			}
		})
	}
}

// BenchmarkPollers measures a hundred clients of one user, each of which
// requests a list of 20 000 jobs in each second of a minute, and pings beside
// them. A client that waits for longer than a second for its list requests the
// next one immediately.
func BenchmarkPollers(b *testing.B) {
	quiet(b)
	for _, bb := range []struct {
		name, path, coding string
		constant           bool
	}{
		{name: "whole", path: "jobs"}, {name: "whole, zstd", path: "jobs", coding: "zstd"}, {name: "whole, zstd, unchanged", path: "jobs", coding: "zstd", constant: true},
		{name: "six fields", path: "jobs?fields=" + sixFields},
	} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				g := newGenerator(b, 20_000, 5000, 4)
				g.constant.Store(bb.constant)
				h, token := listHandler(b, g.address), tokenOf("ann")
				peak, used, start := watchMemory(b), processorTime(b), time.Now()
				var answers, failures atomic.Int64
				var wait sync.WaitGroup
				for i := range 100 {
					wait.Go(func() {
						time.Sleep(time.Duration(i) * 10 * time.Millisecond)
						for time.Since(start) < time.Minute {
							asked := time.Now()
							if status := (&reader{coding: bb.coding}).get(b.Context(), h, token, bb.path); status == http.StatusOK {
								answers.Add(1)
							} else {
								failures.Add(1)
							}
							time.Sleep(time.Second - time.Since(asked))
						}
					})
				}
				var pings []float64
				for time.Since(start) < time.Minute {
					asked := time.Now()
					(&reader{}).get(b.Context(), h, token, "ping")
					pings = append(pings, time.Since(asked).Seconds()*1000)
					time.Sleep(50 * time.Millisecond)
				}
				wait.Wait()
				slices.Sort(pings)
				b.ReportMetric(float64(answers.Load()), "answers")
				b.ReportMetric(float64(failures.Load()), "failures")
				b.ReportMetric(float64(g.lists.Load()), "RPCs")
				b.ReportMetric(float64(g.mostLists.Load()), "RPCs-at-once")
				b.ReportMetric((processorTime(b)-used).Seconds()/time.Since(start).Seconds(), "processors")
				b.ReportMetric(pings[len(pings)*99/100], "ping-p99-ms")
				b.ReportMetric(float64(peak())/(1<<20), "peak-MB")
			}
		})
	}
}

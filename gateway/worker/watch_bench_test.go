package worker

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Flush is for streams of events.
func (r *reader) Flush() {}

// A follower is a client of a stream of events. It measures the time from a
// change to its event.
type follower struct {
	reader
	started func() // called with the first event
	changed func() // called with each event of a change
}

func (f *follower) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("event: snapshot")) && bytes.Contains(b, []byte(`"more":false`)) {
		f.started()
	}
	if bytes.Contains(b, []byte("event: changed")) {
		f.changed()
	}
	return len(b), nil
}

// memoryInUse returns the memory of the heap and the stacks that is in use, in
// bytes.
func memoryInUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // stacks shrink by half in each collection
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// pingsFor returns the 99th percentile of pings in a time, in milliseconds.
func pingsFor(ctx context.Context, h http.Handler, token string, long time.Duration) float64 {
	var pings []float64
	for begun := time.Now(); time.Since(begun) < long; time.Sleep(10 * time.Millisecond) {
		asked := time.Now()
		(&reader{}).get(ctx, h, token, "ping")
		pings = append(pings, time.Since(asked).Seconds()*1000)
	}
	slices.Sort(pings)
	return pings[len(pings)*99/100]
}

// BenchmarkWatchers measures clients that wait for changes, or follow them, in a
// list of which one job changes each second. The clients of one user see the
// same list. If each user may only see the user's own jobs, each has a list,
// which the gateway reads for this user alone.
func BenchmarkWatchers(b *testing.B) {
	quiet(b)
	for _, bb := range []struct {
		name           string
		jobs, users    int
		waits, streams int
	}{
		{"100 streams", 20_000, 1, 0, 100},
		{"1000 waits, 1000 streams", 20_000, 1, 1000, 1000},
		{"100 streams of 100 users, 200 jobs each", 200, 100, 0, 100},
	} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				g := newGenerator(b, bb.jobs, 5000, 4)
				g.constant.Store(true)
				h, token := listHandler(b, g.address), tokenOf("ann0")
				ctx, cancel := context.WithCancel(b.Context())
				quietPing := pingsFor(ctx, h, token, 5*time.Second)
				before := memoryInUse()

				var started, waits, wakes atomic.Int64
				var mu sync.Mutex
				var late []float64
				var clients sync.WaitGroup
				for n := range bb.streams {
					clients.Go(func() {
						token := tokenOf(fmt.Sprint("ann", n%bb.users))
						f := &follower{started: func() { started.Add(1) }, changed: func() {
							since := time.Since(time.Unix(0, g.changedAt.Load())).Seconds() * 1000
							mu.Lock()
							late = append(late, since)
							mu.Unlock()
						}}
						f.follow(ctx, h, token, "jobs?fields=job_id,job_state,name")
					})
				}
				for n := range bb.waits {
					clients.Go(func() {
						for path := fmt.Sprintf("job/%d", n+1); ctx.Err() == nil; { // each waits for a job of its own
							r := &reader{}
							status := r.get(ctx, h, token, path)
							if waits.Add(1); status == http.StatusOK {
								status = r.getIf(ctx, h, token, path+"?wait=60s", r.header.Get("ETag"))
							}
							switch {
							case status == http.StatusOK:
								wakes.Add(1)
							case status != http.StatusNotModified && ctx.Err() == nil:
								b.Errorf("status %d", status)
								return
							}
						}
					})
				}
				for started.Load() < int64(bb.streams) || waits.Load() < int64(bb.waits) {
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(3 * time.Second)
				used := memoryInUse() - before
				lists, singles, woken, cpu, begun := g.lists.Load(), g.singles.Load(), wakes.Load(), processorTime(b), time.Now()
				stop := make(chan struct{})
				go func() {
					for range time.Tick(time.Second) {
						select {
						case <-stop:
							return
						default:
							g.change()
						}
					}
				}()
				ping := pingsFor(ctx, h, token, 20*time.Second)
				close(stop)
				seconds := time.Since(begun).Seconds()
				b.ReportMetric(used/1024/float64(bb.waits+bb.streams), "KB/client")
				b.ReportMetric(float64(g.lists.Load()-lists)/seconds, "lists/s")
				b.ReportMetric(float64(g.singles.Load()-singles)/seconds, "jobs/s")
				b.ReportMetric(float64(wakes.Load()-woken), "wakes")
				b.ReportMetric((processorTime(b)-cpu).Seconds()/seconds, "processors")
				b.ReportMetric(quietPing, "quiet-ping-p99-ms")
				b.ReportMetric(ping, "ping-p99-ms")
				mu.Lock()
				slices.Sort(late)
				b.ReportMetric(float64(len(late))/float64(bb.streams), "events/stream")
				b.ReportMetric(late[len(late)*99/100], "event-p99-ms")
				mu.Unlock()
				cancel()
				clients.Wait()
			}
		})
	}
}

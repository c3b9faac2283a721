package bench

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

var crowd = &comparison{title: "one healthy client, a connection for each ping", columns: []string{"500 slow clients", "alone"}}

// slowClients is the number of slow clients. Each client sends a header that
// never ends, at one byte per second.
const slowClients = 500

// BenchmarkCrowd measures how a crowd of slow clients affects the latency of a
// normal client.
func BenchmarkCrowd(b *testing.B) {
	l := theLab.open(b)
	g := l.gateway(b)
	var with, without []float64
	for b.Loop() {
		without = append(without, l.latencies(b, g)...)
		stop := startSlowClients(b, g)
		with = append(with, l.latencies(b, g)...)
		stop()
	}
	for _, p := range []struct {
		name     string
		quantile float64
	}{{"p50", 0.50}, {"p99", 0.99}} {
		a, c := percentile(with, p.quantile), percentile(without, p.quantile)
		crowd.add(row{name: "latency, " + p.name, unit: "ms", figures: []float64{a, c}, ratio: a / c})
		b.ReportMetric(a, p.name+"-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// latencies returns the durations, in milliseconds, of pings that are sent one
// after the other.
func (l *lab) latencies(b *testing.B, s server) []float64 {
	b.Helper()
	var list []float64
	for range 200 {
		start := time.Now()
		if err := (load{request: get("/sched/v0.0.43/ping"), count: 1, singleClient: true}).run(s.dial); err != nil {
			b.Fatal(err)
		}
		list = append(list, time.Since(start).Seconds()*1000)
	}
	return list
}

// startSlowClients starts the slow clients. A client that is disconnected
// connects again.
func startSlowClients(b *testing.B, s server) (stop func()) {
	b.Helper()
	quit := make(chan struct{})
	var wait sync.WaitGroup
	for range slowClients {
		wait.Go(func() {
			for {
				c, err := s.dial(0)
				if err == nil {
					dribble(c, quit)
					c.Close()
				}
				select {
				case <-quit:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	time.Sleep(2 * time.Second) // until all clients have begun to send
	return func() { close(quit); wait.Wait() }
}

// dribble sends an endless header, one byte per second, until the server closes
// the connection or quit is closed.
func dribble(c net.Conn, quit <-chan struct{}) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, c)
	}()
	defer func() { c.Close(); <-closed }()
	for i := 0; ; i++ {
		if _, err := fmt.Fprintf(c, "%c", "GET / HTTP/1.1\r\nX: a"[min(i, 19)]); err != nil {
			return
		}
		select {
		case <-quit:
			return
		case <-closed:
			return
		case <-time.After(time.Second):
		}
	}
}

func percentile(list []float64, quantile float64) float64 {
	slices.Sort(list)
	return list[min(int(quantile*float64(len(list))), len(list)-1)]
}

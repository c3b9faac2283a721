package handlers

import (
	"io"
	"net/http"
	"testing"
)

// discard is a client that discards the answer.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) WriteHeader(int)             {}
func (d discard) Write(b []byte) (int, error) { return io.Discard.Write(b) }

// BenchmarkJobs measures the rendering of a list of 500 jobs, without a
// controller or a network.
func BenchmarkJobs(b *testing.B) {
	f := demo()
	job := f.jobs[0]
	for range 499 {
		f.jobs = append(f.jobs, job)
	}
	h := New(config(f))
	r := request(http.MethodGet, "/sched/v0.0.43/jobs", "")
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(discard{http.Header{}}, r)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*500), "ns/job")
}

// BenchmarkPing measures the minimum time that this package needs for a
// request.
func BenchmarkPing(b *testing.B) {
	h := New(config(demo()))
	r := request(http.MethodGet, "/sched/v0.0.43/ping", "")
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(discard{http.Header{}}, r)
	}
}

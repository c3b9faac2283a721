package queue

import (
	"testing"
	"time"
)

// BenchmarkStart measures the search for jobs to start among 10,000 held jobs.
// The controller does this under its lock after each submission.
func BenchmarkStart(b *testing.B) {
	q := New(Resources{CPUs: 1})
	for id := range uint32(10_000) {
		q.Add(id, Resources{CPUs: 1}, time.Time{}, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		q.Start(time.Now())
		q.NextBegin(time.Now())
	}
}

package queue

import (
	"testing"
	"time"
)

// BenchmarkStart measures how long the queue takes to look for jobs that can
// start when it contains 10,000 held jobs. The controller makes this search
// after each submission, while it holds its lock.
func BenchmarkStart(b *testing.B) {
	q := New(Resources{CPUs: 1})
	for id := range uint32(10_000) {
		q.Add(id, Resources{CPUs: 1}, time.Time{}, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		q.Start(time.Now(), always)
		q.NextBegin(time.Now())
	}
}

package queue

import (
	"testing"
	"time"
)

// BenchmarkStart is a look at 10,000 held jobs, as after each submission. The controller's lock is held for it.
func BenchmarkStart(b *testing.B) {
	q := New(Need{CPUs: 1})
	for id := range uint32(10_000) {
		q.Add(id, Need{CPUs: 1}, time.Time{}, true)
	}
	b.ReportAllocs()
	for b.Loop() {
		q.Start(time.Now())
		q.Next(time.Now())
	}
}

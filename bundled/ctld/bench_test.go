package ctld

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"schedrestd/model"
)

// BenchmarkSubmit measures how fast jobs are accepted and written to disk when
// 8 clients per CPU submit concurrently.
func BenchmarkSubmit(b *testing.B) {
	c, err := Open(b.Context(), Config{StateDir: filepath.Join(b.TempDir(), "state"), Log: quiet, MaxJobs: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	d := desc("/tmp", "true")
	d.Priority = model.Some[uint32](0) // held, so that only accepting is measured
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Submit(ownUser, d); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkRun measures how fast jobs run one after the other. The time
// includes their submission and the recording of their ends.
func BenchmarkRun(b *testing.B) {
	c, err := Open(b.Context(), Config{StateDir: filepath.Join(b.TempDir(), "state"), Log: quiet, CPUs: 1, MaxJobs: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { c.Run(ctx); close(done) }()
	defer func() { cancel(); <-done; c.Close() }()
	d := desc(b.TempDir(), "true")
	for range b.N {
		if _, err := c.Submit(ownUser, d); err != nil {
			b.Fatal(err)
		}
	}
	for len(c.activeIDs()) > 0 {
		time.Sleep(time.Millisecond)
	}
}

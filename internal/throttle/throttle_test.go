package throttle

import (
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestAllow checks how many lines about each source are written, and that every
// omitted line is counted.
func TestAllow(t *testing.T) {
	type counts = map[string]int
	for _, tt := range []struct {
		name             string
		limits           Row
		lines            counts // about each source
		written, omitted counts
	}{
		{"below the limits", Row{Each: 5, All: 20, Sources: 10}, counts{"a": 5, "b": 1}, counts{"a": 5, "b": 1}, counts{}},
		{"one source", Row{Each: 5, Sources: 10}, counts{"a": 100, "b": 1}, counts{"a": 5, "b": 1}, counts{"a": 95}},
		{"all together", Row{Each: 5, All: 7, Sources: 10}, counts{"a": 5, "b": 5}, counts{"a": 5, "b": 2}, counts{"b": 3}},
		{"a source that comes too late", Row{Each: 5, All: 5, Sources: 10}, counts{"a": 6, "b": 5}, counts{"a": 5}, counts{"a": 1, "": 5}},
		{"too many sources", Row{Each: 2, Sources: 2}, counts{"a": 2, "b": 3, "c": 3, "d": 3}, counts{"a": 2, "b": 2, "c": 2}, counts{"b": 1, "": 4}},
	} {
		synctest.Test(t, func(t *testing.T) {
			tt.limits.Period = time.Second
			var written, omitted counts
			var mu sync.Mutex // guards omitted
			l := Throttle[string]{Row: tt.limits, Report: func(src string, n int) {
				mu.Lock()
				defer mu.Unlock()
				omitted[src] += n
			}}
			for range 2 { // the limits of each period are the same
				written, omitted = counts{}, counts{}
				for _, src := range []string{"a", "b", "c", "d"} {
					for range tt.lines[src] {
						if l.Allow(src) {
							written[src]++
						}
					}
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if !maps.Equal(written, tt.written) || !maps.Equal(omitted, tt.omitted) {
					t.Errorf("%s: written %v, omitted %v", tt.name, written, omitted)
				}
			}
		})
	}
}

// TestFlush checks that Flush reports the omitted lines once, and leaves no
// timer behind.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := 0
		l := Throttle[string]{Row: Row{Each: 1, Sources: 1, Period: time.Minute}, Report: func(_ string, n int) { reports += n }}
		for range 4 {
			l.Allow("a")
		}
		l.Flush()
		time.Sleep(time.Hour)
		if reports != 3 || len(l.sources) != 0 || !l.Allow("b") {
			t.Errorf("%d lines were reported as omitted, %d sources are left", reports, len(l.sources))
		}
		l.Flush()
	})
}

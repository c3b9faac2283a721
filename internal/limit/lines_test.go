package limit

import (
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/rate"
)

// buffer is a log that several goroutines write.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// take returns what was written since the last call.
func (b *buffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}

// TestLines checks how many lines about each source are written, and that the
// log has the number of those that are left out.
func TestLines(t *testing.T) {
	type counts = map[string]int
	for _, tt := range []struct {
		name             string
		row              rate.Row
		lines            counts // about each source
		written, omitted counts
	}{
		{"below the limits", rate.Row{Burst: 5, All: 20, Max: 10}, counts{"a": 5, "b": 1}, counts{"a": 5, "b": 1}, counts{}},
		{"one source", rate.Row{Burst: 5, All: 20, Max: 10}, counts{"a": 100, "b": 1}, counts{"a": 5, "b": 1}, counts{"a": 95}},
		{"all together", rate.Row{Burst: 5, All: 7, Max: 10}, counts{"a": 5, "b": 5}, counts{"a": 5, "b": 2}, counts{"b": 3}},
		{"many sources", rate.Row{Burst: 1, All: 2, Max: 2}, counts{"a": 2, "b": 3, "c": 3, "d": 3}, counts{"a": 1, "b": 1}, counts{"a": 1, "b": 2, "others": 6}},
	} {
		synctest.Test(t, func(t *testing.T) {
			tt.row.PerSecond = tt.row.Burst
			var log buffer
			l := NewLines(tt.row, slog.New(slog.NewTextHandler(&log, nil)))
			for range 2 { // the buckets are full again after a second
				written, omitted := counts{}, ""
				for _, source := range []string{"a", "b", "c", "d"} {
					for range tt.lines[source] {
						if l.Allow(source) {
							written[source]++
						}
					}
				}
				time.Sleep(time.Second)
				synctest.Wait()
				omitted = log.take()
				if !maps.Equal(written, tt.written) {
					t.Errorf("%s: written %v", tt.name, written)
				}
				for source, n := range tt.omitted {
					if want := fmt.Sprintf("lines=%d period=1s source=%s\n", n, source); !strings.Contains(omitted, want) {
						t.Errorf("%s: no line with %s in\n%s", tt.name, want, omitted)
					}
				}
				if n := strings.Count(omitted, "\n"); n != len(tt.omitted) {
					t.Errorf("%s: %d sources in\n%s", tt.name, n, omitted)
				}
			}
		})
	}
}

// TestFlushOfLines checks that Flush reports what was left out once, and leaves
// no timer behind.
func TestFlushOfLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log buffer
		l := NewLines(rate.Row{Burst: 1, PerSecond: 1. / 60, All: 5, Max: 1}, slog.New(slog.NewTextHandler(&log, nil)))
		for range 3 {
			l.Allow("a")
		}
		l.Flush()
		l.Flush()
		time.Sleep(time.Hour)
		synctest.Wait()
		if text := log.take(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "lines=2 period=1m0s source=a") {
			t.Error(text)
		}
	})
}

// TestRequestLinesStayBelowJournald checks that two workers log fewer lines
// than journald's default limit permits, 10,000 in 30 s, however many clients send
// requests, even if each source that has a count of its own has lines left out.
func TestRequestLinesStayBelowJournald(t *testing.T) {
	const workers, seconds, journald = 2, 30, 10_000
	lines := 0
	for _, r := range []rate.Row{RequestLines, RefusalLines} {
		lines += int(r.All+seconds*r.All*r.PerSecond/r.Burst) + seconds*(r.Max+1)
	}
	if lines *= workers; lines > journald {
		t.Errorf("%d lines", lines)
	}
}

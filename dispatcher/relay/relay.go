// Package relay copies the lines that processes log. Each is escaped, cut and put
// behind the time and what the parent knows of its process, as
//
//	time=2026-11-22T15:04:05.000Z worker=2 worker_pid=4711 worker_uid=65534 LINE
//
// A process may be compromised. It can neither fill the disk, nor forge lines of
// others, nor send codes to a terminal; in LINE it may claim to be another one.
// Other formats are described at Log.
package relay

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"schedrestd/printable"
	"schedrestd/rate"
)

// write writes one line of a process in one call, so that lines are not mixed.
func write(to io.Writer, now time.Time, label, line string) {
	_, _ = fmt.Fprintf(to, "time=%s %s%s\n", now.Format(logTime), label, line)
}

// logTime is the format of times in the log, which is slog's.
const logTime = "2006-01-02T15:04:05.000Z07:00"

// Lines copies lines to the log until from ends, as far as quota allows. label is put
// before each.
func Lines(from io.Reader, to *Log, label string, quota *Quota) {
	in := bufio.NewReaderSize(from, readAhead)
	var missed int
	var since time.Time
	tell := func() {
		if missed > 0 {
			to.line(time.Now(), label, fmt.Sprintf(`level=WARN msg="too many log lines" lines_left_out=%d`, missed))
		}
		missed = 0
	}
	for {
		line, err := readLine(in)
		if line != "" {
			line, now := printable.Text(line), time.Now()
			switch {
			case quota.admit(len(label)+len(line), now):
				if missed > 0 && now.Sub(since) >= time.Second {
					tell()
				}
				to.line(now, label, line)
			case missed == 0:
				since = now
				fallthrough
			default:
				if missed++; missed%100 == 0 {
					time.Sleep(10 * time.Millisecond) // the pipe fills, and the flood waits in the worker
				}
			}
		}
		if err != nil {
			tell()
			return
		}
	}
}

// readAhead is how much of a process's output is read at once: many lines that it wrote together.
const readAhead = 16 << 10

// readLine reads to the next line feed and keeps the first maxLine bytes.
func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	kept := string(line[:min(len(line), printable.Most)])
	for err == bufio.ErrBufferFull {
		_, err = in.ReadSlice('\n')
	}
	if err != nil && err != io.EOF {
		err = io.EOF // the parent closed its end
	}
	return strings.TrimSuffix(kept, "\n"), err
}

// Quota limits the lines of processes that follow each other. A process that is
// started again gets what was left.
type Quota struct {
	mu    sync.Mutex // guards the buckets, which the loop of the pools may look at
	lines *rate.Bucket
	bytes *rate.Bucket
}

// LineSize is the average size of a line in bytes, that of a line about a
// request.
const LineSize = 200

// NewQuota returns a quota of so many lines at once, and then per second.
func NewQuota(lines, perSecond float64) *Quota {
	now := time.Now()
	return &Quota{lines: rate.New(lines, perSecond, now), bytes: rate.New(LineSize*lines, LineSize*perSecond, now)}
}

// admit reports whether there is quota for a line of so many bytes, and takes it.
func (q *Quota) admit(size int, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lines.Take(now, 1) && q.bytes.Take(now, float64(size))
}

// isFull reports whether nothing was taken from it, so that it is equivalent to
// a new one.
func (q *Quota) isFull(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lines.IsFull(now) && q.bytes.IsFull(now)
}

// Quotas holds the quotas of all workers, by user and place in the user's pool.
// They belong to one goroutine.
type Quotas struct{ list map[place]*Quota }

// place is where in the pools of a user a worker is.
type place struct {
	uid uint32
	i   int
}

// mostQuotas is how many are kept before those that are full are forgotten.
const mostQuotas = 1000

// Of returns the quota of the i-th worker of that user.
func (qs *Quotas) Of(uid uint32, i int, lines, perSecond float64) *Quota {
	at := place{uid, i}
	if q := qs.list[at]; q != nil {
		return q
	}
	if len(qs.list) >= mostQuotas {
		now := time.Now()
		maps.DeleteFunc(qs.list, func(_ place, q *Quota) bool { return q.isFull(now) })
	}
	if qs.list == nil {
		qs.list = map[place]*Quota{}
	}
	q := NewQuota(lines, perSecond)
	qs.list[at] = q
	return q
}

// Package relay copies the lines that processes log. It escapes and shortens
// each line, and puts the time and a label before it. The label contains the
// dispatcher's facts about the process:
//
//	time=2026-11-22T15:04:05.000Z worker=2 worker_pid=4711 worker_uid=65534 LINE
//
// A compromised process can't log more than its quota permits, forge lines of
// other processes, or send control characters to a terminal. It can claim to be
// another process only in LINE. For the other formats, see type Log.
package relay

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"schedrestd/internal/limit"
	"schedrestd/internal/printable"
	"schedrestd/internal/rate"
)

// asText returns a line as slog writes it.
func asText(now time.Time, label, line string) []byte {
	return fmt.Appendf(nil, "time=%s %s%s\n", now.Format(logTime), label, line)
}

// A lineBatch collects lines for standard error, so that one write contains
// many lines.
type lineBatch struct {
	to   *Log
	text []byte
}

// maxBatch is the size of the largest write to a pipe that is never mixed with
// the output of other processes (pipe(7)).
const maxBatch = 4096

func (j *lineBatch) add(now time.Time, label, line string) {
	text := j.to.deliver(now, label, line)
	if len(j.text)+len(text) > maxBatch {
		j.flush()
	}
	j.text = append(j.text, text...)
}

func (j *lineBatch) flush() {
	if len(j.text) > 0 {
		_, _ = j.to.errOut.Write(j.text)
		j.text = j.text[:0]
	}
}

// logTime is the format of times in the log, the same as slog's.
const logTime = "2006-01-02T15:04:05.000Z07:00"

// Lines copies the lines of a process to the log, as far as quota permits. It
// returns when the process's output ends. It writes label before each line.
func Lines(from io.Reader, to *Log, label string, quota *Quota) {
	in := bufio.NewReaderSize(from, readAhead)
	out := lineBatch{to: to}
	var dropped int
	var firstDropped time.Time
	reportDropped := func() {
		if dropped > 0 {
			out.add(time.Now(), label, fmt.Sprintf(`level=WARN msg="too many log lines" lines_dropped=%d`, dropped))
		}
		dropped = 0
	}
	for {
		if ahead, _ := in.Peek(in.Buffered()); bytes.IndexByte(ahead, '\n') < 0 {
			out.flush() // the next line may take a long time to arrive
		}
		line, err := readLine(in)
		if line != "" {
			line, now := printable.Text(line), time.Now()
			switch {
			case quota.admit(len(label)+len(line), now):
				if dropped > 0 && now.Sub(firstDropped) >= time.Second {
					reportDropped()
				}
				out.add(now, label, line)
			case dropped == 0:
				firstDropped = now
				fallthrough
			default:
				if dropped++; dropped%100 == 0 {
					time.Sleep(10 * time.Millisecond) // so that the pipe fills up and the process has to wait
				}
			}
		}
		if err != nil {
			reportDropped()
			out.flush()
			return
		}
	}
}

// readAhead is the size of the buffer for a process's output. It has space for
// many lines.
const readAhead = 16 << 10

// readLine reads a line up to its line feed, and returns at most its first
// printable.MaxLength bytes.
func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	text := string(line[:min(len(line), printable.MaxLength)])
	for err == bufio.ErrBufferFull {
		_, err = in.ReadSlice('\n')
	}
	if err != nil && err != io.EOF {
		err = io.EOF // this process closed its end
	}
	return strings.TrimSuffix(text, "\n"), err
}

// A Quota limits the log lines of a process and of the processes that replace
// it later. The replacements get only the rest of the quota.
type Quota struct {
	mu    sync.Mutex // guards the buckets, which the loop of package pool may also read
	lines *rate.Bucket
	bytes *rate.Bucket
}

// NewQuota returns a Quota that permits the given number of lines at once, and
// perSecond more each second.
func NewQuota(lines, perSecond float64) *Quota {
	now := time.Now()
	return &Quota{lines: rate.New(limit.LogLines.Of(lines, perSecond), now),
		bytes: rate.New(limit.LogBytes.Of(limit.LogLineSize*lines, limit.LogLineSize*perSecond), now)}
}

// admit reports whether the quota permits a line of size bytes. If so, admit
// deducts the line from the quota.
func (q *Quota) admit(size int, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lines.Take(now, 1) && q.bytes.Take(now, float64(size))
}

// isFull reports whether the quota is completely unused. Such a quota can be
// dropped, because a new one permits the same.
func (q *Quota) isFull(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lines.IsFull(now) && q.bytes.IsFull(now)
}

// A Quotas holds the log quotas of all workers, by user and by place in the
// user's pool. It must be used in only one goroutine.
type Quotas struct{ quotas map[place]*Quota }

// A place identifies the i-th worker of the user uid, and later the worker that
// replaces it.
type place struct {
	uid uint32
	i   int
}

// maxQuotas is the number of quotas at which Of drops unused quotas before it
// adds another.
const maxQuotas = 1000

// Of returns the quota of the i-th worker of the user uid.
func (qs *Quotas) Of(uid uint32, i int, lines, perSecond float64) *Quota {
	key := place{uid, i}
	if q := qs.quotas[key]; q != nil {
		return q
	}
	if len(qs.quotas) >= maxQuotas {
		now := time.Now()
		maps.DeleteFunc(qs.quotas, func(_ place, q *Quota) bool { return q.isFull(now) })
	}
	if qs.quotas == nil {
		qs.quotas = map[place]*Quota{}
	}
	q := NewQuota(lines, perSecond)
	qs.quotas[key] = q
	return q
}

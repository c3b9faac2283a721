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
	"strings"
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

// A Quota limits the log lines of a process and of the processes that replace it
// later. The replacements get only the rest of the quota.
type Quota struct {
	bytes *rate.Buckets[place]
	of    place
}

// A place identifies the i-th worker of the user uid, and later the worker that
// replaces it.
type place struct {
	uid uint32
	i   int
}

// NewQuota returns a Quota that permits the given number of lines at once, and
// perSecond more each second.
func NewQuota(lines, perSecond float64) *Quota {
	return &Quota{bytes: rate.NewBuckets[place](limit.LogBytes.Of(limit.LogLineSize*lines, limit.LogLineSize*perSecond))}
}

// Of returns another Quota like q, for the i-th worker of the user uid.
func (q *Quota) Of(uid uint32, i int) *Quota { return &Quota{q.bytes, place{uid, i}} }

// admit reports whether the quota permits a line of size bytes. If so, admit
// deducts the line from the quota.
func (q *Quota) admit(size int, now time.Time) bool {
	return q.bytes.Take(now, q.of, float64(max(size, limit.LogLineSize))) == 0
}

package privsep

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxLine is how much of a line of a worker reaches the log, in bytes.
const maxLine = 2048

// relay copies what a worker writes to its fd 2 into the log, line by line. The worker
// may be captured: lines are cut, counted and escaped, so that it can neither fill
// the disk at will, nor forge lines of others, nor send codes to a terminal.
func (p *pool) relay(w *worker) {
	defer close(w.silent)
	in := bufio.NewReaderSize(w.log, maxLine)
	budget := newBudget(p.config.LogBurst, p.config.LogRate, time.Now())
	log := p.log.With("worker", w.number, "worker_uid", p.who.UID)
	for {
		line, err := readLine(in)
		if line != "" {
			ok, missed := budget.spend(time.Now())
			if missed > 0 {
				log.Warn("worker logs too much", "lines_left_out", missed)
			}
			if ok {
				level, text := levelOf(line)
				log.Log(context.Background(), level, "worker: "+printable(text))
			} else if budget.missed%100 == 0 {
				time.Sleep(10 * time.Millisecond) // the pipe fills, and the flood waits in the worker
			}
		}
		if err != nil {
			if missed := budget.missed; missed > 0 {
				log.Warn("worker logs too much", "lines_left_out", missed)
			}
			return
		}
	}
}

// readLine reads to the next line feed and keeps the first maxLine bytes.
func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	kept := string(line)
	for err == bufio.ErrBufferFull {
		_, err = in.ReadSlice('\n')
	}
	if err != nil && err != io.EOF {
		err = io.EOF // the parent closed its end
	}
	return strings.TrimSuffix(kept, "\n"), err
}

// levelOf splits the mark off a line that worker/log.go wrote: "<" level ">". A line
// without one comes from the Go runtime, which only speaks up in trouble.
func levelOf(line string) (slog.Level, string) {
	mark, text, ok := strings.Cut(line, ">")
	if !ok || !strings.HasPrefix(mark, "<") {
		return slog.LevelError, line
	}
	n, err := strconv.ParseInt(mark[1:], 10, 8)
	if err != nil {
		return slog.LevelError, line
	}
	return min(slog.Level(n), slog.LevelError), text
}

// printable makes s safe for a log and a terminal: what can't be printed is escaped,
// what is too long is cut.
func printable(s string) string {
	var b strings.Builder
	for i, r := range s {
		if b.Len() >= maxLine {
			b.WriteString("…")
			break
		}
		switch {
		case r == unicode.ReplacementChar:
			q := strconv.QuoteToASCII(s[i : i+1])
			b.WriteString(q[1 : len(q)-1])
		case !unicode.IsPrint(r):
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// budget is a token bucket of lines.
type budget struct {
	burst, rate float64
	left        float64
	at          time.Time
	missed      int
	since       time.Time // when the first of the missed was refused
}

func newBudget(burst, rate int, now time.Time) *budget {
	return &budget{burst: float64(burst), rate: float64(rate), left: float64(burst), at: now}
}

// spend takes one line out of the budget. missed is how many were refused, told at most
// once a second, with a line that passes.
func (b *budget) spend(now time.Time) (ok bool, missed int) {
	b.left = min(b.burst, b.left+b.rate*now.Sub(b.at).Seconds())
	b.at = now
	if b.left < 1 {
		if b.missed == 0 {
			b.since = now
		}
		b.missed++
		return false, 0
	}
	b.left--
	if b.missed > 0 && now.Sub(b.since) >= time.Second {
		missed, b.missed = b.missed, 0
	}
	return true, missed
}

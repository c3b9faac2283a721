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

// maxLine is how much of a line of a process reaches the log, in bytes.
const maxLine = 2048

// relay copies what a process writes to its fd 2 into log, each line as one record with
// the attributes that log has for it. The process may be captured: lines are cut, counted and
// escaped, what the parent says about them comes first and can't be said again, and their
// text starts with its role, as "worker: ". So it can neither fill the disk at will, nor
// forge lines of others, nor send codes to a terminal.
func (p *process) relay(role string, log *slog.Logger, budget *budget) {
	defer close(p.silent)
	in := bufio.NewReaderSize(p.log, readAhead)
	for {
		line, err := readLine(in)
		if line != "" {
			ok, missed := budget.spend(time.Now())
			if missed > 0 {
				log.Warn(role+" logs too much", "lines_left_out", missed)
			}
			if ok {
				e := readEntry(line)
				log.LogAttrs(context.Background(), e.level, role+": "+e.msg, e.attrs...)
			} else if budget.missed%100 == 0 {
				time.Sleep(10 * time.Millisecond) // the pipe fills, and the flood waits in the worker
			}
		}
		if err != nil {
			if missed := budget.missed; missed > 0 {
				log.Warn(role+" logs too much", "lines_left_out", missed)
			}
			return
		}
	}
}

// readAhead is how much of a process's output is read at once: many lines that it wrote together.
const readAhead = 16 << 10

// readLine reads to the next line feed and keeps the first maxLine bytes.
func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	kept := string(line[:min(len(line), maxLine)])
	for err == bufio.ErrBufferFull {
		_, err = in.ReadSlice('\n')
	}
	if err != nil && err != io.EOF {
		err = io.EOF // the parent closed its end
	}
	return strings.TrimSuffix(kept, "\n"), err
}

// printable makes s safe for a log and a terminal: what can't be printed is escaped,
// what is too long is cut.
func printable(s string) string {
	if len(s) <= maxLine && isPlain(s) {
		return s
	}
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

// isPlain tells whether s is printable ASCII, as nearly all is.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
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

// take takes n out of the budget, or nothing.
func (b *budget) take(n int, now time.Time) bool {
	b.left = min(b.burst, b.left+b.rate*now.Sub(b.at).Seconds())
	b.at = now
	if b.left < float64(n) {
		return false
	}
	b.left -= float64(n)
	return true
}

// spend takes one line out of the budget. missed is how many were refused, told at most
// once a second, with a line that passes.
func (b *budget) spend(now time.Time) (ok bool, missed int) {
	if !b.take(1, now) {
		if b.missed == 0 {
			b.since = now
		}
		b.missed++
		return false, 0
	}
	if b.missed > 0 && now.Sub(b.since) >= time.Second {
		missed, b.missed = b.missed, 0
	}
	return true, missed
}

package pool

import (
	"context"
	"log/slog"
	"time"

	"schedrestd/gateway/dispatcher/process"
)

// The kinds of events that users can cause without limit. Slots.lines limits the log
// lines about each, so that they can't fill the disk; counters have the numbers.
const (
	refusedLines = "connection refused"
	blockedLines = "source blocked"
	failureLines = "worker failed"
	routineLines = "routine event"
)

// mayLog reports whether another line about an event of this kind may be logged.
func (s *Slots) mayLog(kind string) bool { return s.lines.Take(time.Now(), kind, 1) == 0 }

// logFailure logs that a worker failed or could not start. In lazy pools, it
// limits the number of lines: users can cause any number of failures by killing
// their own workers or by reaching their process limit.
func (p *Pool) logFailure(level slog.Level, msg string, attrs ...any) {
	if p.Lazy {
		p.Slots.counts.lost++
		if !p.Slots.mayLog(failureLines) {
			return
		}
		attrs = append(attrs, "workers_lost_so_far", p.Slots.counts.lost)
	}
	p.Log.Log(context.Background(), level, msg, attrs...)
}

// alarm logs an event that only an attacker who controls a worker can cause.
// The number of alarms is not limited, because an attacker could use up a limit
// to hide a later alarm. For each alarm, the attacker loses a process, and the
// clients that the worker was answering get a penalty.
func (p *Pool) alarm(msg string, attrs ...any) {
	p.Log.Error(msg, append(attrs, "hint", process.CaptureHint)...)
}

// logRoutine logs a routine event of a worker. In a pool with SingleUse, the
// level is Debug. In any other lazy pool, the number of lines is limited.
func (p *Pool) logRoutine(msg string, attrs ...any) {
	if p.SingleUse {
		p.Log.Debug(msg, attrs...)
		return
	}
	if !p.Lazy || p.Slots.mayLog(routineLines) {
		p.Log.Info(msg, attrs...)
	}
}

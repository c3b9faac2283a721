package pool

import (
	"context"
	"log/slog"

	"schedrestd/gateway/dispatcher/process"
)

// logFailure logs that a worker failed or could not start. In lazy pools, it
// limits the number of lines: users can cause any number of failures by killing
// their own workers or by reaching their process limit.
func (p *Pool) logFailure(level slog.Level, msg string, attrs ...any) {
	if p.failures != nil {
		n, ok := p.failures.add()
		if !ok {
			return
		}
		attrs = append(attrs, "workers_lost_so_far", n)
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
	if p.routine != nil {
		if _, ok := p.routine.add(); !ok {
			return
		}
	}
	p.Log.Info(msg, attrs...)
}

package pool

import (
	"context"
	"log/slog"

	"schedrestd/dispatcher/process"
)

// complain logs that a worker failed or could not start. Users at the limit of
// processes, or who kill their own workers, determine how often that happens.
func (p *Pool) complain(level slog.Level, msg string, attrs ...any) {
	if p.lost != nil {
		n, ok := p.lost.add()
		if !ok {
			return
		}
		attrs = append(attrs, "workers_lost_so_far", n)
	}
	p.Log.Log(context.Background(), level, msg, attrs...)
}

// alarm logs what no worker does unless an attacker controls it. It is never
// limited, because other lines could hide it: each costs a process, and a
// penalty for the clients that the worker was answering.
func (p *Pool) alarm(msg string, attrs ...any) {
	p.Log.Error(msg, append(attrs, "hint", process.CaptureHint)...)
}

// mention logs routine events of a worker. Their numbers show how many were
// left out. With one worker for each connection they are not worth a line.
func (p *Pool) mention(msg string, attrs ...any) {
	if p.Once {
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

package pool

import (
	"context"
	"log/slog"

	"schedrestd/privsep/spawn"
)

// complain logs that a worker ended badly, or could not start. A user at the limit of processes, or one
// who kills their own workers, decides how often that is.
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

// alarm logs what no worker does unless an attacker controls it. It is never limited, since others could hide it:
// each costs a process, and the clients that the worker was answering a penalty.
func (p *Pool) alarm(msg string, attrs ...any) {
	p.Log.Error(msg, append(attrs, "hint", spawn.CaptureHint)...)
}

// mention logs what happens to every worker; their numbers show what was left out. With one for each
// connection it is no news.
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

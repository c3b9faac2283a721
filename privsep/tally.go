package privsep

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"schedrestd/privsep/spawn"
	"schedrestd/rate"
)

// tally counts something that clients or users can make happen as often as they like. The lines about
// it are limited, so that nobody fills the disk; the count is exact.
type tally struct {
	mu    sync.Mutex
	n     uint64
	lines *rate.Bucket
}

func newTally() *tally { return &tally{lines: rate.New(50, 5, time.Now())} }

// add counts one more, and tells whether a line may say so.
func (t *tally) add() (n uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	return t.n, t.lines.Take(time.Now(), 1)
}

// complain logs that a worker ended badly, or could not begin. A user at his limit of processes, or one
// who kills his own workers, decides how often that is.
func (p *pool) complain(level slog.Level, msg string, attrs ...any) {
	if p.lost != nil {
		n, ok := p.lost.add()
		if !ok {
			return
		}
		attrs = append(attrs, "workers_lost_so_far", n)
	}
	p.log.Log(context.Background(), level, msg, attrs...)
}

// alarm logs what no worker does unless somebody else is in it. It is never limited, since one could be hidden by others:
// each costs a process, and those whom the worker was answering a penalty.
func (p *pool) alarm(msg string, attrs ...any) {
	p.log.Error(msg, append(attrs, "hint", spawn.CaptureHint)...)
}

// mention logs what happens to every worker; their numbers tell what was left out. With one for each
// connection it is no news.
func (p *pool) mention(msg string, attrs ...any) {
	if p.once {
		p.log.Debug(msg, attrs...)
		return
	}
	if p.routine != nil {
		if _, ok := p.routine.add(); !ok {
			return
		}
	}
	p.log.Info(msg, attrs...)
}

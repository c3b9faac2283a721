package worker

import (
	"context"

	"schedrestd/auth"
	"schedrestd/gateway/worker/limiter"
	"schedrestd/gateway/worker/meter"
	"schedrestd/handlers/feed"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// A process is what this process does for its handlers. It implements
// rest.Worker.
type process struct {
	rest.Audit
	memory func(model.Credential) feed.Reservation
	watch  func(token, actAs string, ended func(auth.Answer)) (end func())
}

func (p process) Memory(cred model.Credential) feed.Reservation { return p.memory(cred) }

func (p process) WatchToken(token, actAs string, ended func(auth.Answer)) (end func()) {
	return p.watch(token, actAs, ended)
}

func (process) Admit(ctx context.Context, user string) error { return limiter.Admit(ctx, user) }

func (process) Park(ctx context.Context, user string, stop func()) (rest.Parked, error) {
	return limiter.Park(ctx, user, stop)
}

func (process) Observe(o rest.Observation) { meter.ObserveRequest(o) }

func (process) CountWatch(what feed.Count, n int) { meter.CountWatch(what, n) }

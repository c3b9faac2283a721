package worker

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"schedrestd/auth"
	"schedrestd/gateway/worker/keys"
	"schedrestd/handlers"
	"schedrestd/ipc/work"
)

// draining is set while this worker finishes its requests before it exits.
// /readyz then tells load balancers to send no more requests. A retired worker
// does not set draining, because other workers still serve. A process runs at
// most one worker, so this can be a global variable.
var draining atomic.Bool

// readiness returns the checks behind /readyz. A check that has a problem is a
// reason why load balancers should send requests elsewhere. One calls reachable
// to find out why no controller can be reached. If no controller is needed,
// reachable is nil.
func readiness(k *keys.Keys, reachable func(context.Context) error) func(context.Context) []handlers.Check {
	return func(ctx context.Context) []handlers.Check {
		list := []handlers.Check{{Name: "draining"}}
		if draining.Load() {
			list[0].Problem = "this server is shutting down"
		}
		problems := k.Problems(time.Now())
		if len(problems) == 0 {
			list = append(list, handlers.Check{Name: "keys"})
		}
		for _, p := range problems {
			list = append(list, handlers.Check{Name: "keys", Problem: p})
		}
		if reachable != nil {
			controller := handlers.Check{Name: "controller"}
			if err := reachable(ctx); err != nil {
				controller.Problem = err.Error()
			}
			list = append(list, controller)
		}
		return list
	}
}

// administers returns a function that reports whether a verified credential is
// that of root or SchedUser. A token with the name of another user counts only
// if the token's own user is one of them, too. If the daemons take the user's uid
// from the token, this uid decides, as the issuer may have given any name to it.
func administers(setup work.Setup) func(auth.Credential) bool {
	isAdmin := func(uid uint32) bool { return uid == 0 || uid == setup.SchedUID }
	return func(c auth.Credential) bool {
		if c.Local {
			return isAdmin(c.UID)
		}
		own := slices.Contains(setup.Privileged, c.Claims.User)
		if c.Claims.UID != nil {
			own = isAdmin(*c.Claims.UID)
		}
		return own && (c.ActAs == "" || c.ActAs == c.Claims.User || slices.Contains(setup.Privileged, c.ActAs))
	}
}

package worker

import (
	"context"
	"crypto/x509"
	"fmt"
	"sync/atomic"
	"time"

	"schedrestd/rpc/client"
)

// The state that /readyz reports. A process runs at most one worker, so the
// state can be in global variables.
var (
	// draining is set while this worker finishes its requests before it exits.
	// /readyz then tells load balancers to send no more requests. A retired
	// worker does not set draining, because other workers still serve.
	draining atomic.Bool

	// servedCert is the certificate that https:// clients get, or nil if there
	// is none.
	servedCert atomic.Pointer[x509.Certificate]

	// certUnusable is set if a certificate is configured but can't be used.
	certUnusable atomic.Bool
)

// readiness returns the check behind /readyz. The check returns the reasons why
// load balancers should send requests elsewhere. It calls reachable to find out
// whether a controller can be reached. If no controller is needed, reachable is
// nil.
func readiness(tokens *Tokens, reachable func(context.Context) bool) func(context.Context) []string {
	return func(ctx context.Context) (reasons []string) {
		if draining.Load() {
			reasons = append(reasons, "draining: this server is shutting down")
		}
		if certUnusable.Load() {
			reasons = append(reasons, "keys: the certificate can't be used; see the log")
		}
		if c := servedCert.Load(); c != nil {
			reasons = append(reasons, validityProblems(c, time.Now())...)
		}
		reasons = append(reasons, tokens.problems()...)
		if reachable != nil && !reachable(ctx) {
			reasons = append(reasons, fmt.Sprintf("controller: unreachable for %s", client.UnreachableAfter))
		}
		return reasons
	}
}

// validityProblems returns the reason why clients reject the certificate at the
// given time: it is not valid yet, or it has expired. The result is nil if the
// certificate is valid.
func validityProblems(c *x509.Certificate, now time.Time) []string {
	switch {
	case now.Before(c.NotBefore):
		return []string{"keys: the certificate is not valid before " + c.NotBefore.UTC().Format(time.RFC3339)}
	case now.After(c.NotAfter):
		return []string{"keys: the certificate expired at " + c.NotAfter.UTC().Format(time.RFC3339)}
	}
	return nil
}

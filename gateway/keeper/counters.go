package keeper

import (
	"log/slog"
	"sync/atomic"

	"schedrestd/ipc/query"
)

// counters counts requests of workers since this keeper started.
type counters struct {
	clients                  atomic.Int64  // workers that have a channel at present
	signed, unsigned         atomic.Uint64 // messages that were signed, and messages that were refused
	genuine, forged, unknown atomic.Uint64 // answers about tokens
	exchanged, unexchanged   atomic.Uint64 // gateway tokens for which a worker got one of the daemons, and those that were refused
	stamped, unstamped       atomic.Uint64 // messages to daemons that got a credential, and those that did not
	slowed                   atomic.Uint64 // questions that were delayed because their worker asked too fast
	violations               atomic.Uint64 // workers that violated the protocol
}

// countVerdict counts an answer about a token.
func (c *counters) countVerdict(v *query.Verified) *query.Verified {
	switch v.Verdict {
	case query.Genuine:
		c.genuine.Add(1)
	case query.Forged:
		c.forged.Add(1)
	default:
		c.unknown.Add(1)
	}
	return v
}

// countExchange counts an answer about a gateway token.
func (c *counters) countExchange(e *query.Exchanged) *query.Exchanged {
	if e.Verdict == query.Genuine {
		c.exchanged.Add(1)
	} else {
		c.unexchanged.Add(1)
	}
	return e
}

// countStamp counts an answer about a message to a daemon.
func (c *counters) countStamp(s *query.Stamped) *query.Stamped {
	if len(s.Credential) > 0 {
		c.stamped.Add(1)
	} else {
		c.unstamped.Add(1)
	}
	return s
}

// list returns the counters for the log.
func (c *counters) list() []any {
	return []any{"clients", c.clients.Load(),
		slog.Group("handshakes", "signed", c.signed.Load(), "unsigned", c.unsigned.Load()),
		slog.Group("tokens", "genuine", c.genuine.Load(), "forged", c.forged.Load(), "unknown", c.unknown.Load()),
		slog.Group("gateway_tokens", "exchanged", c.exchanged.Load(), "refused", c.unexchanged.Load()),
		slog.Group("messages", "stamped", c.stamped.Load(), "not_stamped", c.unstamped.Load()),
		"slowed", c.slowed.Load(), "violations", c.violations.Load()}
}

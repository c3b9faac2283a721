package keeper

import "time"

// What one question costs of a second, which is what a worker has in each. No honest worker comes near: to make the rest of a
// handshake, or to read the request of a token, takes it longer. A captured one can't have the processor for itself.
const (
	signing   = time.Second / 5000
	verifying = time.Second / 25000
)

// burst is what a worker may ask at once, after a rest.
const burst = time.Second

// pace is how far a worker is with what it may ask.
type pace struct {
	paid time.Time // until when all that was asked is paid for
}

// take is how long to wait before a question of that cost is answered. What comes meanwhile waits in the worker's own channel.
func (p *pace) take(now time.Time, cost time.Duration) time.Duration {
	if earliest := now.Add(-burst); p.paid.Before(earliest) {
		p.paid = earliest
	}
	p.paid = p.paid.Add(cost)
	return max(0, p.paid.Sub(now))
}

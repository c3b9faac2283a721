package keeper

import "crypto/rsa"

// questions is a worker's budget per second, and also the largest burst. The
// unit is the CPU time of one verification. In this unit, the other constants
// give the cost of each kind of question. The whole budget corresponds to half
// a second of one CPU. An honest worker stays far below the budget, because its
// own part of a handshake, or of a request with a token, takes longer than the
// keeper's part. A compromised worker can't use up the CPU: further questions
// wait in the worker's own channel.
const (
	questions  = 25_000
	signing    = questions / 5000 // with an elliptic curve
	signingRSA = questions / 1000 // with 2048 bits: 0.5 ms, and eight times as long with twice the bits
	verifying  = 1
)

// price returns the cost of a signature by p. p is nil if there is no key.
func (p *pair) price() float64 {
	if p == nil {
		return verifying
	}
	public, ok := p.signer.Public().(*rsa.PublicKey)
	if !ok {
		return signing
	}
	size := float64(public.N.BitLen()) / 2048
	return signingRSA * size * size * size
}

package keeper

import "crypto/rsa"

// budgetPerSecond is a worker's budget per second, and also the largest burst.
// The other constants are the costs of questions. The unit is the CPU time of
// one verification, so the whole budget is half a second of one CPU. An honest
// worker stays far below it, because its own part of a handshake, or of a
// request with a token, takes longer than the keeper's part. A compromised
// worker can't use up the CPU: its further questions wait in its own channel.
const (
	budgetPerSecond = 25_000
	signCost        = budgetPerSecond / 5000 // with an elliptic curve
	signRSACost     = budgetPerSecond / 1000 // with 2048 bits: 0.5 ms, and eight times as long with twice the bits
	verifyCost      = 1
)

// cost returns the cost of a signature by p. p is nil if there is no key.
func (p *pair) cost() float64 {
	if p == nil {
		return verifyCost
	}
	public, ok := p.signer.Public().(*rsa.PublicKey)
	if !ok {
		return signCost
	}
	size := float64(public.N.BitLen()) / 2048
	return signRSACost * size * size * size
}

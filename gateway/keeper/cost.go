package keeper

import "crypto/rsa"

// The costs of questions, in units of 20 µs. One verification takes 20 µs of
// CPU time. A worker may use budgetPerSecond units each second, which is half
// of one CPU. It can use a second's budget in one burst. An honest worker stays
// far below this budget, because its own work on a handshake or a token takes
// longer than the keeper's. A compromised worker can't use up the CPU: its
// further questions wait in its own channel.
const (
	budgetPerSecond = 25_000
	signCost        = budgetPerSecond / 5000 // with an elliptic curve
	signRSACost     = budgetPerSecond / 1000 // 0.5 ms with 2048 bits; eight times as long with twice as many bits
	verifyCost      = 1
)

// cost returns the cost of a signature by p. If no key is loaded, p is nil, and
// the cost is that of a verification.
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

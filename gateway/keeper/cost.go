package keeper

import "crypto/rsa"

// The costs of questions, in units of 20 µs. One verification takes 20 µs of
// CPU time. A worker may use limit.KeeperWork. A compromised worker can't use up
// the CPU: its further questions wait in its own channel.
const (
	signCost    = 5  // with an elliptic curve
	signRSACost = 25 // 0.5 ms with 2048 bits; eight times as long with twice as many bits
	verifyCost  = 1

	verifyRSACost = 6 // 0.12 ms with 2048 bits; four times as long with twice as many bits

	exchangeCost = 3

	stampPartCost = 1 // to hash 24 KiB
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

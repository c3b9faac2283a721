package keeper

import "crypto/rsa"

// questions is how many a worker may ask in a second, and at once after a rest, and the others are what each of them counts for, in
// the processor's time: all of them come to half a second of one. No
// honest worker comes near: to make the rest of a handshake, or to read the request of a token, takes it longer. A captured one can't
// have the processor for itself. What comes meanwhile waits in the worker's own channel.
const (
	questions  = 25_000
	signing    = questions / 5000 // by a curve
	signingRSA = questions / 1000 // with 2048 bits: 0.5 ms, and eight times as long with twice as many
	verifying  = 1
)

// price is what a signature by p counts for; nil is a key that is not kept.
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

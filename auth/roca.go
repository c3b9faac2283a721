package auth

import "math/big"

// rocaPrimes lists the first primes after 2, which the function roca tests. The
// chips with the vulnerability ROCA use at least these primes, for RSA keys of
// any size.
var rocaPrimes = []int64{
	3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97,
	101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
}

// roca reports whether a modulus can be factored because of the vulnerability
// ROCA (Nemec and others, "The Return of Coppersmith's Attack", 2017). The
// vulnerable chips, in smart cards and TPMs, generated primes that are powers
// of 65537 modulo the product of small primes. So the product n of two such
// primes is a power of 65537 modulo each of the small primes. Any other n has
// this property with a probability of less than one in a hundred million.
func roca(n *big.Int) bool {
	for _, p := range rocaPrimes {
		residue := new(big.Int).Mod(n, big.NewInt(p)).Int64()
		power := int64(1)
		for range p { // more iterations than there are powers
			if power == residue {
				break
			}
			power = power * 65537 % p
		}
		if power != residue {
			return false
		}
	}
	return true
}

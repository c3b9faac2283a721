package jose

import "math/big"

// rocaPrimes lists the small primes that the function roca uses to test a
// modulus. They are sufficient to detect keys of any size from a chip with the
// ROCA vulnerability.
var rocaPrimes = []int64{
	3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97,
	101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
}

// roca reports whether a modulus can be factored because of the ROCA
// vulnerability (Nemec and others, "The Return of Coppersmith's Attack", 2017).
// Some smart cards and TPMs generated only primes that are powers of 65537
// modulo each of the primes in rocaPrimes. The product n of two such primes is
// also a power of 65537 modulo each prime in rocaPrimes. The probability that
// any other n has this property is less than one in a hundred million.
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

package munge

import (
	"encoding/binary"

	"github.com/cloudflare/circl/xof/k12"
)

// kindK12 is the number of the hash function KT128 in a payload. Slurm's
// commands use it, and every release from 22.05 on accepts it. A site may
// forbid the alternatives: SHA-256, SHA-3, and no hash.
const kindK12 = 2

// Payload returns the payload of a message's credential: a hash of the encoded
// body and the number of the message, so that the credential is useless with
// any other message. A daemon that finds another payload closes the connection
// without an answer.
func Payload(number uint16, body []byte) []byte {
	return append([]byte{kindK12}, kangarooTwelve(body, binary.BigEndian.AppendUint16(nil, number))...)
}

// kangarooTwelve returns 32 bytes of KT128 of RFC 9861.
func kangarooTwelve(message, customisation []byte) []byte {
	sum := make([]byte, 32)
	k12.Draft10Sum(sum, message, customisation)
	return sum
}

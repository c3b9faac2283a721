package munge

import (
	"encoding/binary"

	"github.com/cloudflare/circl/xof/k12"
)

// kindK12 is the number in a payload that stands for the hash function KT128.
// Slurm's commands use KT128, and every release from 22.05 on accepts it. A
// site may forbid the alternatives: SHA-256, SHA-3, and a payload without a
// hash.
const kindK12 = 2

// Payload returns the payload for the credential of a message. It is a hash of
// the encoded body and of the message's type number, so the credential is
// useless with any other message. A daemon that gets a wrong payload closes the
// connection without an answer.
func Payload(number uint16, body []byte) []byte {
	return append([]byte{kindK12}, kangarooTwelve(body, binary.BigEndian.AppendUint16(nil, number))...)
}

// kangarooTwelve returns 32 bytes of output of KT128 (RFC 9861).
func kangarooTwelve(message, customisation []byte) []byte {
	sum := make([]byte, 32)
	k12.Draft10Sum(sum, message, customisation)
	return sum
}

// Package payload computes what the credential of a message contains: a hash of
// the message. So a credential of MUNGE or auth/slurm is useless with any other
// message.
package payload

import (
	"encoding/binary"

	"github.com/cloudflare/circl/xof/k12"
)

// kindK12 is the number in a payload that stands for the hash function KT128.
// Slurm's commands use KT128, and every release from 22.05 on accepts it. A
// site may forbid the alternatives: SHA-256, SHA-3, and a payload without a
// hash.
const kindK12 = 2

// Size is the length of a payload in bytes.
const Size = 33

// Of returns the payload for the credential of a message. It is a hash of
// the encoded body and of the message's type number. A daemon that gets a wrong
// payload closes the connection without an answer.
func Of(number uint16, body []byte) []byte {
	h := New(number)
	h.Write(body)
	return h.Payload()
}

// A Hash computes the payload of a message whose body comes in parts.
type Hash struct{ state k12.State }

// New returns a Hash for a message with this type number. The hash function has the
// number as its customisation string.
func New(number uint16) *Hash {
	return &Hash{k12.NewDraft10(binary.BigEndian.AppendUint16(nil, number))}
}

// Write adds the next part of the body.
func (h *Hash) Write(part []byte) { _, _ = h.state.Write(part) } // never fails

// Payload returns the payload. It must be called once, after the last part.
func (h *Hash) Payload() []byte {
	p := make([]byte, Size)
	p[0] = kindK12
	_, _ = h.state.Read(p[1:])
	return p
}

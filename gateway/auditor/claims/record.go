package claims

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"time"

	"schedrestd/internal/keystate"
)

// The file consists of Slots slots of slotSize bytes each. A slot begins with a
// claim. At endOffset, the slot also holds an end record, which contains the
// claim's final state and answer. The claim and the end record each have a
// checksum. Either is ignored if it is only partly written. The claim and the
// end record are in different sectors of the disk, so that an interrupted write
// of the end record can't damage the claim.
const (
	slotSize  = 2048
	endOffset = 512
	claimSize = 4 + 4 + 8 + 8 + 8 + 8 + 3*32
	endSize   = 4 + 8 + 1 + 2 // before the text of the answer
)

// This line compiles only if the longest answer fits into a slot.
const _ = uint(slotSize - endOffset - endSize - keystate.MaxAnswer)

// Each claim begins with magic. The last byte of magic is the version of the
// format.
const magic = "SIK\x01"

var (
	order      = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// A claim is the first part of a slot. It holds a key that a request has
// claimed.
type claim struct {
	number           uint64    // the claim's slot is number % Slots
	placedAt         time.Time // when the key was first claimed; renewing the claim does not change it
	claimedAt        time.Time // when the key was last claimed
	process          [8]byte   // id of the process that wrote the claim
	key, share, body [32]byte

	before keystate.State // of a renewed claim, not in the file: the state that the key returns to if the claim is undone
}

func (c *claim) encode() []byte {
	b := append(make([]byte, 0, claimSize), magic...)
	b = order.AppendUint32(b, 0)
	b = order.AppendUint64(b, c.number)
	b = order.AppendUint64(b, uint64(c.placedAt.UnixNano()))
	b = order.AppendUint64(b, uint64(c.claimedAt.UnixNano()))
	b = append(b, c.process[:]...)
	b = append(append(append(b, c.key[:]...), c.share[:]...), c.body[:]...)
	order.PutUint32(b[4:], crc32.Checksum(b, castagnoli))
	return b
}

// isEmpty reports whether a slot begins like one that has never been used.
func isEmpty(b []byte) bool {
	return bytes.Equal(b[:min(len(b), claimSize)], make([]byte, min(len(b), claimSize)))
}

// repair corrects a single wrong bit in a claim, as a failing disk or memory
// may cause it. sum is the claim's checksum, and b is the claim without it. If
// no single bit of b or sum is wrong, repair leaves b unchanged and reports
// false. An incomplete claim is never taken for one with a wrong bit, except by
// a chance of one in four million.
func repair(b []byte, sum uint32) bool {
	wrong := crc32.Checksum(b, castagnoli) ^ sum
	if bits.OnesCount32(wrong) == 1 {
		return true // the bit is in the checksum itself
	}
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if crc32.Checksum(b, castagnoli) == sum {
				return true
			}
			b[i] ^= 1 << bit
		}
	}
	return false
}

// decodeClaim decodes the claim at the beginning of a slot. It corrects a
// single wrong bit. It returns nil if there is no complete claim. The result
// newer is true if the claim was written in a later version of the format.
func decodeClaim(b []byte) (c *claim, newer bool) {
	if len(b) < claimSize || isEmpty(b) {
		return nil, false
	}
	b = append([]byte(nil), b[:claimSize]...)
	sum := order.Uint32(b[4:])
	order.PutUint32(b[4:], 0)
	valid := crc32.Checksum(b, castagnoli) == sum || repair(b, sum)
	if !valid || string(b[:4]) != magic {
		return nil, string(b[:3]) == magic[:3] && b[3] > magic[3]
	}
	c = &claim{number: order.Uint64(b[8:]),
		placedAt:  time.Unix(0, int64(order.Uint64(b[16:]))),
		claimedAt: time.Unix(0, int64(order.Uint64(b[24:])))}
	copy(c.process[:], b[32:])
	copy(c.key[:], b[40:])
	copy(c.share[:], b[72:])
	copy(c.body[:], b[104:])
	return c, false
}

// encodeEnd returns the end record of a claim: its final state and answer.
func encodeEnd(number uint64, state keystate.State, answer []byte) []byte {
	b := order.AppendUint64(make([]byte, 4, endSize+len(answer)), number)
	b = order.AppendUint16(append(b, byte(state)), uint16(len(answer)))
	b = append(b, answer...)
	order.PutUint32(b, crc32.Checksum(b, castagnoli))
	return b
}

// decodeEnd decodes the end record of the claim with the given number. ok is
// false if b contains no such record.
func decodeEnd(b []byte, number uint64) (state keystate.State, answer []byte, ok bool) {
	size := endSize + int(order.Uint16(b[13:]))
	if size > len(b) {
		return 0, nil, false
	}
	b = append([]byte(nil), b[:size]...)
	sum := order.Uint32(b)
	order.PutUint32(b, 0)
	if crc32.Checksum(b, castagnoli) != sum || order.Uint64(b[4:]) != number {
		return 0, nil, false
	}
	return keystate.State(b[12]), b[endSize:], true
}

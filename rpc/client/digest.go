package client

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"

	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// content is the digest of an answer, which is computed when it is first needed.
type content struct {
	once sync.Once
	sum  [sha256.Size]byte
}

// digest returns a digest of an answer whose body has not been read yet. If two
// answers have the same digest, they have the same records. A list's time of the
// last update has no effect, because in some lists it is the time of the answer.
// An answer that is still on the connection has no digest.
func (a *reply) digest() (sum [sha256.Size]byte, known bool) {
	if a.content == nil || a.streaming {
		return sum, false
	}
	a.content.once.Do(func() {
		h := sha256.New()
		_ = binary.Write(h, binary.BigEndian, []uint16{uint16(a.version), uint16(a.kind)}) // can't fail
		writeUndated(h, a.kind, a.first)
		if pieces, ok := a.pieces.(*wire.Pieces); ok {
			all := pieces.Another()
			defer all.Drop()
			for piece, err := all.Next(); err == nil; piece, err = all.Next() {
				h.Write(piece)
			}
		}
		h.Sum(a.content.sum[:0])
	})
	return a.content.sum, true
}

// writeUndated writes the beginning of a message's body to h. It omits the time of
// the last update, which follows the number of records.
func writeUndated(h hash.Hash, kind message.Type, body []byte) {
	switch kind {
	case message.ResponseJobInfo, message.ResponseNodeInfo, message.ResponsePartitionInfo, message.ResponseReservationInfo, message.ResponseLicenseInfo:
		const count, time = 4, 8 // bytes
		if len(body) >= count+time {
			h.Write(body[:count])
			body = body[count+time:]
		}
	}
	h.Write(body)
}

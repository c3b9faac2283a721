package client

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"io"
	"sync"

	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// content is the digest of an answer, which is computed when it is first needed.
type content struct {
	once  sync.Once
	sum   [sha256.Size]byte
	known bool // sum is set
}

// seeds make the digests of this process unpredictable. A sender who does not
// know them can't make two messages with the same digest. maphash is ten times as
// fast as a cryptographic hash; two seeds give 128 bits.
var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// digest returns a digest of an answer whose body has not been read yet. If two
// answers have the same digest, they have the same records. A list's time of the
// last update has no effect, because in some lists it is the time of the answer.
// Each process has other digests. An answer that is still on the connection has
// none.
func (a *reply) digest() (sum [sha256.Size]byte, known bool) {
	if a.content == nil || a.streaming {
		return sum, false
	}
	a.content.once.Do(func() {
		sums := binary.BigEndian.AppendUint16(nil, uint16(a.version))
		sums = binary.BigEndian.AppendUint16(sums, uint16(a.kind))
		add := func(piece []byte) {
			for _, seed := range seeds {
				sums = binary.BigEndian.AppendUint64(sums, maphash.Bytes(seed, piece))
			}
		}
		count, rest := splitUpdate(a.kind, a.first)
		add(count)
		add(rest)
		if pieces, ok := a.pieces.(*wire.Pieces); ok {
			all := pieces.Another()
			defer all.Drop()
			piece, err := all.Next()
			for ; err == nil; piece, err = all.Next() {
				add(piece)
			}
			if err != io.EOF {
				return
			}
		}
		a.content.sum, a.content.known = sha256.Sum256(sums), true
	})
	return a.content.sum, a.content.known
}

// splitUpdate returns what precedes and what follows the time of the last update
// in the beginning of a body.
func splitUpdate(kind message.Type, body []byte) (before, after []byte) {
	const count, time = 4, 8 // bytes: the number of records precedes the time
	switch kind {
	case message.ResponseJobInfo, message.ResponseNodeInfo, message.ResponsePartitionInfo, message.ResponseReservationInfo, message.ResponseLicenseInfo:
		if len(body) >= count+time {
			return body[:count], body[count+time:]
		}
	}
	return nil, body
}

package feed

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math/bits"
)

// sum is a hash of a record, or the sum of the hashes of all records of a view.
// The sum does not depend on their order. So equal views have equal sums, in each
// worker, and a client can go on at another worker.
type sum [2]uint64

func hashRecord(key string, shown []byte) sum {
	h := sha256.New()
	_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(key))))
	_, _ = h.Write([]byte(key))
	_, _ = h.Write(shown)
	digest := h.Sum(nil)
	return sum{binary.BigEndian.Uint64(digest), binary.BigEndian.Uint64(digest[8:])}
}

func (s sum) plus(o sum) sum {
	low, carry := bits.Add64(s[1], o[1], 0)
	high, _ := bits.Add64(s[0], o[0], carry)
	return sum{high, low}
}

func (s sum) minus(o sum) sum {
	low, borrow := bits.Sub64(s[1], o[1], 0)
	high, _ := bits.Sub64(s[0], o[0], borrow)
	return sum{high, low}
}

func (s sum) String() string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, s[0]), s[1]))
}

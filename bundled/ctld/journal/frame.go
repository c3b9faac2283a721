package journal

import (
	"crypto/rand"
	"encoding/binary"
	"hash/crc32"
)

// The file is a header followed by frames. All numbers are big endian.
//
//	header  "SCHEDJNL" | u32 format | u64 bytes written before the file got its name | u64 salt | u32 CRC-32C of these
//	frame   u32 mark | u32 payload length | u64 durable | u32 CRC-32C of length, durable, payload | payload
//	payload entries: u8 key length | key | u32 value length | value; a length of all ones removes the key
//
// The durable field is the number of bytes of the file that were known to be on
// disk when the frame was written. Either all entries of a frame are valid, or
// none are.
//
// The salt is random for each file. One half of the salt is the mark of the
// frames, and the other half is the initial value of their CRC. Values contain
// users' scripts. Without a salt, a user could write a script that looks like
// frames. If the frame that contains this script were incomplete, the journal
// would look damaged, and the controller would not start.
const (
	magic       = "SCHEDJNL"
	format      = 1
	headerSize  = 32
	frameHeader = 20
	maxKey      = 255
	maxPayload  = 256 << 20 // well above the longest message that rpc/server accepts
	tombstone   = 0xffffffff
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A salt distinguishes the frames of one file from other data that looks like
// frames.
type salt uint64

func newSalt() salt {
	var b [8]byte
	rand.Read(b[:])
	return salt(binary.BigEndian.Uint64(b[:]))
}

func (s salt) mark() uint32 { return uint32(s >> 32) }

func (s salt) sum(head, payload []byte) uint32 {
	return crc32.Update(crc32.Update(uint32(s), castagnoli, head), castagnoli, payload)
}

func appendHeader(b []byte, initialSize int64, s salt) []byte {
	start := len(b)
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint32(b, format)
	b = binary.BigEndian.AppendUint64(b, uint64(initialSize))
	b = binary.BigEndian.AppendUint64(b, uint64(s))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

func entrySize(e Entry) int { return 1 + len(e.Key) + 4 + len(e.Value) }

// appendFrame appends to b a frame that contains the entries. If onValue is not
// nil, appendFrame calls it for each value, with the position in b at which the
// value begins.
func (s salt) appendFrame(b []byte, durable int64, entries []Entry, onValue func(e Entry, pos int)) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint32(b, s.mark())
	b = append(b, make([]byte, frameHeader-4)...)
	for _, e := range entries {
		b = append(b, byte(len(e.Key)))
		b = append(b, e.Key...)
		length := uint32(len(e.Value))
		if e.Value == nil {
			length = tombstone
		}
		b = binary.BigEndian.AppendUint32(b, length)
		if onValue != nil {
			onValue(e, len(b))
		}
		b = append(b, e.Value...)
	}
	h := b[start:]
	binary.BigEndian.PutUint32(h[4:], uint32(len(h)-frameHeader))
	binary.BigEndian.PutUint64(h[8:], uint64(durable))
	binary.BigEndian.PutUint32(h[16:], s.sum(h[4:16], h[frameHeader:]))
	return b
}

// parseEntry parses the first entry of payload, and returns the remaining bytes
// in rest. The returned value shares the memory of payload, or is nil if the
// entry removes the key. If payload is malformed, ok is false.
func parseEntry(payload []byte) (key string, value, rest []byte, ok bool) {
	if len(payload) < 1 || len(payload) < 1+int(payload[0])+4 || payload[0] == 0 {
		return "", nil, nil, false
	}
	n := int(payload[0])
	key, rest = string(payload[1:1+n]), payload[1+n:]
	length := binary.BigEndian.Uint32(rest)
	rest = rest[4:]
	if length == tombstone {
		return key, nil, rest, true
	}
	if uint64(length) > uint64(len(rest)) {
		return "", nil, nil, false
	}
	return key, rest[:length:length], rest[length:], true
}

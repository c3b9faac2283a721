package message

import (
	"encoding/binary"

	"schedrestd/rpc/codec"
)

// EncodeOpening returns the first message of a persistent connection. It
// consists of a length, the type number of PersistInit, and a complete message
// with a header and a credential of its own. The body of that message is init.
func EncodeOpening(v codec.Version, newCredential CredentialFunc, init *PersistInit) ([]byte, error) {
	b, err := EncodeWithCredential(v, FlagPersistent, RequestPersistInit, newCredential, init)
	if err != nil {
		return nil, err
	}
	opening := binary.BigEndian.AppendUint32(make([]byte, 0, len(b)+2), uint32(len(b)-4+2))
	opening = binary.BigEndian.AppendUint16(opening, uint16(RequestPersistInit))
	return append(opening, b[4:]...), nil
}

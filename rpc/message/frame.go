package message

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"schedrestd/rpc/codec"
)

// MaxLength bounds a message, as Slurm does: 1 GiB.
const MaxLength = 1 << 30

// What a frame can be wrong in besides its fields.
var (
	ErrVersion    = errors.New("protocol version is not supported")
	ErrBodyLength = errors.New("body length in the header is not that of the message")
)

// Frame is a message with its body still in bytes.
type Frame struct {
	Header     Header
	Credential Credential // zero when FlagNoCredential is set
	Body       []byte     // a view into what was given to ParseFrame
}

// Sealer makes the credential of a message whose body is encoded; nil: it has none.
type Sealer func(t Type, body []byte) (*Credential, error)

// Sealed is the Sealer of a credential that is the same whatever the body.
func Sealed(credential *Credential) Sealer {
	return func(Type, []byte) (*Credential, error) { return credential, nil }
}

// front is room for the header and a credential of usual size, before the body.
const front = 1 << 10

// Encode makes a whole message at protocol version v, its length in front. A nil
// credential sets FlagNoCredential.
func Encode(v codec.Version, flags uint16, t Type, credential *Credential, body Body) ([]byte, error) {
	return EncodeSealed(v, flags, t, Sealed(credential), body)
}

// EncodeSealed is Encode with a credential that depends on the body. An error of seal is
// returned as it is.
func EncodeSealed(v codec.Version, flags uint16, t Type, seal Sealer, body Body) ([]byte, error) {
	// The credential travels first and is made last. Its length is not known before, and a
	// body may be too long to copy for it: room is left, and what is too much of it is cut off.
	c := codec.NewEncoder(v, make([]byte, front, 2*front))
	body.Walk(c)
	if err := c.Finish(); err != nil {
		return nil, fmt.Errorf("encode message %d: %w", t, err)
	}
	b := c.Bytes()
	credential, err := seal(t, b[front:])
	if err != nil {
		return nil, err
	}
	before, err := Front(v, flags, t, credential, len(b)-front)
	if err != nil {
		return nil, err
	}
	if len(before) > front {
		return slices.Concat(before, b[front:]), nil
	}
	b = b[front-len(before):]
	copy(b, before)
	return b, nil
}

// encodeFront is what precedes the body: room for the length, header, credential.
func encodeFront(header Header, credential *Credential) ([]byte, error) {
	c := codec.NewEncoder(header.Version, make([]byte, 4, front))
	header.Walk(c)
	if credential != nil {
		credential.Walk(c)
	}
	return c.Bytes(), c.Finish()
}

// ParseFrame takes a message apart; b is without the length in front. The header is
// returned as far as it was understood when the error is ErrVersion.
func ParseFrame(b []byte) (Frame, error) {
	return ParsePieces(b, 0)
}

// ParsePieces is ParseFrame for a message of which b is the first piece, with header and
// credential, and later bytes follow: Body is what b has of it.
func ParsePieces(b []byte, later int) (Frame, error) {
	f, err := ParseFront(b)
	if err == nil && uint64(len(f.Body))+uint64(later) != uint64(f.Header.BodyLength) {
		err = fmt.Errorf("message %d: %w", f.Header.Type, ErrBodyLength)
	}
	return f, err
}

// ParseFront is ParseFrame for the beginning of a message: Body is what b has of
// it. A server judges a credential before it reads, and keeps, the rest.
func ParseFront(b []byte) (Frame, error) {
	var f Frame
	if len(b) < 2 {
		return f, codec.ErrShort
	}
	version := codec.Version(b[0])
	known := min(max(version, codec.Oldest), codec.Newest)
	c := codec.NewDecoder(known, b)
	f.Header.Walk(c)
	if err := c.Err(); err != nil {
		return f, fmt.Errorf("message header: %w", err)
	}
	if version != known {
		return f, fmt.Errorf("%w: %d", ErrVersion, version)
	}
	if f.Header.Flags&FlagNoCredential == 0 {
		f.Credential.Walk(c)
	}
	if err := c.Err(); err != nil {
		return f, fmt.Errorf("credential of message %d: %w", f.Header.Type, err)
	}
	f.Body = c.Rest()
	return f, nil
}

// Decode reads the frame's body into body; bytes left over are an error.
func (f *Frame) Decode(body Body) error {
	return DecodeBody(f.Header.Version, f.Header.Type, f.Body, body)
}

// DecodeBody reads b into body at protocol version v. t is for the error's text.
func DecodeBody(v codec.Version, t Type, b []byte, body Body) error {
	return decode(codec.NewDecoder(v, b), t, body)
}

// DecodePieces is DecodeBody for one that is not in one piece: b is the first, and next gives
// the others, later bytes in all, as codec.NewPiecesDecoder has it.
func DecodePieces(v codec.Version, t Type, b []byte, next func() ([]byte, error), later int, body Body) error {
	return decode(codec.NewPiecesDecoder(v, b, next, later), t, body)
}

func decode(c *codec.Codec, t Type, body Body) error {
	body.Walk(c)
	if err := c.Finish(); err != nil {
		return fmt.Errorf("message %d: %w", t, err)
	}
	return nil
}

// EncodePersistent makes a message of a connection that stays: length, number, body.
func EncodePersistent(v codec.Version, t Type, body Body) ([]byte, error) {
	c := codec.NewEncoder(v, make([]byte, 6, 256))
	body.Walk(c)
	if err := c.Finish(); err != nil {
		return nil, fmt.Errorf("encode message %d: %w", t, err)
	}
	b := c.Bytes()
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	binary.BigEndian.PutUint16(b[4:], uint16(t))
	return b, nil
}

// Stream writes the body of a message of type t to out. Front or PersistentFront
// makes what precedes it, once its length is known.
func Stream(v codec.Version, t Type, body Body, out io.Writer) error {
	c := codec.NewStreamEncoder(v, out)
	body.Walk(c)
	if err := c.Finish(); err != nil {
		return fmt.Errorf("encode message %d: %w", t, err)
	}
	return nil
}

// Front returns what precedes a body of n bytes: the message's length, header and
// credential. It is equally long for every n. A nil credential sets FlagNoCredential.
func Front(v codec.Version, flags uint16, t Type, credential *Credential, n int) ([]byte, error) {
	if credential == nil {
		flags |= FlagNoCredential
	}
	b, err := encodeFront(Header{Version: v, Flags: flags, Type: t, BodyLength: uint32(n)}, credential)
	if err != nil {
		return nil, fmt.Errorf("encode message %d: %w", t, err)
	}
	if len(b)-4+n > MaxLength {
		return nil, fmt.Errorf("encode message %d: %d bytes are over the limit of %d", t, len(b)-4+n, MaxLength)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4+n))
	return b, nil
}

// PersistentFront is Front for a message of a connection that stays: length, number.
func PersistentFront(t Type, n int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(2+n))
	return binary.BigEndian.AppendUint16(b, uint16(t))
}

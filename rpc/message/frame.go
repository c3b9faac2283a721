package message

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"schedrestd/rpc/codec"
)

// MaxLength is the maximum length of a message, 1 GiB, as in Slurm.
const MaxLength = 1 << 30

// Errors in the structure of a message rather than in its fields.
var (
	ErrVersion    = errors.New("protocol version is not supported")
	ErrBodyLength = errors.New("body length in the header is not that of the message")
)

// Frame is a message whose body is still encoded.
type Frame struct {
	Header     Header
	Credential Credential // zero if FlagNoCredential is set
	Body       []byte     // a part of the argument of ParseFrame
}

// A CredentialFunc creates the credential for an encoded body. It returns a nil
// Credential for a message without a credential.
type CredentialFunc func(t Type, body []byte) (*Credential, error)

// FixedCredential returns a CredentialFunc that returns the same credential for
// every body.
func FixedCredential(credential *Credential) CredentialFunc {
	return func(Type, []byte) (*Credential, error) { return credential, nil }
}

// frontSpace is how many bytes are reserved before the body of a message. This
// is enough for the header and a credential of typical size.
const frontSpace = 1 << 10

// Encode returns a complete message at protocol version v, preceded by its
// length. A nil credential sets FlagNoCredential.
func Encode(v codec.Version, flags uint16, t Type, credential *Credential, body Body) ([]byte, error) {
	return EncodeWithCredential(v, flags, t, FixedCredential(credential), body)
}

// EncodeWithCredential encodes a message with a credential that depends on the
// body. It returns the error of newCredential unchanged.
func EncodeWithCredential(v codec.Version, flags uint16, t Type, newCredential CredentialFunc, body Body) ([]byte, error) {
	// The credential precedes the body, but can be created only after the body.
	// Space for it is reserved before the body, so that a long body need not be
	// copied.
	c := codec.NewEncoder(v, make([]byte, frontSpace, 2*frontSpace))
	body.Walk(c)
	if err := c.Finish(); err != nil {
		return nil, fmt.Errorf("encode message %d: %w", t, err)
	}
	b := c.Bytes()
	credential, err := newCredential(t, b[frontSpace:])
	if err != nil {
		return nil, err
	}
	head, err := Front(v, flags, t, credential, len(b)-frontSpace)
	if err != nil {
		return nil, err
	}
	if len(head) > frontSpace {
		return slices.Concat(head, b[frontSpace:]), nil
	}
	b = b[frontSpace-len(head):]
	copy(b, head)
	return b, nil
}

// encodeFront encodes everything before the body. The result begins with four
// bytes that are reserved for the length. The header and the credential follow.
func encodeFront(header Header, credential *Credential) ([]byte, error) {
	c := codec.NewEncoder(header.Version, make([]byte, 4, frontSpace))
	header.Walk(c)
	if credential != nil {
		credential.Walk(c)
	}
	return c.Bytes(), c.Finish()
}

// ParseFrame parses b, a message without the length that precedes it. If
// ParseFrame returns ErrVersion, the Frame contains those parts of the header
// that could be parsed.
func ParseFrame(b []byte) (Frame, error) {
	return ParsePieces(b, 0)
}

// ParsePieces parses b, the first piece of a message, which contains the header
// and the credential. The argument remaining is the total length of the other
// pieces, in bytes. In the returned Frame, Body contains only the part of the
// body that is in b.
func ParsePieces(b []byte, remaining int) (Frame, error) {
	f, err := ParseFront(b)
	if err == nil && uint64(len(f.Body))+uint64(remaining) != uint64(f.Header.BodyLength) {
		err = fmt.Errorf("message %d: %w", f.Header.Type, ErrBodyLength)
	}
	return f, err
}

// ParseFront parses b, the beginning of a message. In the returned Frame, Body
// contains only the part of the body that is in b. A server uses ParseFront to
// verify the credential before it reads and stores the rest of the message.
func ParseFront(b []byte) (Frame, error) {
	var f Frame
	if len(b) < 2 {
		return f, codec.ErrShort
	}
	version := codec.Version(b[0])
	clamped := min(max(version, codec.Oldest), codec.Newest)
	c := codec.NewDecoder(clamped, b)
	f.Header.Walk(c)
	if err := c.Err(); err != nil {
		return f, fmt.Errorf("message header: %w", err)
	}
	if version != clamped {
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

// Decode decodes the frame's body and stores the result in body. It returns an
// error if bytes are left over.
func (f *Frame) Decode(body Body) error {
	return DecodeBody(f.Header.Version, f.Header.Type, f.Body, body)
}

// DecodeBody decodes the bytes b at protocol version v and stores the result in
// body. Its errors name the message type t.
func DecodeBody(v codec.Version, t Type, b []byte, body Body) error {
	return decode(codec.NewDecoder(v, b), t, body)
}

// DecodePieces decodes a body that consists of several pieces: b, and those
// that next returns. The argument remaining is the total length of the pieces
// that next returns, in bytes.
func DecodePieces(v codec.Version, t Type, b []byte, next func() ([]byte, error), remaining int, body Body) error {
	return decode(codec.NewPiecesDecoder(v, b, next, remaining), t, body)
}

func decode(c *codec.Codec, t Type, body Body) error {
	body.Walk(c)
	if err := c.Finish(); err != nil {
		return fmt.Errorf("message %d: %w", t, err)
	}
	return nil
}

// EncodePersistent returns a message for a persistent connection. It consists
// of its length, its type and its body.
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

// Stream writes the body of a message of type t to out. Once the caller knows
// the length of the body, it can call Front or PersistentFront to get the data
// to send before the body.
func Stream(v codec.Version, t Type, body Body, out io.Writer) error {
	c := codec.NewStreamEncoder(v, out)
	body.Walk(c)
	if err := c.Finish(); err != nil {
		return fmt.Errorf("encode message %d: %w", t, err)
	}
	return nil
}

// Front returns the data to send before a body of n bytes: the length of the
// message, the header and the credential. This data has the same length for
// every n. A nil credential sets FlagNoCredential.
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

// PersistentFront returns the data to send before a body of n bytes on a
// persistent connection: the length and the type of the message.
func PersistentFront(t Type, n int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(2+n))
	return binary.BigEndian.AppendUint16(b, uint16(t))
}

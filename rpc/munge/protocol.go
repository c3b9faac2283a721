package munge

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"schedrestd/internal/errs"
)

// Each message to or from munged begins with this header, in which all numbers
// are big endian:
//
//	u32 magic, u8 version, u8 kind, u8 number of earlier attempts, u32 length of the rest
//
// A connection serves only one request.
const (
	magic        = 0x00606d4b
	version      = 4
	headerLength = 4 + 1 + 1 + 1 + 4

	// maxLength is the maximum number of bytes after a header, in both
	// directions. munged's own limit is 1 MiB, and our credentials are about
	// 300 bytes long.
	maxLength = 64 << 10

	// maxTTL is munged's own limit on the time to live. munged reduces a longer
	// time to this limit.
	maxTTL = time.Hour
)

// kind is the type of a message.
type kind uint8

const (
	encode         kind = 2
	encodeResponse kind = 3
	decode         kind = 4
	decodeResponse kind = 5
)

// Anyone, in place of the uid or gid that may decode a credential, means every
// uid or every gid.
const Anyone uint32 = 1<<32 - 1

// A credential is base64 text between the following prefix and suffix.
const (
	prefix = "MUNGE:"
	suffix = ":"
)

// munged chooses the cipher and the MAC. Compression is off, because a payload
// is only 33 bytes long.
const (
	defaultCipher = 1
	defaultMAC    = 1
	noZip         = 0
)

// encodeRequest returns a request for a credential that contains payload. Only
// processes that run as uid will be able to decode it. If ttl is 0, munged
// chooses the time to live.
func encodeRequest(payload []byte, uid uint32, ttl time.Duration) ([]byte, error) {
	if ttl < 0 {
		return nil, errs.New(errs.Internal, "a time to live of %v", ttl)
	}
	b := header(encode)
	b = append(b, defaultCipher, defaultMAC, noZip)
	b = append(b, 0) // no realm
	b = binary.BigEndian.AppendUint32(b, uint32(min(ttl, maxTTL)/time.Second))
	b = binary.BigEndian.AppendUint32(b, uid)
	b = binary.BigEndian.AppendUint32(b, Anyone) // any gid
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return finish(append(b, payload...))
}

// decodeRequest returns a request to decode a credential.
func decodeRequest(credential string) ([]byte, error) {
	b := header(decode)
	b = binary.BigEndian.AppendUint32(b, uint32(len(credential)+1))
	return finish(append(append(b, credential...), 0))
}

func header(k kind) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 128), magic)
	return append(b, version, byte(k), 0, 0, 0, 0, 0)
}

// finish fills in the last field of the header: the number of bytes after the
// header.
func finish(b []byte) ([]byte, error) {
	n := len(b) - headerLength
	if n > maxLength {
		return nil, errs.New(errs.TooLarge, "%d bytes exceed the limit of %d for requests to munged", n, maxLength)
	}
	binary.BigEndian.PutUint32(b[headerLength-4:], uint32(n))
	return b, nil
}

// parseHeader checks the header of an answer, and returns the length of the
// data after it. The answer's kind must be want.
func parseHeader(h [headerLength]byte, want kind) (int, error) {
	n := binary.BigEndian.Uint32(h[headerLength-4:])
	switch {
	case binary.BigEndian.Uint32(h[:]) != magic:
		return 0, fmt.Errorf("%w: the answer begins with %x", errGarbled, h[:4])
	case h[4] != version:
		return 0, fmt.Errorf("%w: version %d instead of %d", errGarbled, h[4], version)
	case kind(h[5]) != want:
		return 0, fmt.Errorf("%w: message %d instead of %d", errGarbled, h[5], want)
	case n > maxLength:
		return 0, fmt.Errorf("%w: an answer of %d bytes exceeds the limit of %d", errGarbled, n, maxLength)
	}
	return int(n), nil
}

// parseEncoded returns the credential in an answer, or an *Error if munged
// refused the request.
func parseEncoded(b []byte) (string, error) {
	r := &reader{b: b}
	if err := r.status(); err != nil {
		return "", err
	}
	text := string(r.read(r.u32()))
	if err := r.finish(); err != nil {
		return "", err
	}
	text, hasNUL := strings.CutSuffix(text, "\x00")
	if !hasNUL || !wellFormed(text) {
		return "", fmt.Errorf("%w: malformed credential", errGarbled) // the error omits the text, which may be a valid credential
	}
	return text, nil
}

// wellFormed reports whether text has the form of a credential. This check
// prevents any other text from being sent as a credential.
func wellFormed(text string) bool {
	body, ok := strings.CutPrefix(text, prefix)
	body, ok2 := strings.CutSuffix(body, suffix)
	return ok && ok2 && body != "" && strings.IndexFunc(body, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && r != '+' && r != '/' && r != '='
	}) < 0
}

// parseDecoded returns the content of a credential from munged's answer, or an
// *Error if munged refused the credential. When munged refuses a replayed or
// expired credential, it still sends the content, which parseDecoded ignores.
func parseDecoded(b []byte) (Decoded, error) {
	r := &reader{b: b}
	if err := r.status(); err != nil {
		return Decoded{}, err
	}
	r.read(3)              // cipher, MAC, zip
	r.read(uint32(r.u8())) // realm
	d := Decoded{TTL: time.Duration(r.u32()) * time.Second}
	r.read(uint32(r.u8())) // address of the machine that issued it
	d.Encoded = time.Unix(int64(r.u32()), 0)
	r.u32() // time of decoding, which is now
	d.UID, d.GID = r.u32(), r.u32()
	r.read(8) // uid and gid to which the credential is restricted; munged has checked them
	d.Payload = r.read(r.u32())
	if err := r.finish(); err != nil {
		return Decoded{}, err
	}
	if d.UID == Anyone || d.GID == Anyone {
		return Decoded{}, fmt.Errorf("%w: uid %d, gid %d: no such ids exist", errGarbled, d.UID, d.GID)
	}
	return d, nil
}

// A reader parses an answer. After the first error, its methods return only
// zero values.
type reader struct {
	b   []byte
	err error
}

func (r *reader) read(n uint32) []byte {
	if r.err == nil && uint64(n) > uint64(len(r.b)) {
		r.err = fmt.Errorf("%w: %d bytes where %d are left", errGarbled, n, len(r.b))
	}
	if r.err != nil {
		return nil
	}
	data := r.b[:n:n]
	r.b = r.b[n:]
	return data
}

func (r *reader) u8() uint8 {
	if b := r.read(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.read(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// status parses the error number and the text with which every answer begins.
func (r *reader) status() error {
	number := r.u8()
	text := printable(r.read(uint32(r.u8())))
	if r.err == nil && number != 0 {
		return &Error{Number: number, Text: text}
	}
	return r.err
}

func (r *reader) finish() error {
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%w: %d bytes left over", errGarbled, len(r.b))
	}
	return r.err
}

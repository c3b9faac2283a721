// Package wire reads messages from a connection. Each message consists of a
// length (32 bits, big endian) and that many bytes. The package checks the
// length before it reads anything else. It allocates memory only as bytes
// arrive, so a peer that announces a gigabyte and sends ten bytes does not use
// a gigabyte. Package rpc/message decodes the content of messages.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Errors that are detected before the content of a message is decoded.
var (
	// ErrNoMessage means that the peer closed the connection without sending
	// anything. It wraps io.EOF.
	ErrNoMessage = fmt.Errorf("connection closed without a message: %w", io.EOF)
	// ErrHTTP means that the peer answered in HTTP. Slurm does so from 25.11 on
	// if it does not understand a message.
	ErrHTTP = errors.New("answer is HTTP text, not a message")
	// ErrTLS means that the peer speaks TLS.
	ErrTLS = errors.New("a record of TLS, not a message")
)

// A LengthError means that the announced length of a message exceeds the limit.
type LengthError struct{ Length, Limit int }

func (e LengthError) Error() string {
	return fmt.Sprintf("announced length is over the limit of %d bytes: %d", e.Limit, e.Length)
}

// firstChunk is the maximum number of bytes that are allocated for an announced
// length before any byte arrives.
const firstChunk = 16 << 10

// Length reads the length that precedes a message. If the length exceeds limit,
// Length returns a LengthError.
func Length(r io.Reader, limit int) (int, error) {
	var b [4]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		if err == io.EOF {
			return 0, ErrNoMessage
		}
		return 0, fmt.Errorf("read message length: %w", err)
	}
	if string(b[:]) == "HTTP" {
		return 0, ErrHTTP
	}
	if isTLS(b, limit) {
		return 0, ErrTLS
	}
	n := binary.BigEndian.Uint32(b[:])
	if uint64(n) > uint64(limit) {
		return 0, LengthError{int(n), limit}
	}
	return int(n), nil
}

// isTLS reports whether the beginning of a message is that of a TLS record: its
// type, its version and the first byte of its length. An alert is what a server
// with TLS sends to a client without TLS. As a length, the beginning of an alert
// stands for one of five, near 352 MB. A client begins with a handshake, whose
// beginning is over the limit of any server.
func isTLS(b [4]byte, limit int) bool {
	const alert, handshake = 0x15, 0x16
	return b[1] == 3 && b[2] <= 4 && (b[0] == alert && b[3] == 0 || b[0] == handshake && binary.BigEndian.Uint32(b[:]) > uint32(limit))
}

// Fill reads from r until buf has n bytes. It returns buf, which may have
// moved. On an error, it returns the bytes that it has read so far.
func Fill(r io.Reader, buf []byte, n int) ([]byte, error) {
	for len(buf) < n {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, min(n-len(buf), max(len(buf), firstChunk)))
		}
		m, err := r.Read(buf[len(buf):min(n, cap(buf))])
		buf = buf[:len(buf)+m]
		if err != nil && len(buf) < n {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return buf, fmt.Errorf("read byte %d of a message of %d: %w", len(buf), n, err)
		}
	}
	return buf, nil
}

// Read reads one complete message and returns it without its length.
func Read(r io.Reader, limit int) ([]byte, error) {
	n, err := Length(r, limit)
	if err != nil {
		return nil, err
	}
	return Fill(r, nil, n)
}

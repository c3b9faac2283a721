// Package wire takes messages off a connection: a length, 32 bits big endian, then
// so many bytes. It judges the length before anything is read, and lets memory
// grow with the bytes that really arrive: a peer that announces a gigabyte and
// sends ten bytes costs ten bytes. What the bytes mean is rpc/message's business.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// What can be wrong before a message's own bytes are looked at.
var (
	// ErrNone: the peer closed instead of sending anything. It is io.EOF too.
	ErrNone = fmt.Errorf("connection closed without a message: %w", io.EOF)
	// ErrHTTP: the peer speaks HTTP on this port, as Slurm from 25.11 on does to what it does not understand.
	ErrHTTP = errors.New("answer is HTTP text, not a message")
	// ErrLength: the announced length is over the limit.
	ErrLength = errors.New("announced length is over the limit")
)

// firstChunk is how much memory the word of the other side alone is worth.
const firstChunk = 16 << 10

// Length reads the length in front of a message, at most limit.
func Length(r io.Reader, limit int) (int, error) {
	var b [4]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		if err == io.EOF {
			return 0, ErrNone
		}
		return 0, fmt.Errorf("read message length: %w", err)
	}
	if string(b[:]) == "HTTP" {
		return 0, ErrHTTP
	}
	n := binary.BigEndian.Uint32(b[:])
	if uint64(n) > uint64(limit) {
		return 0, fmt.Errorf("%w of %d bytes: %d", ErrLength, limit, n)
	}
	return int(n), nil
}

// Fill reads from r until buf is n bytes long, and returns it, perhaps moved.
// What was read so far is returned with an error.
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

// Read is Length, then Fill: one whole message without the length in front.
func Read(r io.Reader, limit int) ([]byte, error) {
	n, err := Length(r, limit)
	if err != nil {
		return nil, err
	}
	return Fill(r, nil, n)
}

package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// scan is the result of reading a whole journal file.
type scan struct {
	index map[string]location
	end   int64 // end of the valid part
	salt  salt
}

// scanFile reads a journal. The size argument is the length of the file in
// bytes. scanFile tolerates a torn end (an incomplete last frame) and returns
// an error for any other damage.
func scanFile(r io.ReaderAt, size int64) (scan, error) {
	s := scan{index: make(map[string]location)}
	initialSize, salt, err := readHeader(r)
	if err != nil {
		return s, err
	}
	s.salt = salt
	in := bufio.NewReaderSize(io.NewSectionReader(r, headerSize, size-headerSize), 1<<20)
	s.end = headerSize
	for s.end < size {
		payload, ok := salt.readFrame(in, size-s.end)
		if ok {
			ok = s.apply(payload)
		}
		if !ok {
			break
		}
		s.end += int64(frameHeader + len(payload))
	}
	if s.end < size || s.end < initialSize {
		if err := salt.checkTail(r, s.end, size, initialSize); err != nil {
			return s, err
		}
	}
	return s, nil
}

// liveSize returns the number of bytes that a live value takes in a rewritten
// file.
func liveSize(key string, p location) int64 {
	return int64(frameHeader + 1 + len(key) + 4 + int(p.length))
}

func readHeader(r io.ReaderAt) (initialSize int64, s salt, err error) {
	h := make([]byte, headerSize)
	if n, err := r.ReadAt(h, 0); n < headerSize {
		if errors.Is(err, io.EOF) {
			err = errNotJournal // a journal gets its name only after its header is complete
		}
		return 0, 0, err
	}
	if string(h[:8]) != magic {
		return 0, 0, errNotJournal
	}
	if v := binary.BigEndian.Uint32(h[8:]); v > format {
		return 0, 0, fmt.Errorf("format %d: this program reads formats up to %d: %w", v, format, ErrNewer)
	}
	if crc32.Checksum(h[:28], castagnoli) != binary.BigEndian.Uint32(h[28:]) {
		return 0, 0, fmt.Errorf("header: %w", ErrDamaged)
	}
	return int64(binary.BigEndian.Uint64(h[12:])), salt(binary.BigEndian.Uint64(h[20:])), nil
}

// readFrame reads the next frame. The argument remaining is the number of bytes
// left in the file. readFrame compares the length of the frame with this number
// before it allocates memory.
func (s salt) readFrame(in io.Reader, remaining int64) (payload []byte, ok bool) {
	var h [frameHeader]byte
	if remaining < frameHeader {
		return nil, false
	}
	if _, err := io.ReadFull(in, h[:]); err != nil {
		return nil, false
	}
	length := int64(binary.BigEndian.Uint32(h[4:]))
	if binary.BigEndian.Uint32(h[:]) != s.mark() || length > remaining-frameHeader || length > maxPayload {
		return nil, false
	}
	payload = make([]byte, length)
	if _, err := io.ReadFull(in, payload); err != nil {
		return nil, false
	}
	return payload, s.sum(h[4:16], payload) == binary.BigEndian.Uint32(h[16:])
}

// apply adds the entries of a frame to the index. The frame begins at s.end.
func (s *scan) apply(payload []byte) (ok bool) {
	payloadStart := s.end + frameHeader
	changed := make(map[string]location)
	for payloadSize := int64(len(payload)); len(payload) > 0; {
		key, value, rest, ok := parseEntry(payload)
		if !ok {
			return false
		}
		p := location{offset: -1}
		if value != nil {
			offset := payloadStart + payloadSize - int64(len(rest)+len(value))
			p = location{offset: offset, length: uint32(len(value)), sum: crc32.Checksum(value, castagnoli)}
		}
		changed[key] = p
		payload = rest
	}
	for key, p := range changed {
		if p.offset < 0 {
			delete(s.index, key)
		} else {
			s.index[key] = p
		}
	}
	return true
}

// checkTail checks the end of a file that is valid only up to the position
// validEnd. Normally the remaining bytes are a torn end, which is harmless. But
// if the header or a later frame shows that bytes after validEnd were already
// on disk, acknowledged values are lost. checkTail then returns an error.
func (s salt) checkTail(r io.ReaderAt, validEnd, size, initialSize int64) error {
	if validEnd < initialSize {
		return fmt.Errorf("byte %d of %d durable bytes: %w", validEnd, initialSize, ErrDamaged)
	}
	tail := make([]byte, size-validEnd)
	if n, err := r.ReadAt(tail, validEnd); n < len(tail) {
		return err
	}
	mark := binary.BigEndian.AppendUint32(nil, s.mark())
	for pos := 1; pos < len(tail); {
		i := bytes.Index(tail[pos:], mark)
		if i < 0 {
			break
		}
		pos += i
		if durable, ok := s.frameAt(tail[pos:]); ok && durable > validEnd {
			return fmt.Errorf("byte %d of %d durable bytes: %w", validEnd, durable, ErrDamaged)
		}
		pos++
	}
	return nil
}

// frameAt reports whether b begins with a complete frame. It also returns how
// many bytes of the file were on disk according to the frame.
func (s salt) frameAt(b []byte) (durable int64, ok bool) {
	if len(b) < frameHeader {
		return 0, false
	}
	_, ok = s.readFrame(bytes.NewReader(b), int64(len(b)))
	return int64(binary.BigEndian.Uint64(b[8:])), ok
}

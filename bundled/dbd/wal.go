package dbd

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"schedrestd/internal/errs"
)

// checkLog examines the write-ahead log of the database at path before SQLite
// opens it. After a crash, SQLite reads the log up to the first frame with a
// wrong checksum, and drops the rest without an error. A crash can leave an
// incomplete transaction there, which was never acknowledged. But if the disk
// has returned wrong bytes, the rest contains acknowledged transactions. In that
// case checkLog logs an error, and keeps a copy of the log.
func checkLog(path string, log *slog.Logger) error {
	file, err := os.Open(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return errs.Wrap(err, errs.Internal, "open the write-ahead log")
	}
	defer file.Close()
	dropped, err := countDropped(bufio.NewReaderSize(file, 1<<16))
	if err != nil {
		return errs.Wrap(err, errs.Internal, "read the write-ahead log")
	}
	switch dropped {
	case 0:
		return nil
	case 1:
		log.Warn("the last transaction in the write-ahead log is incomplete; the last change may be lost",
			"hint", "this is normal after a power failure; otherwise check the disk")
		return nil
	}
	name := path + "-wal.damaged-" + time.Now().UTC().Format("20060102T150405Z")
	if _, err = file.Seek(0, io.SeekStart); err == nil {
		err = copyFile(name, file)
	}
	args := []any{"copy", name, "hint", "check the disk; sacct or a backup shows which jobs are missing"}
	if dropped > 0 {
		args = append(args, "transactions", dropped)
	}
	if err != nil {
		args = append(args, "copy_error", err)
	}
	log.Error("write-ahead log damaged; acknowledged changes are lost", args...)
	return nil
}

// copyFile copies from to a new file that only its owner can read.
func copyFile(name string, from io.Reader) error {
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Sync(), to.Close())
}

// The layout of a write-ahead log. Source: "Database File Format", section 4, at
// sqlite.org.
const (
	walHeader   = 32         // bytes
	frameHeader = 24         // bytes
	walMagic    = 0x377f0682 // the lowest bit is set if checksums are of big-endian words
	maxPage     = 1 << 16    // bytes
)

// countDropped returns how many transactions SQLite drops when it reads a
// write-ahead log after a crash. It returns -1 if SQLite drops all of them,
// because the header is damaged. Before SQLite begins a transaction, the
// previous one is on the disk. So of the dropped transactions, all but the last
// one were acknowledged.
func countDropped(wal io.Reader) (dropped int, err error) {
	header := make([]byte, walHeader)
	if _, err := io.ReadFull(wal, header); err != nil {
		return 0, ignoreEnd(err)
	}
	magic, size := binary.BigEndian.Uint32(header), binary.BigEndian.Uint32(header[8:])
	order := binary.ByteOrder(binary.LittleEndian)
	if magic&1 != 0 {
		order = binary.BigEndian
	}
	sum := checksum{}.add(order, header[:24])
	if magic&^1 != walMagic || size > maxPage || !sum.equals(header[24:]) {
		return -1, nil
	}
	frame := make([]byte, frameHeader+size)
	invalid := 0
	for valid := true; ; {
		if _, err := io.ReadFull(wal, frame); err != nil {
			return dropped, ignoreEnd(err)
		}
		isCurrent := string(frame[8:16]) == string(header[16:24]) // otherwise the frame is left over from an earlier use of the file, or it is damaged and current ones follow
		sum = sum.add(order, frame[:8]).add(order, frame[frameHeader:])
		valid = valid && isCurrent && sum.equals(frame[16:24])
		if isCommit := binary.BigEndian.Uint32(frame[4:]) != 0; isCommit && !valid {
			if invalid++; isCurrent {
				dropped = invalid
			}
		}
	}
}

// ignoreEnd returns err, or nil if err means that the file has ended.
func ignoreEnd(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return err
}

// checksum is the checksum of a write-ahead log up to some frame.
type checksum [2]uint32

// add returns the checksum after text, whose length is a multiple of 8.
func (c checksum) add(order binary.ByteOrder, text []byte) checksum {
	for ; len(text) >= 8; text = text[8:] {
		c[0] += order.Uint32(text) + c[1]
		c[1] += order.Uint32(text[4:]) + c[0]
	}
	return c
}

// equals reports whether text contains the checksum c.
func (c checksum) equals(text []byte) bool {
	return c[0] == binary.BigEndian.Uint32(text) && c[1] == binary.BigEndian.Uint32(text[4:])
}

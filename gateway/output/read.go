package output

import (
	"bytes"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"schedrestd/ipc/query"
)

// read answers q with a part of the file at its path.
func read(q *query.ReadOutput) *query.OutputPart {
	part := &query.OutputPart{ID: q.ID}
	if err := readInto(part, q); err != nil {
		*part = query.OutputPart{ID: q.ID}
		part.State, part.Errno = stateOf(err)
	}
	return part
}

func readInto(part *query.OutputPart, q *query.ReadOutput) error {
	f, err := open(q.Path, uint32(os.Getuid()))
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	part.Device, part.Inode, part.Size, part.Offset = st.Dev, st.Ino, uint64(st.Size), q.Offset
	if q.Lines > 0 {
		if part.Offset, err = lastLines(f, st.Size, q.Lines); err != nil {
			return err
		}
	}
	if part.Offset >= part.Size || q.Max == 0 {
		return nil
	}
	part.Data = make([]byte, min(uint64(q.Max), query.MaxOutputPart, part.Size-part.Offset))
	n, err := f.ReadAt(part.Data, int64(part.Offset))
	part.Data = part.Data[:n]
	if err == io.EOF { // the file has become shorter
		err = nil
	}
	return err
}

// maxTail is the number of bytes that lastLines examines at most.
const maxTail = 16 << 20

// lastLines returns the offset of the last lines of a file. What is longer than
// maxTail is cut at its beginning.
func lastLines(f io.ReaderAt, size int64, lines uint32) (offset uint64, err error) {
	block := make([]byte, 64<<10)
	end := max(0, size)
	first := max(0, end-maxTail)
	for at := end; at > first; {
		n := min(at-first, int64(len(block)))
		at -= n
		got, err := f.ReadAt(block[:n], at)
		if err != nil && err != io.EOF {
			return 0, err
		}
		text := block[:got]
		if at+int64(got) == end && bytes.HasSuffix(text, []byte{'\n'}) { // ends the last line, and begins no other one
			text = text[:len(text)-1]
		}
		for {
			i := bytes.LastIndexByte(text, '\n')
			if i < 0 {
				break
			}
			if lines--; lines == 0 {
				return uint64(at) + uint64(i) + 1, nil
			}
			text = text[:i]
		}
	}
	return uint64(first), nil
}

// stateOf returns the state, and the error number for a state that needs one.
func stateOf(err error) (query.OutputState, uint32) {
	var r refusal
	var errno unix.Errno
	switch {
	case errors.As(err, &r):
		return query.OutputState(r), 0
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return query.OutputMissing, 0
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return query.OutputDenied, 0
	case errors.As(err, &errno):
		return query.OutputFailed, uint32(errno)
	}
	return query.OutputFailed, uint32(unix.EIO)
}

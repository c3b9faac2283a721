package server

import (
	"cmp"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// spoolMemory is the maximum length, in bytes, of a spooled answer that stays
// in memory. A longer answer is stored in a file, so that it uses no memory
// while its client does not read it.
const spoolMemory = 64 << 10

// socketBuffer limits how many bytes of a long answer the kernel stores for a
// connection. By default the kernel would store megabytes, which no budget
// counts.
const socketBuffer = 256 << 10

// A spool is an encoded answer that waits to be sent.
type spool struct {
	server   *Server
	head     []byte   // the whole answer as long as file is nil
	file     *os.File // unnamed
	size     int
	inFile   int         // bytes in file
	disk     reservation // for file
	inMemory bool        // a file could not be used
	memory   reservation // of the budget of requests, if inMemory
}

// Spool encodes body, which is the answer of type t to r. It returns another
// body, and the handler must return that one. Spool needs little memory,
// however long the answer is. It reads all elements of body before it returns.
func (r *Request) Spool(t message.Type, body message.Body) (message.Body, error) {
	uid := r.Identity.UID
	s := &spool{server: r.server, disk: r.server.spoolBudget.reservation(uid), memory: r.server.requestBudget.reservation(uid)}
	if err := s.encode(r, t, body); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// encode writes the whole answer. At the end it replaces the beginning, because
// the beginning contains the length.
func (s *spool) encode(r *Request, t message.Type, body message.Body) error {
	front, err := r.front(t, 0)
	if err != nil {
		return err
	}
	if _, err := s.Write(front); err != nil {
		return err
	}
	if err := message.Stream(r.Version, t, body, s); err != nil {
		return err
	}
	if front, err = r.front(t, s.size-len(front)); err != nil {
		return err
	}
	return s.setFront(front)
}

// Write appends p.
func (s *spool) Write(p []byte) (int, error) {
	runtime.Gosched() // so that encoding a long answer does not delay short ones
	if s.size+len(p)-4 > message.MaxLength {
		return 0, errs.New(errs.TooLarge, "the answer exceeds %d bytes", message.MaxLength).WithHint("request fewer records")
	}
	s.size += len(p)
	if s.file == nil && !s.inMemory && len(s.head)+len(p) > spoolMemory {
		if err := s.open(); err != nil {
			return 0, err
		}
	}
	return s.append(p)
}

// open moves the answer to a file. If no file can be created, for example
// because the disk is full, the answer stays in memory.
func (s *spool) open() error {
	f, err := os.CreateTemp(cmp.Or(s.server.SpoolDir, os.TempDir()), ".answer-*")
	if err != nil {
		s.inMemory = true
		return s.growMemory(len(s.head), err)
	}
	s.file = f
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	// Reserve a quarter of the user's limit in advance. So a user who does not
	// read their answers is refused before another long answer is encoded.
	if err := s.disk.grow(s.server.spoolBudget.maxPerUser / 4); err != nil {
		return err
	}
	head := s.head
	s.head = nil
	_, err = s.append(head)
	return err
}

func (s *spool) append(p []byte) (int, error) {
	if s.file != nil && s.size > s.disk.Size() {
		if err := s.disk.grow(len(p)); err != nil {
			return 0, err
		}
	}
	if s.file != nil {
		_, err := s.file.Write(p)
		if err == nil {
			s.inFile += len(p)
			return len(p), nil
		}
		if err := s.leaveFile(err); err != nil {
			return 0, err
		}
	}
	if s.inMemory {
		if err := s.growMemory(len(p), nil); err != nil {
			return 0, err
		}
	}
	s.head = append(s.head, p...)
	return len(p), nil
}

// leaveFile moves the answer from its file to memory, because the file could
// not be written. Without this, a full disk would hide the queue from users.
func (s *spool) leaveFile(cause error) error {
	if err := s.growMemory(s.inFile, cause); err != nil {
		return err
	}
	s.head = make([]byte, s.inFile)
	if _, err := s.file.ReadAt(s.head, 0); err != nil {
		return errs.Wrap(errors.Join(cause, err), errs.Unavailable, "no space for a long answer")
	}
	s.file.Close()
	s.file, s.inMemory = nil, true
	s.disk.Release()
	return nil
}

// growMemory takes n bytes from the budget of requests, for an answer that
// stays in memory. The argument cause is why no file is used, if known.
func (s *spool) growMemory(n int, cause error) error {
	if err := s.memory.grow(n); err != nil {
		return errs.Wrap(errors.Join(cause, err), errs.Unavailable, "no space for a long answer")
	}
	return nil
}

// setFront replaces the beginning of the answer.
func (s *spool) setFront(front []byte) error {
	if s.file == nil {
		copy(s.head, front)
		return nil
	}
	s.disk.Shrink(s.disk.Size() - s.size) // what was reserved in advance
	_, err := s.file.WriteAt(front, 0)
	return errs.Wrap(err, errs.Unavailable, "no space for a long answer")
}

func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
	}
	s.disk.Release()
	s.memory.Release()
}

// Walk fails, because a spool is already encoded.
func (s *spool) Walk(c *codec.Codec) { c.Fail("spool", errors.ErrUnsupported) }

// sendSpool sends a spooled answer and removes it.
func (c *conn) sendSpool(answer *spool) error {
	defer answer.close()
	if answer.file == nil {
		return c.write(answer.head)
	}
	if _, err := answer.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if tcp, ok := c.nc.(*net.TCPConn); ok {
		tcp.SetWriteBuffer(socketBuffer)
	}
	c.nc.SetWriteDeadline(time.Now().Add(cmp.Or(c.server.WriteTimeout, defaultWriteTimeout)))
	_, err := io.Copy(c.nc, answer.file)
	return err
}

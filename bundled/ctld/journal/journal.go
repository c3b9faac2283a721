// Package journal stores a few thousand values by key. It never loses an
// acknowledged change, not even after kill -9 or a power failure.
//
// The journal is one append-only file, to which each change appends a frame.
// Commit returns when the frame is on disk. Concurrent commits share one fsync.
// The values stay in the file; only their positions are held in memory.
//
// When more than half of the file is out of date, the journal writes a new file
// and renames it. So the file takes at most twice the size of its values, or 1
// MiB if that is larger, plus the last batch of changes. During a rewrite the
// new file takes additional space: the size of the values.
//
// Each value has an owner. Whenever the journal changes its index, it also
// updates the number of bytes that each owner's values take. So these numbers
// always match the stored values.
//
// A crash during a write may leave a torn end, which is an incomplete frame at
// the end of the file. The values in this frame were never acknowledged, so
// Open removes the torn end. But if an earlier part of the file is damaged,
// acknowledged values are lost. Open then returns an error that contains the
// position. To distinguish the two cases, each frame records how much of the
// file was on disk when the frame was written.
package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open and Commit return these errors, and also errors from the file system.
var (
	errClosed     = errors.New("journal is closed")
	ErrNewer      = errors.New("written by a newer version of this program")
	ErrDamaged    = errors.New("damaged before its end")
	errNotJournal = errors.New("not a journal")
	errTooBig     = errors.New("value too big for the journal")
	ErrUncertain  = errors.New("unknown whether the change is on disk")
)

// An Entry is one change: it sets the value of a key, or removes the key.
type Entry struct {
	Key   string // at most 255 bytes
	Value []byte // nil: remove the key
	Owner uint32 // for Usage; not stored in the file
}

// Size returns the number of bytes that the entry takes in the file until its
// value is replaced.
func (e Entry) Size() int64 { return liveSize(e.Key, location{length: uint32(len(e.Value))}) }

// Journal is an open journal. Its methods are safe for concurrent use.
type Journal struct {
	path     string
	tornSize int64 // bytes of the torn end that Open cut off

	mu      sync.Mutex
	wake    *sync.Cond
	pending []*commit
	closed  bool
	failure error // set when the file can no longer be written reliably
	file    *os.File
	salt    salt
	index   map[string]location
	usage   usage

	size      int64 // of the file, all of it durable
	retrySize int64 // after a failed rewrite: the size at which to try again
	stopped   chan struct{}
	broken    chan struct{} // closed when failure is set

	// Tests let these fail.
	sync     func(fd int) error                 // fdatasync(2)
	truncate func(f *os.File, size int64) error // ftruncate(2)
}

// location is the position of a value in the file.
type location struct {
	offset int64
	length uint32
	sum    uint32 // CRC-32C of the value
	owner  uint32
}

// A commit is a call to Commit that waits until its entries are on disk.
type commit struct {
	entries []Entry
	done    chan error
}

// Open opens or creates the journal at path. The directory must exist, and no
// other user may have access to it. The caller must hold a lock that keeps
// other processes from opening the same journal.
func Open(path string) (*Journal, error) {
	j := &Journal{path: path, index: make(map[string]location), stopped: make(chan struct{}), broken: make(chan struct{}),
		sync: unix.Fdatasync, truncate: (*os.File).Truncate}
	j.wake = sync.NewCond(&j.mu)
	if err := os.Remove(path + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove unfinished journal: %w", err)
	}
	err := j.load()
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(j.rewriteLocked(), j.failure)
	}
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	go j.run()
	return j, nil
}

func (j *Journal) load() error {
	// Without O_NOFOLLOW, another user could create a link that makes root
	// append to any file.
	f, err := os.OpenFile(j.path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err == nil {
		var s scan
		if s, err = scanFile(f, st.Size()); err == nil {
			j.file, j.salt, j.index, j.size = f, s.salt, s.index, s.end
			for key, p := range s.index {
				j.usage.add(p.owner, liveSize(key, p))
			}
			j.tornSize = st.Size() - s.end
			if j.tornSize > 0 {
				err = f.Truncate(s.end)
			}
		}
	}
	// An earlier process may have written the data but not synced it. The
	// caller will rely on the data, so it must be on disk before load returns.
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.Close()
	}
	return err
}

// TornSize returns the size in bytes of the torn end that Open cut off.
func (j *Journal) TornSize() int64 { return j.tornSize }

// Broken returns a channel that is closed after a write that could not be
// undone, or after a failed fsync. The journal then does not know which data is
// on disk, and all later commits fail. The program should exit. When it starts
// again, it reads what is on disk.
func (j *Journal) Broken() <-chan struct{} { return j.broken }

// failLocked marks the journal as failed.
func (j *Journal) failLocked(err error) {
	if j.failure == nil {
		j.failure = err
		close(j.broken)
	}
}

// Commit stores all entries atomically, and returns when they are on disk. If
// Commit returns ErrUncertain, the next Open may find either all entries or
// none. After any other error, the next Open finds none.
func (j *Journal) Commit(entries ...Entry) error {
	if err := checkEntries(entries); err != nil {
		return err
	}
	c := &commit{entries: entries, done: make(chan error, 1)}
	j.mu.Lock()
	if j.closed || j.failure != nil {
		err := j.failure
		j.mu.Unlock()
		if err == nil {
			err = errClosed
		}
		return err
	}
	j.pending = append(j.pending, c)
	j.wake.Signal()
	j.mu.Unlock()
	return <-c.done
}

// Get returns the value of key, or nil when there is none.
func (j *Journal) Get(key string) ([]byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p, ok := j.index[key]
	if !ok {
		return nil, nil
	}
	return j.readLocked(key, p)
}

// Stat returns the owner of key's value, and the number of bytes that the value
// takes in the file. The number is 0 when there is no value.
func (j *Journal) Stat(key string) (owner uint32, size int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p, ok := j.index[key]
	if !ok {
		return 0, 0
	}
	return p.owner, liveSize(key, p)
}

// Each calls f with every key and its value, in the order of the keys, and
// stops if f returns an error. The f function returns the owner of the value. f
// must not call methods of j, because j is locked during the call. Each is
// meant for use at start-up.
func (j *Journal) Each(f func(key string, value []byte) (owner uint32, err error)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(j.index)) {
		p := j.index[key]
		value, err := j.readLocked(key, p)
		if err != nil {
			return err
		}
		if p.owner, err = f(key, value); err != nil {
			return err
		}
		j.setIndex(key, p)
	}
	return nil
}

// readLocked reads the value at p.
func (j *Journal) readLocked(key string, p location) ([]byte, error) {
	value := make([]byte, p.length)
	if _, err := j.file.ReadAt(value, p.offset); err != nil {
		return nil, fmt.Errorf("journal %s: read %q: %w", j.path, key, withoutPath(err))
	}
	if crc32.Checksum(value, castagnoli) != p.sum {
		return nil, fmt.Errorf("journal %s: value of %q at byte %d: %w", j.path, key, p.offset, ErrDamaged)
	}
	return value, nil
}

// withoutPath returns err without the path of the file. After a rewrite, that
// path is the one that the file had before it was renamed.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// Close waits until all pending commits are done, and then closes the file.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.wake.Signal()
	j.mu.Unlock()
	<-j.stopped
	return j.file.Close()
}

func checkEntries(entries []Entry) error {
	size := 0
	for _, e := range entries {
		if len(e.Key) == 0 || len(e.Key) > maxKey {
			return fmt.Errorf("journal key %.40q: not 1 to %d bytes", e.Key, maxKey)
		}
		size += entrySize(e)
	}
	if size > maxPayload {
		return fmt.Errorf("%w: %d bytes, limit %d", errTooBig, size, maxPayload)
	}
	return nil
}

// syncDir makes a rename durable. path is the new name of the renamed file.
func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

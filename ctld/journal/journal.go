// Package journal keeps a few thousand keyed values so that what was acknowledged is
// never lost: not by kill -9, not by a power cut.
//
// It is one append-only file. A change is a frame at its end; Commit returns when
// that frame is on the disk, and all who wait at the same time share one fsync. The
// values stay in the file, only their places are held in memory. When more than half of
// the file is out of date, a new one is written beside it and renamed. So the file takes at
// most twice what its values take, or 1 MiB, beyond the last batch of changes. While the new
// one is written, both together take at most three times as much.
//
// Each value has an owner. What all values of an owner take is counted where the values are
// indexed, so that the count can't differ from what is stored.
//
// The end of the file may be torn by a crash in the middle of a write: it was not yet
// acknowledged to anybody and is cut off. Damage before that point is another
// matter: acknowledged values would vanish without a word, so Open refuses and says where.
// Each frame carries how much of the file was durable when it was written, which
// tells the two apart.
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
)

// What Open and Commit may answer, besides errors of the file system.
var (
	ErrClosed  = errors.New("journal is closed")
	ErrNewer   = errors.New("written by a newer version of this program")
	ErrDamaged = errors.New("damaged before its end")
	ErrNotOurs = errors.New("not a journal")
	ErrTooBig  = errors.New("value too big for the journal")
)

// Entry is one change: the value of a key, or that it is forgotten.
type Entry struct {
	Key   string // at most 255 bytes
	Value []byte // nil: forget the key
	Owner uint32 // for Usage; not in the file
}

// Size returns what the entry takes of the disk, while its value is not replaced.
func (e Entry) Size() int64 { return liveSize(e.Key, place{length: uint32(len(e.Value))}) }

// Journal is an open journal. Its methods may be called from many goroutines.
type Journal struct {
	path string
	cut  int64 // bytes of torn tail that Open cut off

	mu      sync.Mutex
	wake    *sync.Cond
	waiting []*commit
	closed  bool
	failed  error // set by a failed fsync: nothing can be trusted to this file any more
	file    *os.File
	salt    salt
	index   map[string]place
	usage   usage

	size    int64 // of the file, all of it durable
	retry   int64 // rewrite when size passes this, too: the last attempt failed
	stopped chan struct{}
	broken  chan struct{} // closed when failed is set
}

// place is where a value is.
type place struct {
	offset int64
	length uint32
	sum    uint32 // CRC-32C of the value
	owner  uint32
}

// commit is one call of Commit that waits for the disk.
type commit struct {
	entries []Entry
	done    chan error
}

// Open opens or creates the journal at path. The directory must exist and belong to
// the caller alone; who else might open the same journal must be kept out by a lock, which
// is not this package's.
func Open(path string) (*Journal, error) {
	j := &Journal{path: path, index: make(map[string]place), stopped: make(chan struct{}), broken: make(chan struct{})}
	j.wake = sync.NewCond(&j.mu)
	if err := os.Remove(path + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove unfinished journal: %w", err)
	}
	err := j.load()
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(j.rewrite(), j.failed)
	}
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	go j.run()
	return j, nil
}

func (j *Journal) load() error {
	// O_NOFOLLOW: a link put here would make root append to a file of another's choice.
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
			j.cut = st.Size() - s.end
			if j.cut > 0 {
				err = f.Truncate(s.end)
			}
		}
	}
	// What was read may have been written but never synced: whoever reads it
	// acts on it, so it must be durable from now on.
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.Close()
	}
	return err
}

// Cut is how many bytes of torn, never acknowledged tail Open cut off.
func (j *Journal) Cut() int64 { return j.cut }

// Broken is closed when the disk has failed to take what was written: no commit succeeds any
// more, and the program should end, and read what the disk has when it starts again.
func (j *Journal) Broken() <-chan struct{} { return j.broken }

// fail sets failed; j.mu is held.
func (j *Journal) fail(err error) {
	if j.failed == nil {
		j.failed = err
		close(j.broken)
	}
}

// Commit makes all entries durable, together or not at all, and returns when they are.
// After an error they may or may not be found by a later Open.
func (j *Journal) Commit(entries ...Entry) error {
	if err := check(entries); err != nil {
		return err
	}
	c := &commit{entries: entries, done: make(chan error, 1)}
	j.mu.Lock()
	if j.closed || j.failed != nil {
		err := j.failed
		j.mu.Unlock()
		if err == nil {
			err = ErrClosed
		}
		return err
	}
	j.waiting = append(j.waiting, c)
	j.wake.Signal()
	j.mu.Unlock()
	return <-c.done
}

// Get is the value of key, nil when there is none.
func (j *Journal) Get(key string) ([]byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p, ok := j.index[key]
	if !ok {
		return nil, nil
	}
	return j.read(key, p)
}

// Stored returns whose the value of key is and how many bytes of the disk it takes; 0 when there is none.
func (j *Journal) Stored(key string) (owner uint32, size int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p, ok := j.index[key]
	if !ok {
		return 0, 0
	}
	return p.owner, liveSize(key, p)
}

// Each calls f with every key and value, keys in order of their bytes, until f returns
// an error. From then on the value is that of the owner that f returns. It is meant for the start: f must not call
// methods of j.
func (j *Journal) Each(f func(key string, value []byte) (owner uint32, err error)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(j.index)) {
		p := j.index[key]
		value, err := j.read(key, p)
		if err != nil {
			return err
		}
		if p.owner, err = f(key, value); err != nil {
			return err
		}
		j.put(key, p)
	}
	return nil
}

// read reads the value at p; j.mu is held.
func (j *Journal) read(key string, p place) ([]byte, error) {
	value := make([]byte, p.length)
	if _, err := j.file.ReadAt(value, p.offset); err != nil {
		return nil, fmt.Errorf("journal %s: read %q: %w", j.path, key, err)
	}
	if crc32.Checksum(value, castagnoli) != p.sum {
		return nil, fmt.Errorf("journal %s: value of %q at byte %d: %w", j.path, key, p.offset, ErrDamaged)
	}
	return value, nil
}

// Close lets the commits that wait finish and closes the file.
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

func check(entries []Entry) error {
	size := 0
	for _, e := range entries {
		if len(e.Key) == 0 || len(e.Key) > maxKey {
			return fmt.Errorf("journal key %.40q: not 1 to %d bytes", e.Key, maxKey)
		}
		size += entrySize(e)
	}
	if size > maxPayload {
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooBig, size, maxPayload)
	}
	return nil
}

// syncDir makes a rename in the directory of path durable.
func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

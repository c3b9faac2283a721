package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"
	"syscall"
)

// minRewriteSize is the size in bytes up to which the file is never rewritten.
// A larger file is rewritten when the values that are still valid take less
// than half of it.
const minRewriteSize = 1 << 20

// run writes waiting commits in batches. While it writes one batch, further
// commits queue up. They form the next batch, which needs a single write and
// fsync.
func (j *Journal) run() {
	defer close(j.stopped)
	j.mu.Lock()
	defer j.mu.Unlock()
	for {
		for len(j.pending) == 0 && !j.closed {
			j.wake.Wait()
		}
		if len(j.pending) == 0 {
			return
		}
		batch := j.pending
		j.pending = nil
		err := j.failure
		if err == nil {
			err = j.writeLocked(batch)
		}
		for _, c := range batch {
			c.done <- err
		}
		if j.failure == nil && j.size > max(minRewriteSize, 2*j.liveBytes(), j.retrySize) {
			if err := j.rewriteLocked(); err != nil {
				// The old file can still be used, so run tries the rewrite
				// again when the file has grown.
				j.retrySize = j.size + max(minRewriteSize, j.liveBytes())
			}
		}
	}
}

// writeLocked appends batch to the file and waits for the disk. During the disk
// access, it releases the lock, so that other commits can queue for the next
// batch.
func (j *Journal) writeLocked(batch []*commit) error {
	var out []byte
	changed := make(map[string]location)
	for _, c := range batch {
		out = j.salt.appendFrame(out, j.size, c.entries, func(e Entry, pos int) {
			p := location{offset: -1}
			if e.Value != nil {
				p = location{j.size + int64(pos), uint32(len(e.Value)), crc32.Checksum(e.Value, castagnoli), e.Owner}
			}
			changed[e.Key] = p
		})
	}
	file, size := j.file, j.size
	j.mu.Unlock()
	_, err := file.WriteAt(out, size)
	if err == nil {
		if err = j.sync(int(file.Fd())); err != nil {
			err = &syncError{err}
		}
	}
	j.mu.Lock()
	if err != nil {
		return j.undo(size, err)
	}
	j.size += int64(len(out))
	for key, p := range changed {
		j.setIndex(key, p)
	}
	return nil
}

func (j *Journal) setIndex(key string, p location) {
	if old, ok := j.index[key]; ok {
		j.usage.add(old.owner, -liveSize(key, old))
		delete(j.index, key)
	}
	if p.offset >= 0 {
		j.index[key] = p
		j.usage.add(p.owner, liveSize(key, p))
	}
}

// A syncError reports a failed fsync. After a failure the kernel may have
// dropped the unwritten pages, and the next fsync would still report success.
// So data written since the last successful fsync can't be trusted. The journal
// accepts no more commits until the program restarts and reads what is on disk.
type syncError struct{ err error }

func (e *syncError) Error() string { return "sync: " + e.err.Error() }
func (e *syncError) Unwrap() error { return e.err }

// undo removes a batch from the file after the write or the fsync failed, so
// that a restart does not bring back changes that were refused. The new length
// must be on disk, too, because a power failure could otherwise bring them
// back. If undo can't remove the batch, it returns ErrUncertain. In this case,
// and if fsync failed, it marks the journal as failed.
func (j *Journal) undo(size int64, err error) error {
	err = fmt.Errorf("journal %s: write: %w", j.path, withoutPath(err))
	removeErr := withoutPath(j.truncate(j.file, size))
	if removeErr == nil {
		removeErr = j.sync(int(j.file.Fd())) // only the new length matters; the kernel writes it separately from the data
	}
	if _, syncFailed := errors.AsType[*syncError](err); syncFailed || removeErr != nil {
		j.failLocked(errors.Join(err, removeErr))
	}
	if removeErr != nil {
		return fmt.Errorf("%w: %w: %w", ErrUncertain, err, removeErr)
	}
	return err
}

// rewriteLocked writes a new file that contains only the live values. Once the
// new file is on disk, rewriteLocked renames it to the journal's name. If there is no
// journal yet, rewriteLocked creates an empty one.
func (j *Journal) rewriteLocked() (err error) {
	f, err := os.OpenFile(j.path+".new", os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(j.path + ".new")
		}
	}()
	salt := newSalt()
	index, size, err := j.copyLive(f, salt)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(appendHeader(nil, size, salt), 0); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = os.Rename(j.path+".new", j.path); err != nil {
		return err
	}
	if j.file != nil {
		j.file.Close()
	}
	j.file, j.salt, j.index, j.size = f, salt, index, size
	j.retrySize = 0
	if e := syncDir(j.path); e != nil {
		// The rename might not have reached the disk. After a power failure the
		// name could refer to the old file or to the new one. So the journal
		// must not acknowledge any more commits.
		j.failLocked(&syncError{e})
	}
	return nil
}

// copyLive writes all live values to f, and leaves space for the header at the
// beginning. It returns the positions of the values and the size of the file.
func (j *Journal) copyLive(f *os.File, s salt) (map[string]location, int64, error) {
	w := io.NewOffsetWriter(f, headerSize)
	index := make(map[string]location, len(j.index))
	size := int64(headerSize)
	for _, key := range slices.Sorted(maps.Keys(j.index)) {
		value, err := j.readLocked(key, j.index[key])
		if err != nil {
			return nil, 0, err
		}
		frame := s.appendFrame(nil, 0, []Entry{{Key: key, Value: value}}, func(_ Entry, pos int) {
			p := j.index[key]
			p.offset = size + int64(pos)
			index[key] = p
		})
		if _, err := w.Write(frame); err != nil {
			return nil, 0, err
		}
		size += int64(len(frame))
	}
	return index, size, nil
}

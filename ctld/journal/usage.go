package journal

import "sync"

// usage counts the bytes that each owner's values take in the file. Its lock is
// never held during a write, so readers do not wait for the disk.
type usage struct {
	mu     sync.Mutex
	all    int64
	owners map[uint32]int64
}

func (u *usage) add(owner uint32, bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.owners == nil {
		u.owners = map[uint32]int64{}
	}
	u.all += bytes
	if u.owners[owner] += bytes; u.owners[owner] == 0 {
		delete(u.owners, owner)
	}
}

// Usage returns the bytes that the values of owner take in the file, and the
// bytes of all owners' values. It does not wait for the disk.
func (j *Journal) Usage(owner uint32) (own, all int64) {
	j.usage.mu.Lock()
	defer j.usage.mu.Unlock()
	return j.usage.owners[owner], j.usage.all
}

// live returns the size that the file would have after a rewrite.
func (j *Journal) live() int64 {
	_, all := j.Usage(0)
	return headerSize + all
}

package journal

import "sync"

// A usage counts how many bytes each owner's values take in the file. Its lock
// is never held during a write, so readers do not wait for the disk.
type usage struct {
	mu     sync.Mutex // guards the fields below
	total  int64
	owners map[uint32]int64
}

func (u *usage) add(owner uint32, bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.owners == nil {
		u.owners = map[uint32]int64{}
	}
	u.total += bytes
	if u.owners[owner] += bytes; u.owners[owner] == 0 {
		delete(u.owners, owner)
	}
}

// Usage returns how many bytes the values of owner take in the file, and how
// many the values of all owners take. It does not wait for the disk.
func (j *Journal) Usage(owner uint32) (ownerBytes, total int64) {
	j.usage.mu.Lock()
	defer j.usage.mu.Unlock()
	return j.usage.owners[owner], j.usage.total
}

// liveBytes returns the size that the file would have after a rewrite.
func (j *Journal) liveBytes() int64 {
	_, total := j.Usage(0)
	return headerSize + total
}

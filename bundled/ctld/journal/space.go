package journal

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// spareBytes is how much space CheckSpace leaves free in addition to what the
// journal itself needs.
const spareBytes = 64 << 10

// A SpaceError says that the journal's disk is too full.
type SpaceError struct{ Needed, Free int64 } // bytes

func (e *SpaceError) Error() string {
	return fmt.Sprintf("the journal's disk is almost full: %d KiB are needed, %d KiB are free", (e.Needed+1023)>>10, e.Free>>10)
}

// CheckSpace returns a SpaceError if too little space would be left on the disk
// after a commit of n bytes. The remaining space must be enough for reserved
// bytes of later commits, and for a rewrite of the file. So a journal that
// fills its own disk can still record ends of jobs, and can shrink afterwards.
func (j *Journal) CheckSpace(n, reserved int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(j.file.Fd()), &st); err != nil {
		return fmt.Errorf("journal %s: free space: %w", j.path, err)
	}
	blocks := st.Bavail
	if os.Geteuid() == 0 {
		blocks = st.Bfree // root may use the blocks that are reserved for it
	}
	e := &SpaceError{Needed: n + reserved + (j.liveBytes() + n + reserved) + spareBytes, Free: int64(blocks) * st.Bsize}
	if e.Free < e.Needed {
		return e
	}
	return nil
}

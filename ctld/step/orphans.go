package step

import (
	"errors"
	"io/fs"
	"syscall"
	"time"

	"schedrestd/ctld/cgroup"
	"schedrestd/ctld/process"
)

// EndOrphans kills what is left of a job whose step is dead, and says how many processes
// that were. The script itself died with the step; what it had started lives on, below init. In
// a cgroup all of them are found; else those that kept the environment they were given,
// which a process can only give up for itself.
func EndOrphans(c Claim, uid uint32) (killed int, err error) {
	if c.Cgroup != "" {
		g := cgroup.Group{Path: c.Cgroup}
		if err = g.Kill(); errors.Is(err, fs.ErrNotExist) {
			err = nil // gone, or a kernel that can't
		}
		defer g.Remove()
	}
	// A process in the middle of exec has no environment that could be read, and a killed one
	// takes a moment to die: only several empty looks in a row are the end.
	for look, empty := 0, 0; look < 200; look++ {
		list, e := process.Marked(uid, mark(c.Step))
		if empty++; len(list) > 0 {
			empty = 0
		}
		if e != nil || empty == 4 {
			return killed, errors.Join(err, e)
		}
		n, e := process.SignalAll(list, syscall.SIGKILL)
		killed, err = killed+n, errors.Join(err, e)
		time.Sleep(10 * time.Millisecond)
	}
	return killed, errors.Join(err, errors.New("processes of the job don't end"))
}

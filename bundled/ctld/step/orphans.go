package step

import (
	"errors"
	"io/fs"
	"syscall"
	"time"

	"schedrestd/bundled/ctld/cgroup"
	"schedrestd/bundled/ctld/process"
)

// KillOrphans kills the remaining processes of a job whose step was killed. It
// returns how many it killed individually, without the cgroup. The kernel has
// killed the script together with the step, but the script's children continue
// to run.
//
// If the kernel can kill the job's cgroup, no process of the job escapes.
// Otherwise KillOrphans finds only processes whose environment contains the
// variable that stepVariable returns. A process can remove the variable from
// its own environment, but not from the environment of another process.
func KillOrphans(c Claim, uid uint32) (killed int, err error) {
	if c.Cgroup != "" {
		g := cgroup.Group{Path: c.Cgroup}
		if err = g.Kill(); errors.Is(err, fs.ErrNotExist) {
			err = nil // the cgroup is gone, or the kernel does not support cgroup.kill
		}
		defer g.Remove()
	}
	// A process has no readable environment during exec, and a killed process
	// takes a moment to exit. So the loop ends only when several consecutive
	// passes have found nothing.
	for pass, emptyPasses := 0, 0; pass < 200; pass++ {
		list, e := process.WithVariable(uid, stepVariable(c.Step))
		if emptyPasses++; len(list) > 0 {
			emptyPasses = 0
		}
		if e != nil || emptyPasses == 4 {
			return killed, errors.Join(err, e)
		}
		n, e := process.SignalAll(list, syscall.SIGKILL)
		killed, err = killed+n, errors.Join(err, e)
		time.Sleep(10 * time.Millisecond)
	}
	return killed, errors.Join(err, errors.New("some processes of the job do not exit"))
}

package privsep

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
)

// How a worker of an inetd run is ended that does not end by itself: a captured one would stay for as long as it likes, and whoever
// starts us starts so many at one time and no more.

// halfClosed is how long a client who sends no more may take for his answers. Of one at a TCP connection nothing tells that he has
// gone, while nobody writes to him.
const halfClosed = 10 * time.Minute

// watch asks the worker whether it reads, and has it come to its end whose client is done with.
func (v *visit) watch(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.handed {
		return
	}
	v.worker.silence.ask(v.worker.Process, v.config.Silence)
	ended, gone := v.client.left()
	if !ended {
		v.ended = time.Time{}
	} else if v.ended.IsZero() {
		v.ended = now
	}
	switch {
	case v.served:
		v.finish("it has said that its client is served")
	case gone:
		v.finish("its client has gone")
	case ended && now.Sub(v.ended) > halfClosed:
		v.finish(fmt.Sprintf("its client has sent no more for %s", halfClosed))
	}
}

// finish tells the worker to come to its end, and ends it when it does not; v.mu is held.
func (v *visit) finish(why string) {
	if v.told != "" {
		return
	}
	v.told = why
	if v.worker.Channel.TrySend(new(ipc.Drain)) != nil { // it is not ready yet, or does not read
		v.worker.Condemn(why)
	}
	time.AfterFunc(v.config.Setup.Limits.Drain+spawn.LastWords, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.worker.Condemn(why + ", and it did not end in time")
	})
}

// left tells whether the client of a socket sends no more, and whether he reads no more either. Who is at a pipe or a terminal
// takes nothing from anybody.
func (s *standard) left() (ended, gone bool) {
	if s.Network == ipc.Stdio {
		return false, false
	}
	fds := []unix.PollFd{{Fd: int32(s.in), Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(fds, 0); n != 1 || err != nil {
		return false, false
	}
	gone = fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	return gone || fds[0].Revents&unix.POLLRDHUP != 0, gone
}

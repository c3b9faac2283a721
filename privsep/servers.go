package privsep

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/ipc"
)

// servers tells workers whose the daemon behind a UNIX socket is, where they can't see it: in a user namespace all
// but their own user are the same stranger. The parent, which was started by that same user, connects for a moment: once for
// each socket that is made, and without a word. nil: workers see it themselves.
type servers struct {
	mu    sync.Mutex
	known map[socketID]uint32
}

// socketID is a socket in a file system, for as long as it is there.
type socketID struct {
	dev, ino uint64
	changed  unix.Timespec
}

// mostServers is how many are remembered; a daemon that starts anew leaves one behind.
const mostServers = 64

// of is the uid of who listens on the socket with the inode that fd stands for; ipc.NoID is "see for yourself".
func (s *servers) of(fd int) (uint32, error) {
	if s == nil {
		return ipc.NoID, nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return ipc.NoID, err
	}
	id := socketID{uint64(st.Dev), st.Ino, st.Ctim}
	s.mu.Lock()
	defer s.mu.Unlock()
	if uid, ok := s.known[id]; ok {
		return uid, nil
	}
	uid, err := served(fd)
	if err != nil {
		return ipc.NoID, err
	}
	if s.known == nil || len(s.known) >= mostServers {
		s.known = map[socketID]uint32{}
	}
	s.known[id] = uid
	return uid, nil
}

// served connects, and asks the kernel who is at the other end. It waits for nobody.
func served(inode int) (uint32, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return ipc.NoID, err
	}
	defer unix.Close(fd)
	if err := connect(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d", inode)}); err != nil {
		return ipc.NoID, err
	}
	peer, err := become.PeerFD(fd)
	return peer.UID, err
}

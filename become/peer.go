package become

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// Ucred holds the credentials that the kernel recorded for a peer when it
// connected. Always use the uid and gid together: with MUNGE, the gid becomes
// the job's group.
type Ucred struct {
	UID, GID uint32
	PID      int32 // 0 if the peer is in a PID namespace that this process can't see
}

// PeerFD returns the credentials of the process at the other end of the UNIX
// socket fd.
func PeerFD(fd int) (Ucred, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Ucred{}, fmt.Errorf("read peer credentials: %w", err)
	}
	if c.Uid == NoID || c.Gid == NoID { // the kernel's values for a socket without a peer
		return Ucred{}, errs.New(errs.Denied, "the peer has no credentials")
	}
	return Ucred{UID: c.Uid, GID: c.Gid, PID: c.Pid}, nil
}

// PeerGroups returns the supplementary groups of the process that connected the
// UNIX socket fd, as the kernel recorded them with its Ucred. It returns nil if
// there are none, or more than the 1024 that a process of the gateway may have. It
// omits groups that are unknown in this user namespace.
func PeerGroups(fd int) []uint32 {
	groups, size := make([]uint32, 1024), uint32(4*1024) // size in bytes
	if _, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS, uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0); e != 0 || size == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(groups[:size/4]), func(gid uint32) bool { return gid == Overflow || gid == NoID })
}

// Verify returns nil if the credentials can belong to a user of the cluster,
// and an error otherwise. It rejects the overflow ids, because the kernel
// reports them for every id that is unknown in this user namespace. It rejects
// group 0, because a job with that group could write files that only group root
// may write.
func (u Ucred) Verify() error {
	switch {
	case u.UID == Overflow || u.GID == Overflow:
		return errs.New(errs.Denied, "uid %d, gid %d: the peer's ids are unknown in this user namespace", u.UID, u.GID)
	case u.UID == NoID || u.GID == NoID:
		return errs.New(errs.Denied, "the peer has no credentials")
	case u.GID == 0:
		return errs.New(errs.Denied, "the peer's group is 0")
	}
	return nil
}

package become

import "syscall"

// Credential is what exec needs to start a process as uid and gid with exactly these
// supplementary groups. The list is always set: a nil one would leave root's
// groups in place, and with them every file that group root may write.
func Credential(uid, gid uint32, groups []uint32) *syscall.Credential {
	if groups == nil {
		groups = []uint32{}
	}
	return &syscall.Credential{Uid: uid, Gid: gid, Groups: groups}
}

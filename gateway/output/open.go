package output

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/ipc/query"
)

// A refusal is why a file is not opened.
type refusal query.OutputState

func (r refusal) Error() string { return query.OutputState(r).String() }

// maxLinks is the maximum number of symbolic links in one path, the same as in
// Linux.
const maxLinks = 40

// open opens the regular file at path for reading. It follows a link only if the
// link belongs to root or to uid, because another user could replace a link of
// their own at any time. The file must belong to uid. Nothing but such a file is
// ever opened: opening a FIFO or a device can have effects.
func open(path string, uid uint32) (*os.File, error) {
	inode, err := walk(path, uid)
	if err != nil {
		return nil, err
	}
	defer unix.Close(inode)
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Fstat(inode, &st), unix.Fstatfs(inode, &fs)); err != nil {
		return nil, err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG || isMadeUp(fs.Type):
		return nil, refusal(query.OutputNotRegular)
	case st.Uid != uid:
		return nil, refusal(query.OutputForeign)
	}
	// The inode can't be replaced any more: this path leads to the same file.
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(inode), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// walk returns a descriptor of the inode to which path leads (O_PATH). It opens
// one component after the other, because the kernel can't limit whose links it
// follows.
func walk(path string, uid uint32) (inode int, err error) {
	if !strings.HasPrefix(path, "/") {
		return -1, unix.ENOENT
	}
	dir, err := openPath(unix.AT_FDCWD, "/")
	components := split(path)
	for links := 0; err == nil && len(components) > 0; {
		var next int
		if next, err = openPath(dir, components[0]); err != nil {
			break
		}
		components = components[1:]
		var target string
		if target, err = linkTarget(next, uid); err != nil || target == "" {
			unix.Close(dir)
			dir = next
			continue
		}
		unix.Close(next)
		if links++; links > maxLinks {
			err = unix.ELOOP
			break
		}
		components = append(split(target), components...)
		if strings.HasPrefix(target, "/") {
			unix.Close(dir)
			dir, err = openPath(unix.AT_FDCWD, "/")
		}
	}
	if err != nil && dir >= 0 {
		unix.Close(dir)
		dir = -1
	}
	return dir, err
}

// openPath returns a descriptor of the inode called name. First it asks for a
// directory, because only this makes the kernel mount what is mounted on demand.
func openPath(dir int, name string) (fd int, err error) {
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if fd, err = unix.Openat(dir, name, flags|unix.O_DIRECTORY, 0); err == unix.ENOTDIR { // a file or a link
		fd, err = unix.Openat(dir, name, flags, 0)
	}
	return fd, err
}

// split returns the components of a path. A path that ends with a slash names a
// directory, so it gets the component ".".
func split(path string) (list []string) {
	for c := range strings.SplitSeq(path, "/") {
		if c != "" {
			list = append(list, c)
		}
	}
	if strings.HasSuffix(path, "/") && len(list) > 0 {
		list = append(list, ".")
	}
	return list
}

// linkTarget returns the target of the link inode, or "" if inode is not a link.
func linkTarget(inode int, uid uint32) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(inode, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", err
	}
	if st.Uid != 0 && st.Uid != uid {
		return "", refusal(query.OutputUnsafe)
	}
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(inode, "", target)
	if err == nil && n == 0 {
		err = unix.ENOENT
	}
	return string(target[:max(0, n)]), err
}

// isMadeUp reports whether the kernel makes up the files of a file system. These
// describe processes and the machine. Some of them belong to the user.
func isMadeUp(magic int64) bool {
	switch magic {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC,
		unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.NSFS_MAGIC, unix.SELINUX_MAGIC, unix.EFIVARFS_MAGIC, unix.BINFMTFS_MAGIC:
		return true
	}
	return false
}

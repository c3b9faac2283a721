// Package root creates the file system of confined processes, which is called
// their root. A root contains a few read-only files in memory, and a /proc of
// the processes' own PID namespace. In that /proc, each process sees only
// itself.
//
// If a gateway was started without root privileges, each of its processes
// creates its own root (self.SetUpNamespaces), in its own mount and PID
// namespaces.
//
// A gateway that may mount file systems creates one root for all its processes
// (New, Enter). At first this root contains the machine's /proc, because a
// /proc belongs to the PID namespace of the process that mounts it. Later a
// process inside the new PID namespace mounts that namespace's /proc
// (MountProc). The machine's /proc must be replaced: even with hidepid, its
// links for another process of the same user lead outside the root.
package root

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// Root is the file system of the workers and the keeper.
type Root struct {
	programs []program
}

// program is a program in the root.
type program struct {
	file *os.File
	name string // its name below /
	tree int    // detached mount of the file, or -1 if the file must be copied
}

// New returns a Root with the given programs. Call New while the programs' file
// system is still mounted. New ignores nil files.
func New(programs map[string]*os.File) *Root {
	r := &Root{}
	for name, f := range programs {
		if f == nil {
			continue
		}
		// The mount of the file can be cloned only here, before Enter. A
		// program that was copied to memory has no mount. The method place
		// copies such a program again.
		tree, err := unix.OpenTree(int(f.Fd()), "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			tree = -1
		}
		r.programs = append(r.programs, program{f, name, tree})
	}
	return r
}

// Close releases what New prepared.
func (r *Root) Close() {
	for _, p := range r.programs {
		if p.tree >= 0 {
			unix.Close(p.tree)
		}
	}
}

// Path returns the path of a program in the root, or "" if the root lacks the
// program.
func (r *Root) Path(program *os.File) string {
	if r == nil {
		return ""
	}
	for _, p := range r.programs {
		if p.file == program {
			return "/" + p.name
		}
	}
	return ""
}

// mountFlags are the flags of all mounts in this package.
const mountFlags = unix.MS_NOSUID | unix.MS_NODEV

// Enter creates the root and moves the calling thread into it permanently. The
// thread must have its own mount namespace. On an error the thread keeps its
// previous root.
func (r *Root) Enter() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return errs.Wrap(err, errs.Unsupported, "make the mounts private")
	}
	dir, err := mountPoint()
	if err != nil {
		return err
	}
	if err := unix.Mount("schedrestd", dir, "tmpfs", mountFlags, "mode=0755,nr_inodes=64,size=128m"); err != nil {
		return errs.Wrap(err, errs.Unsupported, "mount a tmpfs")
	}
	if err := r.populate(dir); err != nil {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
		return err
	}
	return pivot(dir)
}

// mountPoint returns a directory that exists on this machine. Its content does
// not matter.
func mountPoint() (string, error) {
	for _, dir := range []string{"/run", "/tmp", "/etc"} {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", errs.New(errs.Unsupported, "no directory to mount on")
}

// populate puts the files that a worker opens into dir: the programs and /proc.
func (r *Root) populate(dir string) error {
	for _, p := range r.programs {
		if err := p.place(filepath.Join(dir, p.name)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir+"/proc", 0o555); err != nil {
		return errs.Wrap(err, errs.Internal, "create the workers' root")
	}
	if err := mountProc(dir + "/proc"); err != nil { // the calling process's /proc; this call also proves that mounting works here
		return err
	}
	err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|mountFlags, "")
	return errs.Wrap(err, errs.Unsupported, "make the workers' root read-only")
}

// place puts a program at path.
func (p program) place(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o711)
	if err != nil {
		return errs.Wrap(err, errs.Internal, "place %s", p.name)
	}
	defer f.Close()
	if p.tree < 0 {
		return p.copyTo(f)
	}
	if err := unix.MoveMount(p.tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return errs.Wrap(err, errs.Unsupported, "mount %s", p.name)
	}
	err = unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|mountFlags, "")
	return errs.Wrap(err, errs.Unsupported, "mount %s read-only", p.name)
}

// copyTo copies the program. Whatever the umask is, the mode of the copy lets
// other users execute it, but not read it.
func (p program) copyTo(to *os.File) error {
	from, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", p.file.Fd()))
	if err != nil {
		return errs.Wrap(err, errs.Internal, "read %s", p.name)
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return errs.Wrap(errors.Join(err, to.Chmod(0o711)), errs.Internal, "copy %s", p.name)
}

// pivot makes dir the root of the calling thread, and unmounts the previous
// root.
func pivot(dir string) error {
	if err := unix.Chdir(dir); err != nil {
		return errs.Wrap(err, errs.Internal, "enter the workers' root")
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
		return errs.Wrap(err, errs.Unsupported, "change the workers' root")
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return errs.Wrap(err, errs.Internal, "unmount the machine's file system")
	}
	return errs.Wrap(unix.Chdir("/"), errs.Internal, "enter the workers' root")
}

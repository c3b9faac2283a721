// Package root makes the file system that the processes of the cage live in: a few files in memory, which nobody can change,
// and a /proc of their own PID namespace, in which each sees itself and nobody else.
//
// A process that was started without root makes its own (Settle), in a mount and a PID namespace that it has for itself.
//
// A start that may mount makes one for all that it starts (New, Enter). Its /proc is the machine's until a process that
// is in the PID namespace puts another in its place (MountProc): a /proc belongs to the namespace of who mounts it, and in the
// machine's the links of a process of the same user lead out, hidepid or not.
package root

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
)

// Root is the file system of the workers and the keeper.
type Root struct {
	programs []program
}

// program is one in it.
type program struct {
	file *os.File
	name string // below /
	tree int    // a detached mount of the file; -1: there is none, and it is copied
}

// New takes the programs out of the file system that is left. A nil one is left out.
func New(programs map[string]*os.File) *Root {
	r := &Root{}
	for name, f := range programs {
		if f == nil {
			continue
		}
		// Only from here can the mount be taken that the descriptor is of. Of a copy in memory there is none.
		tree, err := unix.OpenTree(int(f.Fd()), "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			tree = -1
		}
		r.programs = append(r.programs, program{f, name, tree})
	}
	return r
}

// Close gives up what New took.
func (r *Root) Close() {
	for _, p := range r.programs {
		if p.tree >= 0 {
			unix.Close(p.tree)
		}
	}
}

// Path is where a program is in it; "" when it is not there.
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

// Flags of all that is mounted here.
const harmless = unix.MS_NOSUID | unix.MS_NODEV

// Enter makes the root and moves the calling thread into it, for good. The thread is in a mount namespace
// of its own. When it fails the thread is where it was.
func (r *Root) Enter() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return errs.Wrap(err, errs.Unsupported, "make the mounts private")
	}
	dir, err := mountPoint()
	if err != nil {
		return err
	}
	if err := unix.Mount("schedrestd", dir, "tmpfs", harmless, "mode=0755,nr_inodes=64,size=128m"); err != nil {
		return errs.Wrap(err, errs.Unsupported, "mount a tmpfs")
	}
	if err := r.furnish(dir); err != nil {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
		return err
	}
	return pivot(dir)
}

// mountPoint is a directory that every machine has. What it holds is of no interest here.
func mountPoint() (string, error) {
	for _, dir := range []string{"/run", "/tmp", "/etc"} {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", errs.New(errs.Unsupported, "no directory to mount on")
}

// furnish puts into dir what a worker opens: itself, what the kernel says about it, and the local time.
func (r *Root) furnish(dir string) error {
	for _, p := range r.programs {
		if err := p.place(filepath.Join(dir, p.name)); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Mkdir(dir+"/proc", 0o555), os.Mkdir(dir+"/etc", 0o755)); err != nil {
		return errs.Wrap(err, errs.Internal, "create the workers' root")
	}
	if err := mountProc(dir + "/proc"); err != nil { // of who makes this; and a proof that it can be mounted here
		return err
	}
	if zone, err := os.ReadFile("/etc/localtime"); err == nil {
		if err := os.WriteFile(dir+"/etc/localtime", zone, 0o444); err != nil {
			return errs.Wrap(err, errs.Internal, "copy /etc/localtime")
		}
	}
	err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|harmless, "")
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
	err = unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|harmless, "")
	return errs.Wrap(err, errs.Unsupported, "mount %s read-only", p.name)
}

// copyTo copies the program. The file's mode keeps who executes it from reading it, whatever the umask is.
func (p program) copyTo(to *os.File) error {
	from, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", p.file.Fd()))
	if err != nil {
		return errs.Wrap(err, errs.Internal, "read %s", p.name)
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return errs.Wrap(errors.Join(err, to.Chmod(0o711)), errs.Internal, "copy %s", p.name)
}

// pivot makes dir the root of the calling thread, and leaves nothing of the one before.
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

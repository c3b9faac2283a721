package privsep

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/guard"
)

// programName is the worker's file, in the directory of this program.
const programName = "schedrestd-worker"

// openProgram opens the worker's program once. From here on it is executed by its
// descriptor: neither a changed file nor a changed path can put another program
// in its place, PATH is never asked, and it starts from a directory that its own
// uid can't enter.
func openProgram(path string, who service) (*os.File, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, errs.Wrap(err, errs.Internal, "find the directory of this program")
		}
		path = filepath.Join(filepath.Dir(self), programName)
	}
	f, err := findProgram(path, who)
	if errs.KindOf(err) == errs.NotFound {
		return nil, errs.New(errs.NotFound, "%v", err).
			WithHint("%s belongs beside schedrestd: make build puts both into bin", programName)
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		f.Close()
		return nil, errs.New(errs.Invalid, "worker %s: not a regular file", path)
	}
	if !suits(st, who) {
		defer f.Close()
		if f, err = copyProgram(f); err != nil {
			return nil, err
		}
	}
	return moveUp(f)
}

// moveUp gives f a high number: the child puts its standard descriptors and its channel
// in their low places before it executes f, and would put one in f's place.
func moveUp(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, lowest)
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "keep the worker's program open")
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// lowest is above every descriptor that a worker is born with.
const lowest = 32

// findProgram opens the file path; only root has to care who can change it.
func findProgram(path string, who service) (*os.File, error) {
	if who.root {
		trust := guard.Trust{Private: become.PrivateGroup}
		if who.UID != 0 {
			// A captured worker that could write here would be root at the next start.
			trust.Never = []uint32{who.UID}
		}
		f, _, err := guard.Open(path, guard.Rule{What: "worker", Run: true, Trust: &trust})
		return f, err
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, errs.New(errs.NotFound, "worker %s: %v", path, err)
	}
	if err != nil {
		return nil, errs.New(errs.Denied, "worker %s: %v", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// suits tells whether the file's mode is right for the worker's identity: it may execute the
// program and not read it. Who executes what he can read is dumpable, and until the worker
// has said otherwise a neighbour of the same uid could trace it, or take the channel to the
// parent out of it.
func suits(st unix.Stat_t, who service) bool {
	shift := 0 // the bits for others
	switch {
	case st.Uid == who.UID:
		shift = 6
	case st.Gid == who.GID:
		shift = 3
	}
	bits := st.Mode >> shift & 0o7
	return bits&0o5 == 0o1 || !who.root // an ordinary user's program is his own anyway
}

// copyProgram makes a sealed copy in memory of a program that its owner alone may
// execute, or that everybody may read. Mode 0711 keeps the worker unreadable for its
// neighbours from its first instruction on.
func copyProgram(from *os.File) (*os.File, error) {
	src, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", from.Fd()))
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "read %s", from.Name())
	}
	defer src.Close()
	fd, err := unix.MemfdCreate(programName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err == unix.EINVAL { // a kernel before 6.3 has no MFD_EXEC, and needs none
		fd, err = unix.MemfdCreate(programName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, errs.New(errs.Unsupported, "copy %s to memory: %v", from.Name(), err).
			WithHint("chmod 0711 %s", from.Name())
	}
	mem := os.NewFile(uintptr(fd), from.Name())
	defer mem.Close() // an open writer would make exec fail
	if _, err := mem.ReadFrom(src); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "copy %s to memory", from.Name())
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(mem.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "seal the copy of %s", from.Name())
	}
	if err := mem.Chmod(0o711); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "protect the copy of %s", from.Name())
	}
	again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", mem.Fd()), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "open the copy of %s", from.Name())
	}
	return os.NewFile(uintptr(again), from.Name()), nil
}

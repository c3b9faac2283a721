package spawn

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/security"
)

// The file names of the worker's program and of the stage.
const (
	WorkerName = "schedrestd-worker"
	stageName  = "schedrestd" // this program, in the workers' root
)

// OpenProgram opens the program at path. The parent later executes this open
// file. So PATH is never used, and a change at the path has no effect. The
// program may be in a directory that its user can't enter. If path is empty, it opens the file
// called name in the directory of the running program. Errors refer to the
// process as label. The users in forbiddenOwners must not own the program or a
// directory above it.
func OpenProgram(label, path, name string, identity security.Identity, root bool, forbiddenOwners ...uint32) (*os.File, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, errs.Wrap(err, errs.Internal, "find the directory of this program")
		}
		path = filepath.Join(filepath.Dir(self), name)
	}
	f, err := findProgram(label, path, root, forbiddenOwners)
	if errs.KindOf(err) == errs.NotFound {
		return nil, errs.New(errs.NotFound, "%v", err).
			WithHint("%s must be in the directory of schedrestd; make build puts both into bin", name)
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		f.Close()
		return nil, errs.New(errs.Invalid, "%s %s: not a regular file", label, path)
	}
	// Without root, a copy would not help: it would belong to this process's
	// user. Workers run as the same user, so they could still read the copy.
	if root && !isExecuteOnly(st, identity) {
		defer f.Close()
		if f, err = copyProgram(f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// findProgram opens the file at path. If root is true, it also checks which
// users can change the file.
func findProgram(label, path string, root bool, forbiddenOwners []uint32) (*os.File, error) {
	if root {
		// If a captured worker could change a file in this directory, the
		// attacker's code would run as root when the parent starts the next
		// time.
		forbiddenOwners = slices.DeleteFunc(slices.Clone(forbiddenOwners), func(uid uint32) bool { return uid == 0 })
		trust := guard.Trust{PrivateGroup: become.PrivateGroup, ForbiddenOwners: forbiddenOwners}
		f, _, err := guard.Open(path, guard.Rule{Label: label, Execute: true, Trust: &trust})
		return f, err
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, errs.New(errs.NotFound, "%s %s: %v", label, path, err)
	}
	if err != nil {
		return nil, errs.New(errs.Denied, "%s %s: %v", label, path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// isExecuteOnly reports whether the given identity may execute the program but
// not read it. A process that can read its own program is dumpable when it
// starts. Until the process makes itself non-dumpable, another process with the
// same uid could trace it, or take its channel to the parent.
func isExecuteOnly(st unix.Stat_t, identity security.Identity) bool {
	shift := 0 // the bits for others
	switch {
	case st.Uid == identity.UID:
		shift = 6
	case st.Gid == identity.GID:
		shift = 3
	}
	bits := st.Mode >> shift & 0o7
	return bits&0o5 == 0o1
}

// copyProgram copies a program to a sealed file in memory. The mode of the copy
// is 0711, so that workers can execute but not read it. Two kinds of programs
// need a copy. If only its owner may execute a program, workers could not
// execute the original. If every user may read a program, a worker that
// executes the original would be dumpable when it starts, and other workers
// could read its memory.
func copyProgram(from *os.File) (*os.File, error) {
	src, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", from.Fd()))
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "read %s", from.Name())
	}
	defer src.Close()
	mem, err := SealedCopy(src, from.Name(), unix.MFD_EXEC)
	if err != nil {
		return nil, errs.New(errs.KindOf(err), "%v", err).WithHint("chmod 0711 %s", from.Name())
	}
	defer mem.Close() // exec would fail while the file is open for writing
	if err := mem.Chmod(0o711); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "protect the copy of %s", from.Name())
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", mem.Fd()), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "open the copy of %s", from.Name())
	}
	return os.NewFile(uintptr(fd), from.Name()), nil
}

// SealedCopy copies src to a memory file that can no longer be changed. The
// argument execFlag is MFD_EXEC or MFD_NOEXEC_SEAL.
func SealedCopy(src io.Reader, name string, execFlag int) (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(filepath.Base(name), flags|execFlag)
	if err == unix.EINVAL { // a kernel before 6.3 has neither flag
		fd, err = unix.MemfdCreate(filepath.Base(name), flags)
	}
	if err != nil {
		return nil, errs.New(errs.Unsupported, "copy %s to memory: %v", name, err)
	}
	mem := os.NewFile(uintptr(fd), name)
	if _, err := mem.ReadFrom(src); err != nil {
		mem.Close()
		return nil, errs.Wrap(err, errs.Internal, "copy %s to memory", name)
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	_, err = unix.FcntlInt(mem.Fd(), unix.F_ADD_SEALS, seals)
	for n := 0; err == unix.EBUSY && n < 100; n++ { // on a busy machine, the kernel may still hold pages of the copy
		time.Sleep(10 * time.Millisecond)
		_, err = unix.FcntlInt(mem.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		mem.Close()
		return nil, errs.Wrap(err, errs.Internal, "seal the copy of %s", name)
	}
	return mem, nil
}

// explainStart adds a hint to err, the kernel's error about the start of a
// program. If no process could be created, the hint is about limits. If the
// program can't be executed, the hint is about the program.
func explainStart(program string, err error) error {
	switch {
	case errors.Is(err, unix.ENOEXEC):
		return &errs.Error{Err: err, Hint: "file " + guard.Quote(program) + "  # the file is for another processor, or is not a program: make install puts one for this machine there"}
	case errors.Is(err, unix.EACCES):
		return &errs.Error{Err: err, Hint: "findmnt -T " + guard.Quote(program) + "  # the file system is mounted with noexec, or a security module forbids the start"}
	case !errors.Is(err, unix.EAGAIN):
		return err
	}
	return &errs.Error{Kind: errs.Internal, Message: "a limit of processes and threads is reached", Err: err,
		Hint: "check the limits of the service (TasksMax= in its unit), the user (ulimit -u), the workers' PID namespace and the machine (kernel.pid_max, kernel.threads-max); or a worker uses them up"}
}

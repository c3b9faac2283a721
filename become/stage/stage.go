// Package stage starts a program under another identity.
//
// syscall.ForkExec alone can't do this safely. Until the child executes its
// program, it runs in the memory of its parent, and the kernel suspends the
// thread that called ForkExec. If root is the parent and the child changes its
// ids during this time, the child belongs to another user but shares memory
// with root. This user could then send SIGSTOP to the child, and so suspend
// root's thread permanently. If fs.suid_dumpable is not 0, the change of ids
// also makes the shared memory dumpable.
//
// So root first executes its own program again, as a new process called the
// stage. The stage shares memory with no other process. It changes its own ids
// and then executes the target. A user who stops the stage delays only the
// start of the target, and the caller has a time limit for that.
//
// The stage runs during the initialization of this package, before the main
// function of any program that imports it. The stage has only the privileges of
// its caller, and fails if the caller may not use the requested ids.
package stage

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Program is the path that the starter executes to create a stage. The kernel
// resolves it to the file of the running program, even after another file has
// been installed in its place.
const Program = "/proc/self/exe"

// Exit statuses of a stage that fails before it executes the target. The stage
// writes the reason to Target.Report.
const (
	ExitIdentity = 125 // the identity can't be changed, or the arguments are malformed
	ExitTarget   = 126 // the target can't be executed
)

// atSecure is AT_SECURE, the type of an entry in the auxiliary vector. The
// value of this entry is nonzero if this program was executed with added
// privileges (getauxval(3)).
const atSecure = 23

// noNice is the value of getpriority(2) for the nice value 0. The system call
// returns higher values for threads with a higher priority.
const noNice = 20

// stageName is argv[0] of a process that is a stage.
const stageName = "sched-stage"

// fixedArgs is the number of arguments at the beginning of the stage's command
// line. The target's groups, environment and arguments follow them.
const fixedArgs = 8

// Target describes a program and the identity under which it runs.
type Target struct {
	UID, GID    uint32
	Groups      []uint32       // supplementary groups; nil: none (the starter's groups are not inherited)
	DeathSignal syscall.Signal // sent to the target when the thread that started it exits; 0: none
	Path        string         // absolute; see File
	Argv        []string
	Env         []string // all users can read Env and Argv while the stage runs
	Report      uint32   // descriptor to which the reason for a failure is written; 0: standard error
}

// fileDir is the directory in /proc through which a process can open its own
// descriptors by number.
const fileDir = "/proc/self/fd/"

// File returns the value of Target.Path for a program that the stage has open
// as descriptor fd. The target does not inherit this descriptor.
func File(fd int) string { return fileDir + strconv.Itoa(fd) }

// Command returns the arguments and the environment for starting Program, so
// that it acts as a stage and then executes t.
func (t Target) Command() (argv, env []string) {
	argv = []string{stageName, decimal(t.UID), decimal(t.GID), decimal(uint32(t.DeathSignal)), t.Path, decimal(t.Report),
		decimal(uint32(len(t.Groups))), decimal(uint32(len(t.Env)))}
	for _, gid := range t.Groups { // one argument for each group, because the kernel limits the length of an argument
		argv = append(argv, decimal(gid))
	}
	return slices.Concat(argv, t.Env, t.Argv), []string{"GOMAXPROCS=1"}
}

func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

var errMalformed = errors.New("malformed arguments")

// parse reads the arguments that Command wrote.
func parse(argv []string) (t Target, err error) {
	if len(argv) <= fixedArgs || argv[0] != stageName {
		return t, errMalformed
	}
	var signal, groups, variables uint32
	err = errors.Join(parseID(argv[1], &t.UID), parseID(argv[2], &t.GID), parseID(argv[3], &signal), parseID(argv[5], &t.Report),
		parseID(argv[6], &groups), parseID(argv[7], &variables))
	args := argv[fixedArgs:]
	if err != nil || uint64(groups)+uint64(variables) >= uint64(len(args)) {
		return t, cmp.Or(err, errMalformed)
	}
	t.Groups = make([]uint32, groups)
	for i := range t.Groups {
		err = errors.Join(err, parseID(args[i], &t.Groups[i]))
	}
	if err != nil {
		return t, err
	}
	args = args[groups:]
	t.DeathSignal, t.Path, t.Env, t.Argv = syscall.Signal(signal), argv[4], args[:variables], args[variables:]
	if canonical, _ := t.Command(); !strings.HasPrefix(t.Path, "/") || !slices.Equal(canonical, argv) {
		return t, errMalformed
	}
	return t, nil
}

// parseID parses an id. It refuses 4294967295 (-1), which tells the kernel to
// leave an id unchanged.
func parseID(text string, to *uint32) error {
	n, err := strconv.ParseUint(text, 10, 32)
	if *to = uint32(n); err == nil && *to == ^uint32(0) {
		err = fmt.Errorf("id %s is reserved", text)
	}
	return err
}

func init() {
	if len(os.Args) == 0 || os.Args[0] != stageName {
		return
	}
	t, err := parse(os.Args)
	if err == nil {
		err = refuseSecure()
	}
	status := ExitIdentity
	if err == nil {
		status, err = t.run()
	}
	_, _ = os.NewFile(uintptr(cmp.Or(t.Report, 2)), "report").WriteString("start a program: " + err.Error())
	os.Exit(status)
}

// refuseSecure returns an error if this process gained a privilege from a
// set-user-ID bit or from file capabilities of its program. Without this check,
// a starter without this privilege could run any program with it.
func refuseSecure() error {
	values, err := unix.Auxv()
	if err != nil {
		return fmt.Errorf("read the auxiliary vector: %w", err)
	}
	if slices.ContainsFunc(values, func(v [2]uintptr) bool { return v[0] == atSecure && v[1] != 0 }) {
		return errors.New("this program is installed with a set-user-ID bit or capabilities")
	}
	return nil
}

// run turns this process into the target. It returns only if that fails.
func (t Target) run() (status int, err error) {
	if file, ok := strings.CutPrefix(t.Path, fileDir); ok {
		fd, err := strconv.Atoi(file)
		if err != nil {
			return ExitIdentity, err
		}
		syscall.CloseOnExec(fd)
	}
	if err := t.become(); err != nil {
		return ExitIdentity, err
	}
	if n, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil && n > noNice {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 0) // the starter's priority is not for other users
	}
	return ExitTarget, fmt.Errorf("execute %s: %w", t.Path, syscall.Exec(t.Path, t.Argv, t.Env))
}

// become gives the calling thread the identity of t. During initialization the
// calling thread is the first thread of the process. The other threads keep
// their identity until the target is executed, which ends them. So the target's
// user can't signal or trace them.
func (t Target) become() error {
	starter := os.Getppid()
	if err := disinherit(unix.CAP_SETUID, unix.CAP_SETGID); err != nil {
		return err
	}
	// The process keeps its capabilities until exec, when the kernel drops
	// them. While the process has them, the user can't trace it, even if
	// fs.suid_dumpable makes it dumpable.
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep capabilities until exec: %w", err)
	}
	// Package syscall would change the groups of all threads.
	groups := unsafe.Pointer(unsafe.SliceData(t.Groups))
	if _, _, e := syscall.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(t.Groups)), uintptr(groups), 0); e != 0 {
		return fmt.Errorf("set supplementary groups: %w", e)
	}
	gid, uid := uintptr(t.GID), uintptr(t.UID)
	if _, _, e := syscall.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); e != 0 {
		return fmt.Errorf("set gid %d: %w", gid, e)
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); e != 0 {
		return fmt.Errorf("set uid %d: %w", uid, e)
	}
	if t.DeathSignal == 0 {
		return nil
	}
	// The change of ids has cleared the death signal that the starter set.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(t.DeathSignal), 0, 0, 0); err != nil {
		return fmt.Errorf("set the death signal: %w", err)
	}
	if os.Getppid() != starter {
		return errors.New("the parent process has exited")
	}
	return nil
}

// The system call numbers above are those of 64-bit systems. On 32-bit systems,
// the calls that take 32-bit ids have different numbers. This constant
// overflows on 32-bit systems, so that the build fails.
const _ uint = 1 << 63

// disinherit removes capabilities from the inheritable set, and so from the
// ambient set. The starter made these capabilities inheritable for the stage,
// because the bounding set may be empty. Then a program that root executes gets
// only the inheritable capabilities.
func disinherit(list ...int) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	for _, n := range list {
		data[n/32].Inheritable &^= 1 << (n % 32)
	}
	if err == nil {
		err = unix.Capset(&header, &data[0])
	}
	if err != nil {
		return fmt.Errorf("clear the inheritable capabilities: %w", err)
	}
	return nil
}

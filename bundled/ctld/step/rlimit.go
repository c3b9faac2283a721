package step

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// limitPrefix begins the names of the variables in which sbatch and the REST API
// pass the soft limits of a job's processes. slurmd reads the same variables.
const limitPrefix = "SLURM_RLIMIT_"

// resources are the limits that these variables can set.
var resources = []struct {
	name   string // after limitPrefix
	number int
}{
	{"CPU", unix.RLIMIT_CPU}, {"FSIZE", unix.RLIMIT_FSIZE}, {"DATA", unix.RLIMIT_DATA}, {"STACK", unix.RLIMIT_STACK}, {"CORE", unix.RLIMIT_CORE},
	{"RSS", unix.RLIMIT_RSS}, {"NPROC", unix.RLIMIT_NPROC}, {"NOFILE", unix.RLIMIT_NOFILE}, {"MEMLOCK", unix.RLIMIT_MEMLOCK}, {"AS", unix.RLIMIT_AS},
}

// LimitName returns the name of the limit that a variable of the form NAME=value
// sets, or "". A submission usually only reports the limits of the machine on
// which it was made, so the administrator decides whether they have an effect. If
// the user asked for the limit, asked is true: sbatch --propagate puts a U in
// front of the number.
func LimitName(variable string) (name string, asked bool) {
	name, value, _ := strings.Cut(variable, "=")
	name, ok := strings.CutPrefix(name, limitPrefix)
	if !ok {
		return "", false
	}
	return name, strings.HasPrefix(value, "U")
}

// A softLimit is a change of a limit.
type softLimit struct {
	resource    int
	before, new unix.Rlimit
}

// takeLimits returns the changes of limits that the variables in env ask for, and
// env without these variables. It removes a variable only if its value is a
// number, as slurmd does. No hard limit increases. If a number exceeds the hard
// limit, the hard limit is used, or nothing is changed if the user asked for this
// limit. For what could not be done, problems has a line each.
//
// The resident memory is limited to memory, in bytes, unless that is 0. Linux
// does not enforce this limit, but programs can read it.
func takeLimits(env []string, memory uint64) (remaining []string, changes []softLimit, problems []string) {
	remaining = env
	for _, r := range resources {
		prefix := limitPrefix + r.name + "="
		isLimit := func(v string) bool { return strings.HasPrefix(v, prefix) }
		i := slices.IndexFunc(remaining, isLimit)
		change := softLimit{resource: r.number}
		if err := unix.Getrlimit(r.number, &change.before); err != nil {
			problems = append(problems, fmt.Sprintf("read the limit %s: %v", r.name, err))
			continue
		}
		change.new = change.before
		if i >= 0 {
			text, asked := strings.CutPrefix(remaining[i][len(prefix):], "U")
			n, ok := limitNumber(text)
			switch hard := change.before.Max; {
			case !ok:
				problems = append(problems, fmt.Sprintf("%s%.40q is not a number", prefix, text))
			case n > hard && asked:
				problems = append(problems, fmt.Sprintf("%s%s exceeds the hard limit %d: the limit is not changed", prefix, text, hard))
			default:
				change.new.Cur = min(n, hard)
			}
			if ok {
				remaining = slices.DeleteFunc(slices.Clone(remaining), isLimit)
			}
		}
		if r.number == unix.RLIMIT_RSS && memory > 0 && memory < change.new.Max {
			change.new = unix.Rlimit{Cur: memory, Max: memory}
		}
		if change.new != change.before {
			changes = append(changes, change)
		}
	}
	return remaining, changes, problems
}

// limitNumber reads a number as strtoul(3) does, which slurmd uses: a number that
// is too great is infinite, -1 is infinite, too, and an empty text is 0.
func limitNumber(text string) (uint64, bool) {
	if text == "" {
		return 0, true
	}
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	digits, negative := strings.CutPrefix(text, "-")
	if !negative {
		digits = strings.TrimPrefix(digits, "+")
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	switch {
	case err != nil:
		return math.MaxUint64, true
	case negative:
		n = -n
	}
	return n, true
}

// takeUmask returns the umask that the variable SLURM_UMASK contains, and env
// without this variable. sbatch passes its own umask in it.
func takeUmask(env []string) (remaining []string, mask int, problems []string) {
	const prefix, usual = "SLURM_UMASK=", 0o022
	isMask := func(v string) bool { return strings.HasPrefix(v, prefix) }
	i := slices.IndexFunc(env, isMask)
	if i < 0 {
		return env, usual, nil
	}
	text := env[i][len(prefix):]
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		n, problems = usual, []string{fmt.Sprintf("%s%.40q is not an octal number", prefix, text)}
	}
	return slices.DeleteFunc(slices.Clone(env), isMask), int(n & 0o777), problems
}

// resetOpenFiles sets the soft limit of open files back, which Go's runtime has
// raised. Only an Exec does this. This one fails, because no program has an empty
// path.
func resetOpenFiles() { _ = syscall.Exec("", nil, nil) }

// execLimited changes limits and executes a program. It returns only if that
// fails, with the limits as before.
//
// Once the limits apply, Go's runtime may get no memory from the kernel, and end
// this process. So execLimited allocates everything before, ends the collection of
// garbage, and makes only bare system calls after that.
func execLimited(path string, argv, env []string, changes []softLimit) error {
	pathp, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	argvp, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return err
	}
	envp, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return err
	}
	debug.SetGCPercent(-1)
	runtime.GC() // waits for a collection that has begun
	for i := range changes {
		setLimit(changes[i].resource, &changes[i].new)
	}
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(pathp)), uintptr(unsafe.Pointer(&argvp[0])), uintptr(unsafe.Pointer(&envp[0])))
	for i := range changes {
		setLimit(changes[i].resource, &changes[i].before)
	}
	runtime.KeepAlive(argvp)
	runtime.KeepAlive(envp)
	return errno
}

// setLimit sets a limit of this process. The kernel permits every soft limit up to
// the hard limit. So setLimit can fail only when execLimited restores the limit of
// resident memory, which has no effect.
func setLimit(resource int, limit *unix.Rlimit) {
	_, _, _ = unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, uintptr(resource), uintptr(unsafe.Pointer(limit)), 0, 0, 0)
}

package step

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"schedrestd/become/stage"
	"schedrestd/bundled/ctld/process"
	"schedrestd/internal/closeonexec"
)

// scriptFD is the descriptor from which the interpreter reads the script. Its
// number is high because scripts use low numbers themselves.
const scriptFD = 100

// start executes the second stage as the job's user, and returns without
// waiting for the report of the second stage. A goroutine reads the report. The
// user can stop the second stage, even before its first instruction. But the
// user can't stop this process, so this process can still enforce the time
// limit (see package stage).
//
// The second stage gets none of the user's environment variables, so variables
// such as LD_PRELOAD affect only the script.
func (w *watch) start() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	files, err := dupFDs(null, null, null, w.specFile, write)
	write.Close()
	defer closeAll(files)
	if err != nil {
		read.Close()
		return err
	}
	if err := leaveKeyring(); err != nil && w.spec.User != nil {
		read.Close()
		return fmt.Errorf("leave root's session keyring: %w", err)
	}
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	argv, env := []string{startName}, stageEnv
	if u := w.spec.User; u != nil {
		target := stage.Target{UID: u.UID, GID: u.GID, Groups: u.Groups, DeathSignal: attr.Pdeathsig,
			Path: stage.Program, Argv: argv, Env: env, Report: reportFD}
		argv, env = target.Command()
	}
	if w.group != nil {
		dir, err := w.group.Open()
		if err != nil {
			read.Close()
			return err
		}
		defer dir.Close()
		attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
	}
	w.scriptPID, err = syscall.ForkExec(stage.Program, argv, &syscall.ProcAttr{Dir: "/", Env: env, Files: files, Sys: attr})
	if err != nil {
		read.Close()
		return fmt.Errorf("fork second stage: %w", err)
	}
	go func() { w.startResult <- readReport(read) }()
	return nil
}

// startMain runs the second stage. The second stage has only the user's rights
// when it opens the paths that the user named.
func startMain() int {
	report := os.NewFile(reportFD, "report")
	err := disableTracing()
	leaveKeyring() // gives the script a new keyring, owned by the user; the first stage has already left root's
	var spec *Spec
	if err == nil {
		spec, err = readSpec(os.NewFile(specFD, "spec"))
	}
	if err == nil {
		err = spec.execute(report)
	}
	if !isFault(err) {
		report.WriteString(reportJob)
	}
	fmt.Fprint(report, err)
	return 1
}

// execute replaces this process with the script. It returns only if this fails.
func (s *Spec) execute(report *os.File) error {
	env, umask, problems := takeUmask(rawStrings(s.Environment))
	syscall.Umask(umask)
	resetSignals()
	parent, err := process.Of(os.Getppid())
	if err != nil {
		return err
	}
	if err := os.Chdir(string(s.WorkDir)); err != nil {
		return fmt.Errorf("enter the working directory: %w", err)
	}
	// All streams are opened before the first of them replaces a standard
	// descriptor. So the standard descriptors are unchanged if opening a stream
	// fails.
	in, out, errFile, err := s.openStreams()
	if err != nil {
		return err
	}
	script, err := sealedFile("script", []byte(s.Script))
	if err != nil {
		return err
	}
	// This process has the memory file open for writing. The interpreter gets a
	// read-only descriptor.
	script, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", script.Fd()))
	if err != nil {
		return fmt.Errorf("open the script: %w", err)
	}
	for fd, f := range map[int]*os.File{0: in, 1: out, 2: errFile, scriptFD: script} {
		if err := unix.Dup3(int(f.Fd()), fd, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("place descriptor %d: %w", fd, err)
		}
	}
	if err := closeOnExecExcept(scriptFD); err != nil {
		return err
	}
	resetOpenFiles()
	env, limits, more := takeLimits(env, s.Memory)
	for _, p := range append(problems, more...) {
		fmt.Fprintln(os.Stderr, "schedctld: "+p) // to the job's error output
	}
	if _, err := report.WriteString(reportExec); err != nil {
		return err
	}
	path := fmt.Sprintf("/proc/self/fd/%d", scriptFD)
	argv := append([]string{path}, rawStrings(s.Args)...)
	err = execLimited(path, argv, append(env, stepVariable(parent)), limits)
	return fmt.Errorf("execute the script's interpreter %q: %w", interpreter(string(s.Script)), err)
}

// resetSignals resets the signals that the controller ignores. Otherwise the
// script would ignore these signals, too. The controller ignores a signal if
// the program that started the controller ignored that signal. Examples of such
// programs are nohup, shells and service managers.
//
// resetSignals installs a handler for each ignored signal from 1 to 31, because
// exec resets every signal that has a handler. It resets the real-time signals
// directly, because the Go runtime can't install handlers for all of them.
func resetSignals() {
	const firstRealTime, last = 32, 64
	for sig := syscall.Signal(1); sig < firstRealTime; sig++ {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	var action [4]uint64 // the kernel's sigaction: handler SIG_DFL, no flags, an empty mask
	for sig := uintptr(firstRealTime); sig <= last; sig++ {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
}

// closeOnExecExcept marks all descriptors above 2 as close-on-exec, except
// keep. Otherwise the job would inherit descriptors from this program and from
// the service manager.
func closeOnExecExcept(keep uint) error {
	if err := closeonexec.Mark(); err != nil {
		return fmt.Errorf("mark descriptors close-on-exec: %w", err)
	}
	_, err := unix.FcntlInt(uintptr(keep), unix.F_SETFD, 0)
	return err
}

func (s *Spec) openStreams() (in, out, errFile *os.File, err error) {
	input := string(s.Input)
	if input == "" {
		input = os.DevNull
	}
	if in, err = openUserPath(input, os.O_RDONLY); err != nil {
		return nil, nil, nil, fmt.Errorf("open the input: %w", err)
	}
	if out, err = s.openOutput(string(s.Output)); err != nil {
		return nil, nil, nil, fmt.Errorf("open the output: %w", err)
	}
	if s.Error == "" || filepath.Clean(string(s.Error)) == filepath.Clean(string(s.Output)) {
		return in, out, out, nil
	}
	if errFile, err = s.openOutput(string(s.Error)); err != nil {
		return nil, nil, nil, fmt.Errorf("open the error output: %w", err)
	}
	return in, out, errFile, nil
}

// openOutput opens an output file for writing. If its directory does not exist,
// openOutput creates the directory first.
func (s *Spec) openOutput(path string) (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE
	if s.Append {
		flags |= os.O_APPEND
	} else {
		flags |= os.O_TRUNC
	}
	f, err := openUserPath(path, flags)
	if errors.Is(err, unix.ENOENT) && os.MkdirAll(filepath.Dir(path), 0o755) == nil { // as Slurm does since 24.11
		return openUserPath(path, flags)
	}
	return f, err
}

// openUserPath opens a path that the user named. If the path is a named pipe,
// openUserPath does not wait for another process to open the pipe, because it
// could not report an error during the wait. If the path is a terminal, the
// terminal does not become the controlling terminal.
func openUserPath(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(path, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o666)
	if errors.Is(err, unix.ENXIO) {
		err = errors.New("named pipe without a reader")
	}
	if err == nil {
		err = unix.SetNonblock(fd, false) // for the script
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func rawStrings(raw []Raw) []string {
	var s []string
	for _, r := range raw {
		s = append(s, string(r))
	}
	return s
}

// interpreter returns the interpreter that the first line of the script names.
func interpreter(script string) string {
	line, _, _ := strings.Cut(script, "\n")
	return strings.TrimSpace(strings.TrimPrefix(line, "#!"))
}

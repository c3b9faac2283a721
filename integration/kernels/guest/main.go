// The program guest is the first process of a virtual machine, which consists
// of a kernel and some files in memory. The program performs the steps in
// /plan, reports each step on the console, and switches the machine off.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/integration/kernels/plan"
)

func main() {
	if os.Getenv("SECOND") == "" {
		if err := leaveRootfs(); err != nil {
			fmt.Println(plan.Failed, err)
		}
		powerOff()
	}
	if os.Getpid() == 1 {
		if err := reap(); err != nil {
			fmt.Println(plan.Failed, err)
		}
		fmt.Println(plan.Done)
		powerOff()
	}
	if err := run(); err != nil {
		fmt.Println(plan.Failed, err)
	}
}

// reap executes this program again to perform the steps. It waits for that
// process and for all orphans. Orphans must not stay zombies, because a test
// may wait until an orphan is gone.
func reap() error {
	steps, err := os.StartProcess("/init", os.Args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	for {
		switch pid, err := unix.Wait4(-1, nil, 0, nil); {
		case err != nil && err != unix.EINTR:
			return err
		case pid == steps.Pid:
			return nil
		}
	}
}

func powerOff() {
	time.Sleep(100 * time.Millisecond) // the console needs time for its output
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) // for a machine that can't be switched off
	select {}
}

// leaveRootfs moves all files from the kernel's initial file system to another
// one, and executes this program there. This is needed because the root of the
// initial file system can't be changed. leaveRootfs returns only if it fails.
func leaveRootfs() error {
	const to = "/new"
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("machine", to, "tmpfs", 0, "mode=0755,size=90%"); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	err := filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == to:
			return fs.SkipDir
		}
		return move(path, to+path, d)
	})
	if err != nil {
		return err
	}
	if err := errors.Join(os.Chdir(to), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), os.Chdir("/")); err != nil {
		return fmt.Errorf("leave the first root: %w", err)
	}
	return unix.Exec("/init", []string{"/init"}, []string{"SECOND=1", "PATH=/usr/local/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"})
}

// move moves a file to another file system. For a directory, it makes a new
// directory without contents, and leaves the original.
func move(from, to string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	switch {
	case d.IsDir():
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		return os.Chmod(to, info.Mode())
	case info.Mode()&fs.ModeSymlink != 0:
		text, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(text, to)
	case !info.Mode().IsRegular():
		return nil // the kernel creates devices
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Chmod(info.Mode()), target.Close(), os.Remove(from)) // otherwise memory would hold all files twice
}

func run() error {
	if err := mountFilesystems(); err != nil {
		return err
	}
	for _, name := range plan.Modules {
		if err := loadModule("/modules/" + name + ".ko"); err != nil {
			return err
		}
	}
	text, err := os.ReadFile("/plan")
	if err != nil {
		return err
	}
	var steps []plan.Step
	if err := json.Unmarshal(text, &steps); err != nil {
		return err
	}
	for _, s := range steps {
		if err := report(runStep(s)); err != nil {
			return err
		}
	}
	return nil
}

// loadModule loads a module of the kernel from a file.
func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil {
		return fmt.Errorf("load %s: %w", path, err)
	}
	return nil
}

// mountFilesystems mounts the file systems of a normal machine.
func mountFilesystems() error {
	for _, m := range []struct {
		kind, at, options string
		flags             uintptr
	}{
		{"proc", "/proc", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"sysfs", "/sys", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"securityfs", "/sys/kernel/security", "", 0},
		{"cgroup2", "/sys/fs/cgroup", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"devtmpfs", "/dev", "", unix.MS_NOSUID},
		{"devpts", "/dev/pts", "newinstance,ptmxmode=0666,mode=620", unix.MS_NOSUID | unix.MS_NOEXEC},
		{"tmpfs", "/dev/shm", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
		{"tmpfs", "/run", "mode=0755", unix.MS_NOSUID | unix.MS_NODEV},
		{"tmpfs", "/tmp", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
	} {
		_ = os.MkdirAll(m.at, 0o755)
		if err := unix.Mount(m.kind, m.at, m.kind, m.flags, m.options); err != nil && m.kind != "securityfs" {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	_ = os.Remove("/dev/ptmx")
	if err := errors.Join(os.Symlink("pts/ptmx", "/dev/ptmx"), os.Symlink("/proc/self/fd", "/dev/fd"), unix.Sethostname([]byte("guest"))); err != nil {
		return err
	}
	return enableInterface("lo")
}

// enableInterface enables a network interface.
func enableInterface(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("switch %s on: %w", name, err)
	}
	for range 100 { // IPv6 assigns an address only after checking that no other machine has it
		if a, _ := net.InterfaceByName(name); a != nil {
			if list, _ := a.Addrs(); len(list) > 0 {
				break
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// runStep performs one step.
func runStep(s plan.Step) plan.Result {
	r := plan.Result{Name: s.Name}
	for path, text := range s.Write {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err == nil || os.IsExist(err) {
			err = os.WriteFile(path, []byte(text), 0o644)
			if err != nil && s.Optional {
				r.Status, r.Output = plan.Skipped, []byte(err.Error())
				return r
			} else if err != nil {
				r.Status, r.Output = -1, []byte(err.Error())
				return r
			}
		}
	}
	if len(s.Argv) == 0 {
		return r
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Argv[0], s.Argv[1:]...)
	var out bytes.Buffer
	cmd.Dir, cmd.Env = s.Dir, append(os.Environ(), s.Env...)
	cmd.Stdout = io.MultiWriter(&out, new(echo))
	cmd.Stderr = cmd.Stdout
	cmd.WaitDelay = 10 * time.Second // limits the wait for background processes that hold the output open
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: s.UID, Gid: s.UID}, Setsid: true}
	if s.Group != "" {
		dir, err := os.Open("/sys/fs/cgroup/" + s.Group)
		if err != nil {
			r.Status, r.Output = -1, []byte(err.Error())
			return r
		}
		defer dir.Close()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	}
	start := time.Now()
	err := cmd.Run()
	r.Took = time.Since(start)
	if cmd.ProcessState == nil {
		fmt.Fprintln(&out, err)
		r.Status = -1
	} else {
		r.Status = cmd.ProcessState.ExitCode()
	}
	if ctx.Err() != nil {
		fmt.Fprintln(&out, "it was ended after", s.Limit)
	}
	r.Output = out.Bytes()
	return r
}

// An echo prints a line whenever a test has ended. This shows progress, because
// the tests of a whole package take a long time.
type echo struct{ line []byte }

func (e *echo) Write(text []byte) (int, error) {
	for _, b := range text {
		if e.line = append(e.line, b); b != '\n' {
			continue
		}
		if bytes.HasPrefix(e.line, []byte("--- ")) {
			fmt.Print(plan.Note, string(e.line))
		}
		e.line = e.line[:0]
	}
	return len(text), nil
}

// report writes a result to the console, as lines of text.
func report(r plan.Result) error {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(w).Encode(r), w.Close()); err != nil {
		return err
	}
	text := base64.StdEncoding.EncodeToString(packed.Bytes())
	fmt.Println(plan.Begin, r.Name, strconv.Itoa(len(text)))
	for len(text) > 0 {
		n := min(len(text), 120)
		fmt.Println(plan.Part + text[:n])
		text = text[n:]
	}
	fmt.Println(plan.End)
	return nil
}

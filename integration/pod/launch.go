// Package pod runs a container image as Kubernetes does, but without a container
// runtime: in namespaces of the test's own, with the user, the mounts and the
// security context of a pod. Its only pod is the one in which Slinky runs
// slurmrestd ([Slinky]). It needs root, and leaves nothing on the machine.
package pod

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// launchVariable contains a container for a process that is to become its first
// process. The process is this test's program, in new namespaces.
const launchVariable = "SCHEDRESTD_TEST_LAUNCH"

// container is a container as Kubernetes starts it.
type container struct {
	Root     string // the image's root directory
	Network  string // path of the pod's network namespace
	UID, GID int
	FSGroup  int
	Argv     []string
	Env      []string
	Files    map[string]string // files that Kubernetes mounts one by one: /etc/hosts and others
	Volume   volume
	// What the security context restricts.
	ReadOnly, NoNewPrivs, NoCapabilities, RuntimeDefault bool
}

// volume is a projected volume. Kubernetes makes it in memory.
type volume struct {
	Path  string
	Mode  os.FileMode
	Files map[string]string
}

// defaultCapabilities are those that containerd leaves in the bounding set.
var defaultCapabilities = []uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FSETID, unix.CAP_FOWNER, unix.CAP_MKNOD, unix.CAP_NET_RAW,
	unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_SETFCAP, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_KILL, unix.CAP_AUDIT_WRITE}

// The paths that containerd makes unreadable or read-only in every container.
var (
	maskedFiles = []string{"/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug"}
	maskedDirs  = []string{"/proc/acpi", "/proc/asound", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap"}
	readOnly    = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// Main makes this process a container if it was started for one. Call it first
// in TestMain, because the container's first process is the test's program.
func Main() {
	if text := os.Getenv(launchVariable); text != "" {
		launch(text)
	}
}

// launch makes this process the first process of a container. It does not
// return.
func launch(text string) {
	runtime.LockOSThread() // execve keeps the attributes of this thread
	var c container
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		err = c.exec()
	}
	fmt.Fprintln(os.Stderr, "launch:", err)
	os.Exit(1)
}

func (c *container) exec() error {
	network, err := netns.GetFromPath(c.Network)
	if err != nil {
		return err
	}
	if err := netns.Set(network); err != nil {
		return err
	}
	if err := c.mountAll(); err != nil {
		return err
	}
	// In a chroot the kernel permits no user namespaces, so container runtimes
	// replace the root instead.
	if err := errors.Join(unix.Chdir(c.Root), unix.PivotRoot(".", "."), unix.Unmount(".", unix.MNT_DETACH), unix.Chdir("/")); err != nil {
		return err
	}
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		if c.NoCapabilities || !slices.Contains(defaultCapabilities, capability) {
			unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		}
	}
	// The calls of package syscall would change all threads.
	group := uint32(c.FSGroup)
	for _, call := range [][4]uintptr{
		{unix.SYS_SETGROUPS, 1, pointer(&group), 0},
		{unix.SYS_SETRESGID, uintptr(c.GID), uintptr(c.GID), uintptr(c.GID)},
		{unix.SYS_SETRESUID, uintptr(c.UID), uintptr(c.UID), uintptr(c.UID)},
	} {
		if _, _, e := unix.RawSyscall(call[0], call[1], call[2], call[3]); e != 0 {
			return e
		}
	}
	if c.NoNewPrivs {
		err = errors.Join(err, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	}
	if c.RuntimeDefault {
		err = errors.Join(err, installRuntimeDefault())
	}
	return errors.Join(err, unix.Exec(c.Argv[0], c.Argv, c.Env))
}

// mountAll mounts everything below the image's root. Only files of the test's
// own directory and mounts of this namespace are changed.
func (c *container) mountAll() error {
	at := func(path string) string { return filepath.Join(c.Root, path) }
	var err error
	mount := func(source, target, kind string, flags uintptr, data string) {
		if e := unix.Mount(source, target, kind, flags, data); e != nil {
			err = errors.Join(err, fmt.Errorf("mount %s: %w", target, e))
		}
	}
	const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	bind := func(source, target string, flags uintptr) {
		mount(source, target, "", unix.MS_BIND|unix.MS_REC, "")
		if flags != 0 {
			mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|flags, "")
		}
	}
	mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, "")
	bind(c.Root, c.Root, 0)
	for _, dir := range []string{"/proc", "/sys", "/dev", c.Volume.Path} {
		err = errors.Join(err, os.MkdirAll(at(dir), 0o755))
	}
	for path, text := range c.Files {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(at(path)), 0o755), os.WriteFile(at(path), []byte(text), 0o644))
		bind(at(path), at(path), 0)
	}
	mount("proc", at("/proc"), "proc", safe, "")
	mount("sysfs", at("/sys"), "sysfs", safe|unix.MS_RDONLY, "")
	mount("tmpfs", at("/dev"), "tmpfs", unix.MS_NOSUID|unix.MS_STRICTATIME, "mode=755,size=65536k")
	for name, minor := range map[string]uint32{"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9} {
		err = errors.Join(err, unix.Mknod(at("/dev/"+name), unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))), os.Chmod(at("/dev/"+name), 0o666))
	}
	err = errors.Join(err, os.Mkdir(at("/dev/shm"), 0o777))
	mount("shm", at("/dev/shm"), "tmpfs", safe, "mode=1777,size=65536k")
	for _, path := range maskedFiles {
		if _, e := os.Stat(at(path)); e == nil {
			bind(at("/dev/null"), at(path), 0)
		}
	}
	for _, path := range maskedDirs {
		if _, e := os.Stat(at(path)); e == nil {
			mount("tmpfs", at(path), "tmpfs", unix.MS_RDONLY, "")
		}
	}
	for _, path := range readOnly {
		if _, e := os.Stat(at(path)); e == nil {
			bind(at(path), at(path), safe|unix.MS_RDONLY)
		}
	}
	mount("tmpfs", at(c.Volume.Path), "tmpfs", 0, "mode=1777")
	err = errors.Join(err, c.fillVolume(at(c.Volume.Path)))
	bind(at(c.Volume.Path), at(c.Volume.Path), unix.MS_RDONLY)
	if c.ReadOnly {
		mount("", c.Root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
	return err
}

// fillVolume writes the volume's files as the kubelet does: into a directory
// that two symbolic links lead to, so that all files can be replaced at once.
// Afterwards the kubelet gives everything to fsGroup, which gets the permission
// to read files and to enter directories.
func (c *container) fillVolume(dir string) error {
	const stamp = "..2026_01_02_03_04_05.123456789"
	err := errors.Join(os.Mkdir(filepath.Join(dir, stamp), 0o755), os.Chmod(filepath.Join(dir, stamp), 0o755), os.Symlink(stamp, filepath.Join(dir, "..data")))
	for name, text := range c.Volume.Files {
		path := filepath.Join(dir, stamp, name)
		err = errors.Join(err, os.WriteFile(path, []byte(text), c.Volume.Mode), os.Chmod(path, c.Volume.Mode), os.Symlink("..data/"+name, filepath.Join(dir, name)))
	}
	return errors.Join(err, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode() | 0o440
		if d.IsDir() {
			mode |= 0o110 | os.ModeSetgid
		}
		err = os.Lchown(path, -1, c.FSGroup)
		if d.Type() != os.ModeSymlink {
			err = errors.Join(err, os.Chmod(path, mode))
		}
		return err
	}))
}

// serviceVariables returns the variables that Kubernetes sets for a Service.
func serviceVariables(service, ip string, port int) []string {
	name := strings.ToUpper(strings.ReplaceAll(service, "-", "_"))
	url := fmt.Sprintf("tcp://%s:%d", ip, port)
	prefix := fmt.Sprintf("%s_PORT_%d_TCP", name, port)
	return []string{name + "_SERVICE_HOST=" + ip, fmt.Sprintf("%s_SERVICE_PORT=%d", name, port), name + "_PORT=" + url,
		prefix + "=" + url, prefix + "_PROTO=tcp", fmt.Sprintf("%s_PORT=%d", prefix, port), prefix + "_ADDR=" + ip}
}

func pointer[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

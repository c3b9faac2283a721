package security

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// namespaces that are part of a posture, as /proc/PID/ns names them.
var namespaces = []string{"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"}

// Inheritance is what every process inherits from the thread that starts it.
type Inheritance struct {
	Bounding   string            // capability bounding set, hexadecimal
	Seccomp    string            // mode: a container's filter is inherited
	Namespaces map[string]string // "ipc" → "ipc:[4026531839]"
}

// Inherited is what a child of this thread of the process will inherit, which need not be the calling one.
func Inherited(thread int) (Inheritance, error) {
	dir := fmt.Sprintf("/proc/self/task/%d/", thread)
	status, err := readStatus(dir + "status")
	if err != nil {
		return Inheritance{}, err
	}
	ns, err := readNamespaces(dir + "ns/")
	for _, name := range []string{"pid", "time"} { // a thread keeps its own, and its children get others
		if id, err := os.Readlink(dir + "ns/" + name + "_for_children"); err == nil {
			ns[name] = id
		}
	}
	return Inheritance{Bounding: status["CapBnd"], Seccomp: status["Seccomp"], Namespaces: ns}, err
}

// readNamespaces reads the links below dir; a kernel need not have each kind.
func readNamespaces(dir string) (map[string]string, error) {
	list := map[string]string{}
	for _, name := range namespaces {
		id, err := os.Readlink(dir + name)
		switch {
		case os.IsNotExist(err):
		case err != nil:
			return nil, fmt.Errorf("read the %s namespace: %w", name, err)
		default:
			list[name] = id
		}
	}
	return list, nil
}

// Measure asks the kernel about the calling process. What belongs to threads is read of
// every thread, and must be the same for all: one thread that kept a capability is a
// process that has it. Call it before the files of /proc are closed to the process.
func Measure() (Posture, error) {
	p := Posture{}
	if err := p.measureThreads(); err != nil {
		return nil, err
	}
	ns, err := readNamespaces("/proc/self/ns/")
	if err != nil {
		return nil, err
	}
	for name, id := range ns {
		p["ns_"+name] = id
	}
	if err := p.measureProcess(); err != nil {
		return nil, err
	}
	p["descriptors"], err = openDescriptors()
	return p, err
}

func (p Posture) measureThreads() error {
	threads, err := threadStatus("/proc/self/task")
	if err != nil {
		return err
	}
	for name, field := range map[string]string{
		"uid": "Uid", "gid": "Gid", "groups": "Groups",
		"cap_inheritable": "CapInh", "cap_permitted": "CapPrm", "cap_effective": "CapEff",
		"cap_bounding": "CapBnd", "cap_ambient": "CapAmb",
		"no_new_privs": "NoNewPrivs", "seccomp": "Seccomp",
	} {
		var values []string
		for _, status := range threads {
			values = append(values, status[field])
		}
		slices.Sort(values)
		p[name] = strings.Join(slices.Compact(values), " on one thread, on another ")
	}
	return nil
}

func (p Posture) measureProcess() error {
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("ask whether the process is dumpable: %w", err)
	}
	p["dumpable"] = strconv.Itoa(dumpable)
	session, err := unix.Getsid(0)
	if err != nil {
		return fmt.Errorf("ask for the session: %w", err)
	}
	p["session"] = strconv.Itoa(session)
	if session == os.Getpid() {
		p["session"] = "own"
	}
	for name, which := range map[string]int{
		"limit_core": unix.RLIMIT_CORE, "limit_file_size": unix.RLIMIT_FSIZE, "limit_files": unix.RLIMIT_NOFILE,
		"limit_tasks": unix.RLIMIT_NPROC,
	} {
		var l unix.Rlimit
		if err := unix.Getrlimit(which, &l); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		p[name] = fmt.Sprintf("%d %d", l.Cur, l.Max)
	}
	return nil
}

// openDescriptors lists what the process has open, without the Go runtime's own
// (its poller) and the directory that is being read.
func openDescriptors() (string, error) {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return "", fmt.Errorf("list the open descriptors: %w", err)
	}
	var open []uint32
	for _, e := range list {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if os.IsNotExist(err) || target == "anon_inode:[eventpoll]" || target == "anon_inode:[eventfd]" {
			continue
		}
		n, err := strconv.ParseUint(e.Name(), 10, 32)
		if err != nil {
			return "", fmt.Errorf("list the open descriptors: %w", err)
		}
		open = append(open, uint32(n))
	}
	slices.Sort(open)
	return strings.ReplaceAll(join(open), ",", ""), nil
}

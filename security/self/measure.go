package self

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/security"
)

// measure returns the attributes that the kernel reports for the calling
// process. All threads must have equal attributes, because a capability that
// one thread kept would be available to the whole process. Call Measure while
// the process can still read /proc.
func measure() (Attributes, error) {
	p := Attributes{}
	if err := measureThreads(p); err != nil {
		return nil, err
	}
	ns, err := security.Namespaces("/proc/self/ns/")
	if err != nil {
		return nil, err
	}
	for name, id := range ns {
		p["ns_"+name] = id
	}
	if err := measureProcess(p); err != nil {
		return nil, err
	}
	p["descriptors"], err = openDescriptors()
	return p, err
}

func measureThreads(p Attributes) error {
	threads, err := security.ThreadStatus("/proc/self/task")
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
			values = append(values, status.Value(field))
		}
		slices.Sort(values)
		p[name] = strings.Join(slices.Compact(values), " on one thread, on another ")
	}
	return nil
}

func measureProcess(p Attributes) error {
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("query the dumpable flag: %w", err)
	}
	p["dumpable"] = strconv.Itoa(dumpable)
	session, err := unix.Getsid(0)
	if err != nil {
		return fmt.Errorf("get the session id: %w", err)
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

// openDescriptors lists the open descriptors, except those of the Go runtime's
// poller and the descriptor through which it reads the list.
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
	return strings.Trim(fmt.Sprint(open), "[]"), nil
}

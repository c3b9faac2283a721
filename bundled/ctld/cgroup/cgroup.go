// Package cgroup puts the processes of a job into a control group (version 2)
// of their own, if the system permits this. The kernel then enforces the memory
// limit, and can kill all processes of the job at once, even if they fork.
//
// The package creates groups only below a group that was delegated to this
// process, because only the service manager may change other groups. A group is
// delegated if the service manager marked it as delegated, or if it is the root
// of the tree that this process sees. If no group was delegated, callers must
// measure the memory themselves.
package cgroup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Base is a group below which this process may create groups.
type Base struct {
	Path           string `json:"path"`   // directory
	CanLimitMemory bool   `json:"memory"` // groups below it can limit memory
}

// Delegated finds the group that was delegated to this process and prepares it.
// If there is no such group, the error tells an administrator why.
func Delegated() (Base, error) {
	mount, root, err := findMount()
	if err != nil {
		return Base{}, err
	}
	current, err := ownCgroup()
	if err != nil {
		return Base{}, err
	}
	rel, err := filepath.Rel(root, current)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return Base{}, fmt.Errorf("own cgroup %s is outside the tree that is mounted at %s", current, mount)
	}
	return findBase(mount, rel)
}

// subgroup is the name of this process's group if systemd puts the process into
// a group below the service's group (DelegateSubgroup=, systemd 254 and later).
const subgroup = "schedctld"

// findBase returns the Base for a process that is in the group rel below mount.
//
// If this process was started directly in the delegated group, findBase does
// not enable memory limits. The kernel allows no processes in a group whose
// children have memory limits. If a job's group had such a limit, it could
// outlive this process. The service manager could then not start this program
// in the delegated group again.
func findBase(mount, rel string) (b Base, err error) {
	current := filepath.Join(mount, rel)
	parent := filepath.Dir(current)
	limits := true
	switch {
	case rel == ".":
		b.Path = current
	case filepath.Base(rel) == subgroup && isDelegated(parent):
		b.Path = parent
	case isDelegated(current):
		b.Path, limits = current, false
	default:
		return b, fmt.Errorf("cgroup /%s is not delegated to this service", rel)
	}
	if err := unix.Access(b.Path, unix.W_OK); err != nil {
		return Base{}, fmt.Errorf("cgroup %s: %w", b.Path, err)
	}
	b.CanLimitMemory = limits && enableMemory(b.Path)
	return b, nil
}

// findMount returns the mount point of cgroup version 2, and the path of the
// group that is mounted there.
func findMount() (mount, root string, err error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		left, right, _ := strings.Cut(in.Text(), " - ")
		fields := strings.Fields(left)
		if strings.HasPrefix(right, "cgroup2 ") && len(fields) >= 5 {
			return fields[4], fields[3], nil
		}
	}
	return "", "", errors.New("no cgroup version 2 is mounted")
}

// ownCgroup returns the path of this process's group in cgroup version 2. The
// path begins at the root of all groups.
func ownCgroup() (string, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSuffix(path, "\n"), nil
		}
	}
	return "", errors.New("this process is in no cgroup of version 2")
}

func isDelegated(dir string) bool {
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// enableMemory enables memory limits for the groups below dir, and reports
// whether it succeeded. Unless dir is the root, the kernel permits this only if
// dir contains no processes. So if this process is the only one in dir,
// enableMemory moves it to a subgroup.
func enableMemory(dir string) bool {
	subtreeControl := filepath.Join(dir, "cgroup.subtree_control")
	if hasWord(subtreeControl, "memory") {
		return true
	}
	if !hasWord(filepath.Join(dir, "cgroup.controllers"), "memory") {
		return false
	}
	if write(subtreeControl, "+memory") == nil {
		return true
	}
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil || strings.TrimSpace(string(procs)) != strconv.Itoa(os.Getpid()) {
		return false
	}
	child := filepath.Join(dir, subgroup)
	if err := os.Mkdir(child, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return false
	}
	if write(filepath.Join(child, "cgroup.procs"), "0") != nil {
		return false
	}
	return write(subtreeControl, "+memory") == nil
}

func hasWord(file, word string) bool {
	b, err := os.ReadFile(file)
	return err == nil && bytes.Contains(append(append([]byte(" "), bytes.TrimSpace(b)...), ' '), []byte(" "+word+" "))
}

func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

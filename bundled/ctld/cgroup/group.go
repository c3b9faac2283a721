package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Group is the control group of one job.
type Group struct {
	Path          string
	MemoryLimited bool // the kernel enforces the memory limit
}

// New creates a group with the given name below b. The memory argument is the
// limit, in bytes, on the memory and swap of all processes in the group
// together; 0 means no limit.
func (b Base) New(name string, memory uint64) (*Group, error) {
	g := &Group{Path: filepath.Join(b.Path, name)}
	if err := os.Mkdir(g.Path, 0o755); err != nil {
		return nil, err
	}
	if memory == 0 || !b.CanLimitMemory {
		return g, nil
	}
	if err := g.limitMemory(memory); err != nil {
		g.Remove()
		return nil, err
	}
	g.MemoryLimited = true
	return g, nil
}

func (g *Group) limitMemory(memory uint64) error {
	if err := g.write("memory.max", strconv.FormatUint(memory, 10)); err != nil {
		return err
	}
	// memory.swap.max is missing if the kernel does not account for swap; no
	// limit is needed in that case. memory.oom.group is missing on kernels
	// before 4.19.
	for file, value := range map[string]string{"memory.swap.max": "0", "memory.oom.group": "1"} {
		if err := g.write(file, value); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (g *Group) write(file, text string) error {
	if err := write(filepath.Join(g.Path, file), text); err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	return nil
}

// Open opens the group's directory. The caller can use the returned descriptor
// to start a process in the group.
func (g *Group) Open() (*os.File, error) {
	return os.OpenFile(g.Path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// Kill kills all processes of the group, including those that are being forked.
// On kernels before 5.14 it returns os.ErrNotExist.
func (g *Group) Kill() error { return g.write("cgroup.kill", "1") }

// OutOfMemory reports whether the kernel killed a process of the group because
// of the memory limit.
func (g *Group) OutOfMemory() bool {
	b, err := os.ReadFile(filepath.Join(g.Path, "memory.events"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(n) != "0"
		}
	}
	return false
}

// Remove removes the group, which must be empty.
func (g *Group) Remove() error { return os.Remove(g.Path) }

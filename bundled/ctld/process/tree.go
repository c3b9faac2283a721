package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// All returns the processes that are visible in /proc. It omits processes that
// exit during the call.
func All() ([]Stat, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var processes []Stat
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if st, err := ReadStat(pid); err == nil {
			processes = append(processes, st)
		}
	}
	return processes, nil
}

// Descendants returns all children of the process with the id root, their
// children, and so on. The list includes exited processes for which their
// parents have not waited. If the process with the id root is a child
// subreaper, the list also includes running descendants that have called setsid
// and have lost their parents.
func Descendants(root int) ([]Stat, error) {
	processes, err := All()
	if err != nil {
		return nil, err
	}
	return descendants(processes, root), nil
}

func descendants(processes []Stat, root int) []Stat {
	children := make(map[int][]Stat)
	for _, st := range processes {
		if st.PID != root {
			children[st.Parent] = append(children[st.Parent], st)
		}
	}
	var found []Stat
	for next := []int{root}; len(next) > 0; {
		parent := next[0]
		next = next[1:]
		for _, st := range children[parent] {
			found = append(found, st)
			next = append(next, st.PID)
		}
		delete(children, parent) // processes change while /proc is being read, so the list may contain a cycle
	}
	return found
}

// Children returns the ids of the calling process's children, including exited
// children for which the caller has not waited. The kernel does not reuse the
// id of a child until the caller has waited for that child. Children is about a
// hundred times as fast as All. It returns fs.ErrNotExist if the kernel was
// built without the option CONFIG_PROC_CHILDREN.
func Children() ([]int, error) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(lists) == 0 {
		return nil, errors.Join(err, fs.ErrNotExist)
	}
	var pids []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has exited
		}
		for _, word := range bytes.Fields(text) {
			if pid, err := strconv.Atoi(string(word)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}

// WithVariable returns the user's running processes that were started with the
// given environment variable. The variable argument has the form NAME=value.
func WithVariable(uid uint32, variable string) ([]Stat, error) {
	processes, err := All()
	if err != nil {
		return nil, err
	}
	want := []byte("\x00" + variable + "\x00")
	var found []Stat
	for _, st := range processes {
		dir := "/proc/" + strconv.Itoa(st.PID)
		var owner syscall.Stat_t
		if st.State == 'Z' || syscall.Stat(dir, &owner) != nil || owner.Uid != uid {
			continue
		}
		env, err := os.ReadFile(dir + "/environ")
		if err == nil && bytes.Contains(append([]byte{0}, env...), want) {
			found = append(found, st)
		}
	}
	return found, nil
}

// SignalAll sends each signal in sigs, in order, to each process in list. It
// skips processes that have exited, even if another process now has the same
// id. It returns the number of processes to which it has tried to send the
// signals.
func SignalAll(list []Stat, sigs ...syscall.Signal) (reached int, err error) {
	boot, err := bootID()
	if err != nil {
		return 0, err
	}
	for _, st := range list {
		if st.State == 'Z' {
			continue
		}
		h, e := Identity{BootID: boot, PID: st.PID, Start: st.Start}.Open()
		if errors.Is(e, ErrGone) {
			continue
		}
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		for _, sig := range sigs {
			if e := h.Signal(sig); e != nil && !errors.Is(e, ErrGone) {
				err = errors.Join(err, fmt.Errorf("signal process %d: %w", st.PID, e))
			}
		}
		h.Close()
		reached++
	}
	return reached, err
}

// Resident returns the resident memory of the processes in list, in bytes.
// Several processes may share a page of memory. If byPSS is false, Resident
// counts such a page in full for each of these processes. This is fast. If
// byPSS is true, Resident counts only each process's proportional share of the
// page (PSS). To compute these shares, the kernel walks every mapping, so
// callers set byPSS only to confirm a result. If the kernel does not report a
// process's PSS, Resident counts all of that process's resident memory.
func Resident(list []Stat, byPSS bool) (sum uint64) {
	for _, st := range list {
		n := st.RSS
		if byPSS {
			if pss, ok := readPSS(st.PID); ok {
				n = pss
			}
		}
		sum += n
	}
	return sum
}

func readPSS(pid int) (uint64, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(b) {
		value, ok := bytes.CutPrefix(line, []byte("Pss:"))
		if !ok {
			continue
		}
		f := bytes.Fields(value)
		if len(f) == 0 {
			return 0, false
		}
		kb, err := strconv.ParseUint(string(f[0]), 10, 64)
		return kb * 1024, err == nil
	}
	return 0, false
}

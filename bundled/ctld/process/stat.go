package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// Stat holds the fields of /proc/PID/stat that this package uses.
type Stat struct {
	PID     int
	State   byte // R, S, D, Z, T …
	Parent  int
	Session int
	Start   uint64 // clock ticks from boot
	RSS     uint64 // resident memory, bytes
}

// ReadStat reads /proc/PID/stat. It returns ErrGone when there is no such
// process.
func ReadStat(pid int) (Stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return Stat{}, ErrGone
	}
	if err != nil {
		return Stat{}, err
	}
	return parseStat(b)
}

var pageSize = uint64(os.Getpagesize())

// parseStat parses the content of /proc/PID/stat, which proc_pid_stat(5)
// describes. The process chooses its own name. The name is in parentheses, and
// may itself contain spaces, parentheses and digits. So parseStat takes the
// last closing parenthesis as the end of the name. If it took the first, a
// process named "x) Z 1 1" could choose the parent that parseStat returns.
func parseStat(line []byte) (Stat, error) {
	openParen, closeParen := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if openParen < 1 || closeParen < openParen {
		return Stat{}, fmt.Errorf("stat line %.40q has no name", line)
	}
	var st Stat
	pid, err := strconv.Atoi(string(bytes.TrimSpace(line[:openParen])))
	if err != nil {
		return Stat{}, fmt.Errorf("stat line %.40q: %w", line, err)
	}
	st.PID = pid
	f := bytes.Fields(line[closeParen+1:]) // f[0] is field 3 in the manual page
	if len(f) < 22 || len(f[0]) != 1 {
		return Stat{}, fmt.Errorf("stat line of process %d has %d fields after the name", pid, len(f))
	}
	st.State = f[0][0]
	number := func(field int) uint64 {
		n, e := strconv.ParseUint(string(f[field-3]), 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("stat line of process %d, field %d: %w", pid, field, e)
		}
		return n
	}
	st.Parent = int(number(4))
	st.Session = int(number(6))
	st.Start = number(22)
	st.RSS = number(24) * pageSize
	return st, err
}

// Package machine reads the properties and the load of this machine from the
// kernel. The controller reports them in the record of its only node. It reads
// the properties at start-up, and exits if it can't read them. It reads the
// load for each node request. If it can't read the load, the answer omits the
// load.
package machine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Facts are the properties that do not change while the machine is up.
type Facts struct {
	Hostname string
	CPUs     int // logical processors on which this process and its jobs may run
	Sockets  int
	Cores    int       // per socket
	Threads  int       // per core
	Memory   uint64    // MiB
	TmpDisk  uint64    // MiB: size of the file system that contains /tmp
	BootTime time.Time // of the boot, to the second
	Arch     string    // machine name of uname(2): "x86_64"
	OS       string    // kernel name, release and version
}

// Read returns the properties of this machine.
func Read() (Facts, error) {
	var f Facts
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return f, fmt.Errorf("uname: %w", err)
	}
	f.Hostname, _, _ = strings.Cut(unix.ByteSliceToString(u.Nodename[:]), ".")
	f.Arch = unix.ByteSliceToString(u.Machine[:])
	f.OS = strings.Join([]string{unix.ByteSliceToString(u.Sysname[:]),
		unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Version[:])}, " ")
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return f, fmt.Errorf("sysinfo: %w", err)
	}
	f.Memory = uint64(info.Totalram) * uint64(info.Unit) >> 20
	var disk unix.Statfs_t
	if err := unix.Statfs("/tmp", &disk); err == nil {
		f.TmpDisk = disk.Blocks * uint64(disk.Bsize) >> 20
	}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return f, err
	}
	if f.BootTime, err = bootTime(stat); err != nil {
		return f, err
	}
	f.CPUs = runtime.NumCPU()
	f.Sockets, f.Cores, f.Threads = topology("/sys/devices/system/cpu", f.CPUs)
	return f, nil
}

// bootTime returns the time in the line "btime SECONDS" of /proc/stat.
func bootTime(stat []byte) (time.Time, error) {
	for line := range bytes.Lines(stat) {
		if n, ok := bytes.CutPrefix(line, []byte("btime ")); ok {
			s, err := strconv.ParseInt(string(bytes.TrimSpace(n)), 10, 64)
			if err != nil {
				return time.Time{}, fmt.Errorf("boot time: %w", err)
			}
			return time.Unix(s, 0), nil
		}
	}
	return time.Time{}, fmt.Errorf("/proc/stat has no boot time")
}

// topology returns the number of sockets, the number of cores per socket, and
// the number of threads per core. Their product is cpus. If the kernel does not
// report the topology, the machine is asymmetric, or only some of its CPUs are
// available, topology returns one socket with single-threaded cores.
func topology(dir string, cpus int) (sockets, cores, threads int) {
	type core struct{ socket, core string }
	perSocket, perCore := map[string]map[string]bool{}, map[core]int{}
	dirs, _ := filepath.Glob(filepath.Join(dir, "cpu[0-9]*"))
	for _, d := range dirs {
		socket, err := os.ReadFile(filepath.Join(d, "topology/physical_package_id"))
		if err != nil {
			continue // offline
		}
		id, err := os.ReadFile(filepath.Join(d, "topology/core_id"))
		if err != nil {
			continue
		}
		if perSocket[string(socket)] == nil {
			perSocket[string(socket)] = map[string]bool{}
		}
		perSocket[string(socket)][string(id)] = true
		perCore[core{string(socket), string(id)}]++
	}
	for _, c := range perSocket {
		cores = max(cores, len(c))
	}
	for _, n := range perCore {
		threads = max(threads, n)
	}
	sockets = len(perSocket)
	if sockets*cores*threads != cpus {
		return 1, cpus, 1
	}
	return sockets, cores, threads
}

// Usage holds the load of the machine at one moment.
type Usage struct {
	Load       float64 // number of runnable processes, averaged over a minute
	FreeMemory uint64  // MiB of unused memory
}

// ReadUsage reads the usage.
func ReadUsage() (Usage, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return Usage{}, fmt.Errorf("sysinfo: %w", err)
	}
	return Usage{
		Load:       float64(info.Loads[0]) / (1 << 16), // fixed point, sysinfo(2)
		FreeMemory: uint64(info.Freeram) * uint64(info.Unit) >> 20,
	}, nil
}

package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestReadAgreesWithTheSystem(t *testing.T) {
	f, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	if f.CPUs != runtime.NumCPU() || f.Sockets*f.Cores*f.Threads != f.CPUs {
		t.Errorf("%d cpus, %d sockets of %d cores of %d threads", f.CPUs, f.Sockets, f.Cores, f.Threads)
	}
	if out, err := exec.Command("uname", "-srvm").Output(); err == nil {
		if want := strings.TrimSpace(string(out)); f.OS+" "+f.Arch != want {
			t.Errorf("%q, uname says %q", f.OS+" "+f.Arch, want)
		}
	}
	if f.Memory == 0 || f.TmpDisk == 0 || f.Hostname == "" || strings.Contains(f.Hostname, ".") {
		t.Errorf("%+v", f)
	}
	if now := time.Now(); f.BootTime.After(now) || f.BootTime.Before(now.AddDate(-10, 0, 0)) {
		t.Errorf("booted %v", f.BootTime)
	}
	u, err := ReadUsage()
	if err != nil || u.Load < 0 || u.FreeMemory == 0 || u.FreeMemory > f.Memory {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestBootTime(t *testing.T) {
	for stat, bad := range map[string]bool{"cpu 1\nbtime 1700000000\nprocesses 2\n": false, "cpu 1\n": true, "btime x\n": true} {
		got, err := bootTime([]byte(stat))
		if (err != nil) != bad || !bad && got.Unix() != 1700000000 {
			t.Errorf("%q: %v, %v", stat, got, err)
		}
	}
}

func TestTopology(t *testing.T) {
	tests := []struct {
		name                      string
		ids                       []string // "socket core" of each CPU; "" for an offline CPU
		cpus                      int
		sockets, cores, threadsOf int
	}{
		{"two sockets, two cores, two threads", []string{"0 0", "0 1", "1 0", "1 1", "0 0", "0 1", "1 0", "1 1"}, 8, 2, 2, 2},
		{"core numbers with holes", []string{"0 0", "0 8"}, 2, 1, 2, 1},
		{"one thread is offline", []string{"0 0", "0 1", "0 0", ""}, 3, 1, 3, 1},
		{"only some cpus are ours", []string{"0 0", "0 1", "0 2", "0 3"}, 2, 1, 2, 1},
		{"nothing known", nil, 4, 1, 4, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for i, id := range tt.ids {
				d := filepath.Join(dir, "cpu"+string(rune('0'+i)), "topology")
				os.MkdirAll(d, 0o755)
				if socket, core, ok := strings.Cut(id, " "); ok {
					os.WriteFile(filepath.Join(d, "physical_package_id"), []byte(socket+"\n"), 0o644)
					os.WriteFile(filepath.Join(d, "core_id"), []byte(core+"\n"), 0o644)
				}
			}
			s, c, n := topology(dir, tt.cpus)
			if s != tt.sockets || c != tt.cores || n != tt.threadsOf {
				t.Errorf("%d, %d, %d; want %d, %d, %d", s, c, n, tt.sockets, tt.cores, tt.threadsOf)
			}
		})
	}
}

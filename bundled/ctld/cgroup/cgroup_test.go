package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFind checks which group findBase chooses as the parent of the jobs'
// groups. It also checks that the service manager can start the next controller
// while a job still runs. The test uses a tree of plain files.
func TestFind(t *testing.T) {
	tests := []struct {
		name      string
		own       string // group of this process, below the top
		delegated string // group that the service manager delegated
		want      string // group below which the groups of jobs are created; "" for none
		memory    bool
	}{
		{"top of the tree", ".", "", ".", true},
		{"subgroup of a service", "system/unit/schedctld", "system/unit", "system/unit", true},
		{"right in the service's group", "system/unit", "system/unit", "system/unit", false},
		{"service of that name", "system/schedctld", "system/schedctld", "system/schedctld", false},
		{"not delegated", "system/unit", "", "", false},
		{"other subgroup", "system/unit/other", "system/unit", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			top := t.TempDir()
			own := filepath.Join(top, tt.own)
			if err := os.MkdirAll(own, 0o755); err != nil {
				t.Fatal(err)
			}
			if tt.delegated != "" {
				markDelegated(t, filepath.Join(top, tt.delegated))
			}
			for dir := own; strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
				for file, text := range map[string]string{"cgroup.controllers": "cpu memory\n", "cgroup.subtree_control": "", "cgroup.procs": ""} {
					if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			b, err := findBase(top, tt.own)
			if tt.want == "" {
				if err == nil {
					t.Errorf("found %+v", b)
				}
				return
			}
			if want := (Base{Path: filepath.Join(top, tt.want), CanLimitMemory: tt.memory}); b != want || err != nil {
				t.Errorf("got %+v, %v; want %+v", b, err, want)
			}
			for _, dir := range []string{own, filepath.Join(top, tt.want)} {
				text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
				if on := dir == b.Path && tt.memory; err != nil || (string(text) == "+memory") != on {
					t.Errorf("%s switches %q on, %v", dir, text, err)
				}
			}
		})
	}
}

// markDelegated marks dir as delegated, like systemd.
func markDelegated(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		if unix.Setxattr(dir, name, []byte("1"), 0) == nil {
			return
		}
	}
	t.Skip("this file system keeps no extended attributes")
}

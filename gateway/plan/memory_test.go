package plan

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

func TestLittleMemory(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers uint32
		become  bool
		limit   uint64
		warns   bool
	}{
		{name: "no limit", answers: 3 << 30},
		{name: "the unit's limit", answers: 256 << 20, limit: 4 << 30},
		{name: "just enough", answers: 1 << 30, limit: 4 << 30},
		{name: "too little", answers: 1<<30 + 1, limit: 4 << 30, warns: true},
		{name: "become_user", answers: 2 << 30, become: true, limit: 4 << 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &query.WholePlan{Plan: ipc.Plan{Mode: ipc.ModeServe, Run: ipc.Run{Numbers: ipc.Numbers{Workers: 2}}}}
			p.Setup.Limits.Answers, p.Switches.BecomeUser = tt.answers, tt.become
			var log bytes.Buffer
			warnLittleMemory(p, tt.limit, slog.New(slog.NewTextHandler(&log, nil)))
			if got := log.String(); strings.Contains(got, "MemoryMax=") != tt.warns || !tt.warns && got != "" {
				t.Errorf("logged %q", got)
			}
		})
	}
}

func TestMemoryLimit(t *testing.T) {
	for _, tt := range []struct {
		name, groups, max string
		want              uint64
	}{
		{"limit", "0::/system.slice/x.service\n", "4294967296\n", 4 << 30},
		{"both versions", "4:memory:/y\n0::/system.slice/x.service\n", "1\n", 1},
		{"no limit", "0::/system.slice/x.service\n", "max\n", 0},
		{"another group", "0::/z\n", "1\n", 0},
		{"only version 1", "4:memory:/system.slice/x.service\n", "1\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range map[string]string{"proc/self/cgroup": tt.groups, "sys/fs/cgroup/system.slice/x.service/memory.max": tt.max} {
				path := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := memoryLimit(root); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
}

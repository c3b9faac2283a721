package privsep

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestThreadsAreShared: the threads of all shared workers are as many as were asked for, and no
// worker is there without one, or without a connection to serve.
func TestThreadsAreShared(t *testing.T) {
	needRoot(t) // who else can't read the environment of a worker, which is not dumpable
	for _, tt := range []struct {
		config Config
		want   []string
	}{
		{Config{Threads: 1}, []string{"1"}},
		{Config{Threads: 2}, []string{"1", "1"}},
		{Config{Threads: 3}, []string{"1", "2"}},
		{Config{Threads: 7, Workers: 3}, []string{"2", "2", "3"}},
		{Config{Threads: 8, Connections: 1}, []string{"8"}},
	} {
		tt.config.Service = identityOf("nobody", "nogroup", "")
		g := serve(t, nil, tt.config)
		var got []string
		for _, pid := range children(t, g.cmd.Process.Pid) {
			raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range strings.Split(string(raw), "\x00") {
				if n, ok := strings.CutPrefix(v, "GOMAXPROCS="); ok {
					got = append(got, n)
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, tt.want) {
			t.Errorf("-t %d, %d workers: %v, want %v", tt.config.Threads, tt.config.Workers, got, tt.want)
		}
	}
}

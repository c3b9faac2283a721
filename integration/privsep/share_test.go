package privsep

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestThreadsAreShared checks that all shared workers together have the
// configured number of threads. Each worker must have at least one thread, and
// one slot for a connection.
func TestThreadsAreShared(t *testing.T) {
	t.Parallel()
	needRoot(t) // only root can read the environment of a worker, which is not dumpable
	for _, tt := range []struct {
		config testConfig
		want   []string
	}{
		{testConfig{Threads: 1}, []string{"1"}},
		{testConfig{Threads: 3}, []string{"3"}},
		{testConfig{Threads: 4}, []string{"2", "2"}},
		{testConfig{Threads: 5}, []string{"2", "3"}},
		{testConfig{Threads: 7, Workers: 3}, []string{"2", "2", "3"}},
		{testConfig{Threads: 8, Connections: 1}, []string{"8"}},
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

package plan

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// warnLittleMemory warns if the limit, in bytes (0 for none), is below the memory that
// the workers may use for lists, including the workers from before a reload. Then the
// kernel could kill workers although no client does anything unusual.
func warnLittleMemory(p *query.WholePlan, limit uint64, log *slog.Logger) {
	lists := 2 * uint64(p.Workers) * uint64(p.Setup.Limits.Answers)
	if p.Mode != ipc.ModeServe || p.Switches.BecomeUser || limit == 0 || lists <= limit {
		return
	}
	log.Warn("little memory for the lists that workers may store", "memory", limit, "lists", lists,
		"hint", "in the service's unit, set MemoryMax= to 16 times SCHEDRESTD_ANSWER_MEMORY, or use a smaller SCHEDRESTD_ANSWER_MEMORY")
}

// memoryLimit returns the maximum memory of this process's control group (version 2),
// in which the whole gateway is, or 0 if there is no limit. The file system root is "/",
// except in tests.
func memoryLimit(root string) uint64 {
	groups, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			text, _ := os.ReadFile(filepath.Join(root, "sys/fs/cgroup", path, "memory.max"))
			limit, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64) // otherwise "max"
			return limit
		}
	}
	return 0
}

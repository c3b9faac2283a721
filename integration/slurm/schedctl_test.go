package slurm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSchedctl checks that schedctl over REST works with both gateways, so that
// users need not know which gateway a site has.
func TestSchedctl(t *testing.T) {
	m := useCluster(t)
	newest, ok := map[string]string{"24.11": "v0.0.42", "26.05": "v0.0.45"}[m.release]
	if !ok {
		t.Skip("schedctl needs v0.0.42 or newer")
	}
	m.reference(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	must(t, m.install("schedctl"))
	script := "#!/bin/sh\n#SBATCH -J 'from schedctl' -n 1 --mem=50M   # a comment\n#SBATCH -t 2 --mail-type=NONE\n#SBATCH -o /tmp/schedctl-%j\necho \"$0 $A $(pwd)\"\nexit 5\n"
	must(t, os.WriteFile(filepath.Join(m.root, "tmp/schedctl.sh"), []byte(script), 0o755))
	for _, tt := range []struct{ name, socket, version, ended string }{
		{"slurmrestd", referenceSocket, newest, "already completing or completed"}, {"schedrestd", gatewaySocket, "v0.0.45", "the job has already ended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := func(status int, args ...string) (out string) {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				cmd := m.command(ctx, "root", append([]string{"env", "SLURM_JWT=" + m.token, "SCHED_URL=unix:" + tt.socket, "SCHED_SERVER_USER=rest", "A=b",
					"/opt/gateway/schedctl"}, args...)...)
				var errOut strings.Builder
				cmd.Stderr = &errOut
				text, _ := cmd.Output()
				if cmd.ProcessState.ExitCode() != status {
					t.Fatalf("%v: status %d, want %d: %s%s", args, cmd.ProcessState.ExitCode(), status, text, errOut.String())
				}
				return string(text) + errOut.String()
			}
			checkContains := func(text string, want ...string) {
				t.Helper()
				for _, w := range want {
					if !strings.Contains(text, w) {
						t.Errorf("no %q in\n%s", w, text)
					}
				}
			}
			checkContains(run(0, "top", "--once"), tt.version, "Nodes ")
			checkContains(run(0, "nodes"), "NAME", "PARTITIONS")
			checkContains(run(0, "partitions"), "NODELIST")
			out := run(5, "submit", "--wait", "schedctl.sh")
			id, rest, _ := strings.Cut(out, "\n")
			checkContains(rest, "job "+id+" FAILED, exit code 5")
			checkContains(run(0, "job", id), "Name:       from schedctl", "User:       alice", "Outcome:    exit code 5", "Memory:     50M per node", "Time limit: 2:00")
			text, err := os.ReadFile(filepath.Join(m.root, "tmp/schedctl-"+id))
			if err != nil || !strings.HasSuffix(string(text), " b /tmp\n") {
				t.Errorf("the job printed %q, %v", text, err)
			}
			for _, option := range []string{"--output=/nowhere/out", "--input=/nowhere/in"} {
				out := run(181, "submit", "--wait", "schedctl.sh", "--", option)
				checkContains(out, "FAILED, the file for input, output or errors, or its directory, can't be opened (0:53)\n")
				if strings.Contains(out, "RaisedSignal") {
					t.Errorf("Slurm's number is shown:\n%s", out)
				}
			}
			checkContains(run(0, "show", "share"), "alice    USER         physics  10      0.833333")
			array, _, _ := strings.Cut(run(0, "submit", "schedctl.sh", "--", "--array=1-9%1", "--hold", "-J", "many"), "\n")
			checkContains(run(0, "jobs", "--me", "-t", "PD", "-n", "many"), array+"_[1-9%1]")
			checkContains(run(0, "job", array+"_4"), "Job:        "+array+"_[1-9%1]")
			checkContains(run(5, "job", array+"_12"), "is unknown")
			run(0, "cancel", "--me", "--name", "many")
			checkContains(run(1, "watch", array), "CANCELLED")
			checkContains(run(1, "cancel", array), tt.ended)
			checkContains(run(5, "cancel", "99999"), "job 99999: ")
			checkContains(run(5, "job", "99999"), "job 99999 is unknown")
			checkContains(run(1, "submit", "schedctl.sh", "--", "-p", "nowhere"), "artition")
			checkContains(run(0, "jobs", "--all", "-o", "json"), `"name": "from schedctl"`)
			checkContains(run(0, "__complete", "job", ""), id+"\tfrom schedctl alice FAILED\n")
		})
	}
}

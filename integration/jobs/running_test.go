package jobs

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// TestRunningJob checks what the fields of a submission change in the running
// job: its arguments, environment, limits, directory and files. On a Slurm
// cluster, TestRunningJobs of integration/slurm compares the same with slurmrestd.
func TestRunningJob(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	u := harness.OrdinaryUser(t)
	const path = "PATH=/usr/bin:/bin"
	environment := func(variables ...string) map[string]any {
		return map[string]any{"environment": append([]string{path}, variables...)}
	}
	type fields = map[string]any
	infinite := fields{"set": true, "infinite": true}
	for _, tt := range []struct {
		name   string
		fields fields
		script string
		output string // name of the file in the job's directory, if not the usual one
		want   string // OUT stands for the directory
	}{
		{name: "arguments", fields: fields{"argv": []string{"job.sh", "", "x", "a b", ""}}, script: `echo $#; printf '<%s>' "$@"`, want: "4\n<><x><a b><>"},
		{name: "one empty argument", fields: fields{"argv": []string{"job.sh", ""}}, script: `echo $#`, want: "1\n"},
		{name: "an empty name", fields: fields{"argv": []string{""}}, script: `echo $#`, want: "0\n"},
		{name: "variables", fields: environment("", "A=", "B= c\td=e", "C=1"), script: `printf '<%s><%s><%s>' "${A-unset}" "$B" "$C"`, want: "<>< c\td=e><1>"},
		{name: "variables of slurmd", script: `test "$SLURMD_NODENAME" = "$SLURM_JOB_NODELIST" && echo "$TMPDIR"`, want: "/tmp\n"},
		{name: "a directory for temporary files", fields: environment("TMPDIR=/var/tmp"), script: `echo "$TMPDIR"`, want: "/var/tmp\n"},
		{name: "a distribution", fields: fields{"distribution": "cyclic:block"}, script: `echo "$SLURM_DISTRIBUTION"`, want: "cyclic:block\n"},
		{name: "a distribution with a size", fields: fields{"distribution": "plane=2", "environment": []string{path, "SLURM_DISTRIBUTION=block"}},
			script: `echo "$SLURM_DISTRIBUTION $SLURM_DIST_PLANESIZE"`, want: "plane 2\n"},
		{name: "a directory", fields: fields{"current_working_directory": "/usr", "standard_output": "OUT/directory"}, output: "directory", script: `pwd`, want: "/usr\n"},
		{name: "files", fields: fields{"standard_output": "x-%j-%x-%5t.%%", "standard_error": "OUT/y-%u", "standard_input": "/etc/passwd", "name": "n"}, output: "y-" + u.Name,
			script: `readlink /proc/$$/fd/0 /proc/$$/fd/1 | sed "s/-$SLURM_JOB_ID-/-JOB-/" >&2`, want: "/etc/passwd\nOUT/x-JOB-n-00000.%\n"},
		{name: "limits", fields: fields{"rlimits": fields{"nofile": 77, "cpu": 4000, "fsize": 4096000, "stack": 2048000, "core": 0}},
			script: `echo "$(ulimit -Sn) $(ulimit -St) $(ulimit -Sf) $(ulimit -Ss) $(ulimit -Sc)"; env | grep -c RLIMIT`, want: "77 4000 8000 2000 0\n0\n"},
		{name: "an address space", fields: fields{"rlimits": fields{"as": 204800000, "data": 102400000}}, script: `echo "$(ulimit -Sv) $(ulimit -Sd)"`, want: "200000 100000\n"},
		{name: "infinite limits", fields: fields{"rlimits": fields{"stack": infinite, "nofile": infinite, "core": infinite}},
			script: `for i in s n c; do test $(ulimit -S$i) = $(ulimit -H$i) && echo $i; done`, want: "s\nn\nc\n"},
		{name: "the greatest limit", fields: fields{"rlimits": fields{"nofile": uint64(1) << 50}}, script: `test $(ulimit -Sn) = $(ulimit -Hn) && echo yes`, want: "yes\n"},
		{name: "a limit in the environment", fields: environment("SLURM_RLIMIT_STACK=4096000"), script: `ulimit -Ss`, want: "4000\n"},
		{name: "a limit in both places", fields: fields{"environment": []string{path, "SLURM_RLIMIT_STACK=1024000"}, "rlimits": fields{"stack": 4096000}}, script: `ulimit -Ss`, want: "4000\n"},
		{name: "a limit that is not a number", fields: environment("SLURM_RLIMIT_STACK=big"), script: `echo ran`, want: "schedctld: SLURM_RLIMIT_STACK=\"big\" is not a number\nran\n"},
		{name: "infinite memory", fields: fields{"memory_per_node": infinite}, script: `echo ran`, want: "ran\n"},
		{name: "a umask", fields: environment("SLURM_UMASK=0027"), script: `umask`, want: "0027\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range tt.fields {
				if text, ok := value.(string); ok {
					tt.fields[name] = strings.ReplaceAll(text, "OUT", l.Work)
				}
			}
			id := l.Submit(tt.script, tt.fields, "X-SCHED-USER-NAME: "+u.Name)
			l.AwaitEnd(id)
			file := cmp.Or(tt.output, fmt.Sprintf("sched-%d.out", id))
			text, err := os.ReadFile(filepath.Join(l.Work, file))
			harness.Must(t, err)
			if got, want := string(text), strings.ReplaceAll(tt.want, "OUT", l.Work); got != want {
				t.Errorf("printed %q, want %q", got, want)
			}
		})
	}
}

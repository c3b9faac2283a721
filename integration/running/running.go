// Package running has submissions whose fields change what a job sees while it
// runs: its arguments, environment, limits, directory and files. The bundled
// daemons and slurmd must run them in the same way.
package running

// A Case is a submission, and what its script prints.
type Case struct {
	Name   string
	Fields map[string]any // of the job
	Script string
	Output string // name of the file in the job's directory; "": the daemon's usual one
	Want   string
}

type fields = map[string]any

const path = "PATH=/usr/bin:/bin"

func environment(variables ...string) fields {
	return fields{"environment": append([]string{path}, variables...)}
}

var infinite = fields{"set": true, "infinite": true}

// Cases returns the submissions of a user with the given name. The job's directory
// is dir.
func Cases(user, dir string) []Case {
	return []Case{
		{Name: "arguments", Fields: fields{"argv": []string{"job.sh", "", "x", "a b", ""}}, Script: `echo $#; printf '<%s>' "$@"`, Want: "4\n<><x><a b><>"},
		{Name: "one empty argument", Fields: fields{"argv": []string{"job.sh", ""}}, Script: `echo $#`, Want: "1\n"},
		{Name: "an empty name", Fields: fields{"argv": []string{""}}, Script: `echo $#`, Want: "0\n"},
		{Name: "variables", Fields: environment("", "A=", "B= c\td=e", "C=1"), Script: `printf '<%s><%s><%s>' "${A-unset}" "$B" "$C"`, Want: "<>< c\td=e><1>"},
		{Name: "variables of slurmd", Script: `test "$SLURMD_NODENAME" = "$SLURM_JOB_NODELIST" && echo "$TMPDIR"`, Want: "/tmp\n"},
		{Name: "a directory for temporary files", Fields: environment("TMPDIR=/var/tmp"), Script: `echo "$TMPDIR"`, Want: "/var/tmp\n"},
		{Name: "a distribution", Fields: fields{"distribution": "cyclic:block"}, Script: `echo "$SLURM_DISTRIBUTION"`, Want: "cyclic:block\n"},
		{Name: "a distribution with a size", Fields: fields{"distribution": "plane=2", "environment": []string{path, "SLURM_DISTRIBUTION=block"}},
			Script: `echo "$SLURM_DISTRIBUTION $SLURM_DIST_PLANESIZE"`, Want: "plane 2\n"},
		{Name: "a directory", Fields: fields{"current_working_directory": "/usr", "standard_output": dir + "/directory"}, Output: "directory", Script: `pwd`, Want: "/usr\n"},
		{Name: "files", Fields: fields{"standard_output": "x-%j-%x-%5t.%%", "standard_error": dir + "/y-%u", "standard_input": "/etc/passwd", "name": "n"}, Output: "y-" + user,
			Script: `readlink /proc/$$/fd/0 /proc/$$/fd/1 | sed "s/-$SLURM_JOB_ID-/-JOB-/" >&2`, Want: "/etc/passwd\n" + dir + "/x-JOB-n-00000.%\n"},
		{Name: "empty paths", Fields: fields{"standard_input": "", "standard_output": "", "standard_error": ""}, Script: `echo out; echo err >&2`, Want: "out\nerr\n"},
		{Name: "limits", Fields: fields{"rlimits": fields{"nofile": 77, "cpu": 4000, "fsize": 4096000, "stack": 2048000, "core": 0}},
			Script: `echo "$(ulimit -Sn) $(ulimit -St) $(ulimit -Sf) $(ulimit -Ss) $(ulimit -Sc)"; env | grep -c RLIMIT`, Want: "77 4000 8000 2000 0\n0\n"},
		{Name: "an address space", Fields: fields{"rlimits": fields{"as": 204800000, "data": 102400000}}, Script: `echo "$(ulimit -Sv) $(ulimit -Sd)"`, Want: "200000 100000\n"},
		{Name: "infinite limits", Fields: fields{"rlimits": fields{"stack": infinite, "nofile": infinite, "core": infinite}},
			Script: `for i in s n c; do test $(ulimit -S$i) = $(ulimit -H$i) && echo $i; done`, Want: "s\nn\nc\n"},
		{Name: "the greatest limit", Fields: fields{"rlimits": fields{"nofile": uint64(1) << 50}}, Script: `test $(ulimit -Sn) = $(ulimit -Hn) && echo yes`, Want: "yes\n"},
		{Name: "a limit in the environment", Fields: environment("SLURM_RLIMIT_STACK=4096000"), Script: `ulimit -Ss`, Want: "4000\n"},
		{Name: "a limit in both places", Fields: fields{"environment": []string{path, "SLURM_RLIMIT_STACK=1024000"}, "rlimits": fields{"stack": 4096000}}, Script: `ulimit -Ss`, Want: "4000\n"},
		{Name: "a limit that is not a number", Fields: environment("SLURM_RLIMIT_STACK=big"), Script: `echo ran`, Want: "schedctld: SLURM_RLIMIT_STACK=\"big\" is not a number\nran\n"},
		{Name: "infinite memory", Fields: fields{"memory_per_node": infinite}, Script: `echo ran`, Want: "ran\n"},
		{Name: "a umask", Fields: environment("SLURM_UMASK=0027"), Script: `umask`, Want: "0027\n"},
	}
}

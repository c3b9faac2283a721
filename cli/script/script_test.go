package script

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
)

func parse(t *testing.T, directives string, options ...string) (Job, error) {
	t.Helper()
	j, err := Parse(Source{Name: "dir/run.sh", Text: []byte("#!/bin/sh\n" + directives + "\necho\n"), Options: options, Directory: "/home/ann",
		Environment: []string{"HOME=/home/ann", "SCHED_JWT=secret", "SLURM_JWT=secret", "A=1"}})
	if err == nil {
		for _, name := range []string{"script", "environment"} {
			delete(j, name)
		}
	}
	return j, err
}

// TestOptions checks the fields that options set.
func TestOptions(t *testing.T) {
	set := func(n uint64) map[string]any { return map[string]any{"set": true, "number": n} }
	for _, tt := range []struct {
		text    string
		options []string
		want    Job // without name and directory
	}{
		{"# SBATCH -J no\n##SBATCH -J no\n #SBATCH -J no\n#sbatch -J no\n\n#SBATCH", nil, Job{}},
		{"#SBATCH-J a\n#SLURM -p b", nil, Job{"name": "a", "partition": "b"}},
		{"#SBATCH\t-Ja  --part=b # -n 2", nil, Job{"name": "a", "partition": "b"}},
		{`#SBATCH -J a#b -p c`, nil, Job{"name": "a"}},
		{`#SBATCH -J a\#b\ c'd "e'"f\"" \`, nil, Job{"name": `a#b cd "ef"`}},
		{`#SBATCH -J 'it\'s' -p "a b"`, nil, Job{"name": "it's", "partition": "a b"}},
		{"#SBATCH -J a -J b\n#SBATCH --job-name=c", nil, Job{"name": "c"}},
		{"#SBATCH --gres=none --gpus-per-node=1", nil, Job{"tres_per_node": "gres/gpu:1"}},
		{"#SBATCH --gres=shard:1 --gpus-per-node=a:1,2 --gres=shard:2", nil, Job{"tres_per_node": "gres/gpu:a:1,gres/gpu:2,gres/shard:2"}},
		{"#SBATCH -L a:1 --resources=b", nil, Job{"licenses": "a:1,b"}},
		{"#SBATCH --hint=nomultithread --deadline=2027-01-02", nil, Job{"threads_per_core": 1, "deadline": time.Date(2027, 1, 2, 0, 0, 0, 0, time.Local).Unix()}},
		{"#SBATCH --switches=2@1:30 --profile=task,energy --cpu-freq=low-high:OnDemand", nil,
			Job{"required_switches": set(2), "wait_for_switch": 90, "profile": []string{"TASK", "ENERGY"}, "cpu_frequency": "low-high:OnDemand"}},
		{"#SBATCH --kill-on-invalid-dep=yes --spread-job --use-min-nodes --gres-flags=enforce-binding --requeue=expedite --propagate=NONE", nil,
			Job{"requeue": true, "flags": []string{"GRES_BINDING_ENFORCED", "KILL_INVALID_DEPENDENCY", "EXPEDITED_REQUEUE", "SPREAD_JOB", "PREFER_MINIMUM_NODE_COUNT"}}},
		{"#SBATCH --kill-on-invalid-dep=yes --requeue=expedite --requeue --kill-on-invalid-dep=no", nil, Job{"requeue": true, "flags": []string{"NO_KILL_INVALID_DEPENDENCY"}}},
		{"#SBATCH -B 2:*:1 --mem-bind=verbose,map_mem:0,1 --mem-update=10@5 --oom-kill-step --wait-all-nodes=1", nil, Job{"sockets_per_node": 2, "threads_per_core": 1,
			"memory_binding_type": []string{"VERBOSE", "MAP"}, "memory_binding": "0,1", "memory_update_margin": 10, "memory_update_delay": 5, "oom_kill_step": 1, "wait_all_nodes": true}},
		{"#SBATCH -t 0 --delay-boot=5 --segment=4 --thread-spec=1", nil,
			Job{"time_limit": map[string]any{"set": false, "infinite": true}, "delay_boot": 300, "segment_size": set(4), "thread_specification": 1}},
		{"#SBATCH -N 1k -k --no-kill=off -o none --mail-type=END,none", nil,
			Job{"nodes": "1024", "minimum_nodes": 1024, "maximum_nodes": 1024, "kill_on_node_fail": true, "standard_output": "/dev/null"}},
		{"#SBATCH -N 1,4-8:2 --priority=TOP", nil, Job{"nodes": "1,4-8:2", "minimum_nodes": 1, "maximum_nodes": 8, "priority": set(4294967293)}},
		{"#SBATCH -J a -p b,c --account=d", nil, Job{"name": "a", "partition": "b,c", "account": "d"}},
		{"#SBATCH --job-name 'a b' # comment -n 5", nil, Job{"name": "a b"}},
		{`#SBATCH --comment="it's \"x\""`, nil, Job{"comment": `it's "x"`}},
		{"#SBATCH -n4 -c 2", nil, Job{"tasks": 4, "cpus_per_task": 2, "minimum_cpus": 8}},
		{"#SBATCH -O -n4 -N2", nil, Job{"overcommit": true, "tasks": 4, "nodes": "2", "minimum_nodes": 2, "maximum_nodes": 2, "minimum_cpus": 2}},
		{"#SBATCH -G 2,a100:3,a30 --ntasks-per-gpu=2", nil, Job{"tres_per_job": "gres/gpu:2,gres/gpu:a100:3,gres/gpu:a30", "ntasks_per_tres": 2, "tasks": 12, "minimum_cpus": 12}},
		{"#SBATCH --gres=gpu:2,shard:8 -N 3-4 --ntasks-per-gpu=1", nil,
			Job{"tres_per_node": "gres/gpu:2,gres/shard:8", "ntasks_per_tres": 1, "nodes": "3-4", "minimum_nodes": 3, "maximum_nodes": 4, "tasks": 6, "minimum_cpus": 6}},
		{"#SBATCH --tres-per-task=license/a:1,cpu=3 -n2", nil, Job{"tres_per_task": "license/a:1,cpu=3", "cpus_per_task": 3, "tasks": 2, "minimum_cpus": 6}},
		{"#SBATCH -Hn4", nil, Job{"hold": true, "tasks": 4, "minimum_cpus": 4}},
		{"#SBATCH -N 2-4", nil, Job{"nodes": "2-4", "minimum_nodes": 2, "maximum_nodes": 4}},
		{"#SBATCH -t 1-2:30:15 --time-min=30", nil, Job{"time_limit": set(26*60 + 31), "time_minimum": set(30)}},
		{"#SBATCH -t infinite", nil, Job{"time_limit": map[string]any{"set": false, "infinite": true}}},
		{"#SBATCH --mem=2G", nil, Job{"memory_per_node": set(2048)}},
		{"#SBATCH --mem=2G", []string{"--mem-per-cpu=1500K"}, Job{"memory_per_cpu": set(2)}},
		{"#SBATCH -t 5 -p x", []string{"--time=10", "-p", "y"}, Job{"time_limit": set(10), "partition": "y"}},
		{"#SBATCH --gres=gpu:a100:2,shard:1 -G 3", nil, Job{"tres_per_node": "gres/gpu:a100:2,gres/shard:1", "tres_per_job": "gres/gpu:3"}},
		{"#SBATCH -w n[1-3,7],m -x k1", nil, Job{"required_nodes": []string{"n[1-3,7]", "m"}, "excluded_nodes": []string{"k1"}}},
		{"#SBATCH --exclusive", nil, Job{"shared": []string{"none"}}},
		{"#SBATCH --exclusive=user --nice", nil, Job{"shared": []string{"user"}, "nice": 100}},
		{"#SBATCH --mail-type=end,TIME_LIMIT_80", nil, Job{"mail_type": []string{"END", "TIME=80%"}}},
		{"#SBATCH --signal=RB:12", nil, Job{"kill_warning_signal": "12", "kill_warning_delay": set(60), "kill_warning_flags": []string{"BATCH_JOB", "RESERVATION_JOB"}}},
		{"#SBATCH --signal=B:SIGUSR1@90", nil, Job{"kill_warning_signal": "USR1", "kill_warning_delay": set(90), "kill_warning_flags": []string{"BATCH_JOB"}}},
		{"#SBATCH --open-mode=append --no-requeue -k", nil, Job{"open_mode": []string{"APPEND"}, "requeue": false, "kill_on_node_fail": false}},
		{"echo\n#SBATCH --nonsense", nil, Job{}},
	} {
		want := Job{"name": "run.sh", "current_working_directory": "/home/ann"}
		for k, v := range tt.want {
			want[k] = v
		}
		got, err := parse(t, tt.text, tt.options...)
		if err != nil {
			t.Errorf("%s %v: %v", tt.text, tt.options, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %v: -want +got\n%s", tt.text, tt.options, diff)
		}
	}
	if got, err := parse(t, "#SBATCH -D work"); err != nil || got["current_working_directory"] != "/home/ann/work" {
		t.Errorf("%v, %v", got, err)
	}
}

// TestRefusedOptions checks that an unsupported or invalid option causes an
// error that says where the option is. It also checks that invalid scripts are
// refused.
func TestRefusedOptions(t *testing.T) {
	for _, tt := range []struct {
		text    string
		options []string
		want    string
		hint    string
	}{
		{"#SBATCH -J a\n#\n#SBATCH --bogus=1", nil, "run.sh: line 4: unsupported option --bogus", "schedctl(1)"},
		{"#SBATCH --wait", nil, "line 2: unsupported option --wait", "submit --wait"},
		{"#SBATCH -n 1\n#SBATCH hetjob", nil, "line 3: unsupported: hetjob", "heterogeneous"},
		{"#SBATCHX", nil, `line 2: unexpected argument "X"`, ""},
		{"#SBATCH : -n 1", nil, "line 2: unexpected :", ""},
		{"#SBATCH --job-name=precious --partition=fake --walltime=5", nil, "line 2: unsupported option --walltime", ""},
		{"#SBATCH --cpus=2", nil, "line 2: ambiguous option --cpus", "--cpus-per-gpu, --cpus-per-task"},
		{"#SBATCH --hint=compute_bound\n#SBATCH --threads-per-core=2", nil, "line 3: --threads-per-core: --hint and --threads-per-core exclude each other", ""},
		{"#SBATCH --hint=fast", nil, "line 2: --hint=fast: not one of compute_bound, memory_bound, multithread, nomultithread", ""},
		{"#SBATCH --test-only", nil, "line 2: unsupported option --test-only", "schedctl submit --dry-run"},
		{"#SBATCH -v", nil, "line 2: unsupported option -v", "concerns the command sbatch"},
		{"#SBATCH --export-file=x", nil, "line 2: unsupported option --export-file", "--export"},
		{"#SBATCH --propagate", nil, "line 2: --propagate=: not one of none", "ulimit"},
		{"#SBATCH -Z", nil, "line 2: unsupported option -Z", ""},
		{"#SBATCH word", nil, `line 2: unexpected argument "word"`, "before --"},
		{"#SBATCH -n", nil, "line 2: -n needs a value", ""},
		{"#SBATCH --mem=", nil, "line 2: --mem needs a value", ""},
		{"#SBATCH --hold=1", nil, "line 2: --hold has no value", ""},
		{"#SBATCH -n 0", nil, "line 2: -n=0: not a number from 1 on", ""},
		{"#SBATCH -n 99999999999", nil, "not a number", ""},
		{"#SBATCH -t soon", nil, "line 2: -t=soon: not a time", "DAYS-HOURS"},
		{"#SBATCH -t 1:2:3:4", nil, "not a time", ""},
		{"#SBATCH --mem=5X", nil, "not an amount", ""},
		{"#SBATCH -N 4-2", nil, "MIN-MAX", ""},
		{"#SBATCH -J 'a", nil, "line 2: a quote is not closed", ""},
		{"#SBATCH --signal=X:USR1", nil, "SIGNAL[@SECONDS]", ""},
		{"#SBATCH --signal=NONE", nil, "not a signal", ""},
		{"#SBATCH -w n[1", nil, "bracket", ""},
		{"#SBATCH --export=SCHED_JWT=x", nil, "is a credential", ""},
		{"", []string{"--bogus"}, "options after --: unsupported option --bogus", ""},
		{"#SBATCH \x1b[2J", nil, `unexpected argument "\\x1b[2J"`, ""},
	} {
		_, err := parse(t, tt.text, tt.options...)
		if err == nil || errs.KindOf(err) != errs.Malformed || !strings.Contains(err.Error(), tt.want) || !strings.Contains(errs.HintOf(err), tt.hint) {
			t.Errorf("%q %v: %v, hint %q; want %q", tt.text, tt.options, err, errs.HintOf(err), tt.want)
		}
	}
	for text, want := range map[string]string{"": "empty", " \n": "empty", "echo\n": "#!", "#!/bin/sh\x00": "NUL", "#!/bin/sh\r\n": "CR LF", "\ufeff#!/bin/sh\n": "byte order mark",
		"#!" + strings.Repeat("x", MaxSize): "longer"} {
		if _, err := Parse(Source{Name: "x", Text: []byte(text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
}

// TestEnvironment checks that --export selects the right variables, and that no
// job receives a token.
func TestEnvironment(t *testing.T) {
	environ := []string{"PATH=/x", "A=1", "B=2", "EMPTY=", "SCHED_JWT=secret", "SLURM_JWT=secret", "=odd"}
	for _, tt := range []struct {
		export string // "-" if it is not given
		want   []string
	}{
		{"-", []string{"A=1", "B=2", "EMPTY=", "PATH=/x"}},
		{"ALL", []string{"A=1", "B=2", "EMPTY=", "PATH=/x"}},
		{"all,C=3,A=9", []string{"A=9", "B=2", "C=3", "EMPTY=", "PATH=/x"}},
		{"NONE", []string{path}},
		{"A,EMPTY,MISSING,C=3", []string{"A=1", "C=3", "EMPTY=", path}},
		{"SLURM_JWT,A", []string{"A=1", path}},
		{"'C=3,4',A", []string{"A=1", "C=3,4", path}},
		{`"C=it's, so",D="5,6",E='x'`, []string{`C=it's, so`, `D="5,6"`, "E='x'", path}},
		{"C='open,D=1", []string{"C='open,D=1", path}},
	} {
		export := &tt.export
		if tt.export == "-" {
			export = nil
		}
		got, err := environment(export, environ)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", tt.export, diff)
		}
	}
	withSlurm := append(environ, "SLURM_CONF=/c", "SPANK_X=1")
	for export, want := range map[string][]string{
		"NONE":           {path, "SLURM_CONF=/c", "SPANK_X=1"},
		"A":              {"A=1", path, "SLURM_CONF=/c"},
		"SLURM_CONF=/d":  {path, "SLURM_CONF=/c"},
		"ALL,SLURM_X=/d": {"A=1", "B=2", "EMPTY=", "PATH=/x", "SLURM_CONF=/c", "SLURM_X=/d", "SPANK_X=1"},
	} {
		got, err := environment(&export, withSlurm)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v, -want +got\n%s", export, err, diff)
		}
	}
	for _, wrong := range []string{"", "A,,B", "NONE,A"} {
		if _, err := environment(&wrong, environ); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

func TestWhen(t *testing.T) {
	now := time.Date(2026, 11, 23, 15, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"now": "2026-11-23T15:30:00", "now+90": "2026-11-23T15:31:30", "now+2hours": "2026-11-23T17:30:00", "now+1week": "2026-11-30T15:30:00",
		"16:00": "2026-11-23T16:00:00", "15:00:30": "2026-11-24T15:00:30", "2027-01-02": "2027-01-02T00:00:00", "2027-01-02t03:04": "2027-01-02T03:04:00",
		"tomorrow": "2026-11-24T00:00:00", "today": "2026-11-23T00:00:00", "noon": "2026-11-24T12:00:00", "fika": "2026-11-24T15:00:00", "teatime": "2026-11-23T16:00:00",
		"4:30pm": "2026-11-23T16:30:00", "12:00am": "2026-11-24T00:00:00", "11/30": "2026-11-30T00:00:00", "11/20": "2027-11-20T00:00:00", "11/20/26": "2026-11-20T00:00:00",
		"11/30T5:00": "2026-11-30T05:00:00", "tomorrowTteatime": "2026-11-24T16:00:00", "2027-1-2-03:04": "2027-01-02T03:04:00",
	} {
		if got, err := parseMoment(text, now); err != nil || got.Format("2006-01-02T15:04:05") != want {
			t.Errorf("%s: %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "now-1", "nowish", "now+", "now+1fortnight", "25:00", "now2", "now+5s+", "now+3s", "13:00pm", "2/30", "2027-01-02T", "2027-01-021", "tea", "yesterday"} {
		if got, err := parseMoment(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// TestManual checks that schedctl(1) lists all supported options and no others.
func TestManual(t *testing.T) {
	page, err := os.ReadFile("../../docs/man/schedctl.1")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "\n.\\\" options of sbatch\n")
	list, _, _ = strings.Cut(list, "\n.\\\" end\n")
	var got []string
	for _, m := range regexp.MustCompile(`Fl (?:([A-Za-z]) , Fl )?-([a-z-]+)`).FindAllStringSubmatch(list, -1) {
		name := "--" + m[2]
		if m[1] != "" {
			name = "-" + m[1] + ", " + name
		}
		got = append(got, name)
	}
	if diff := cmp.Diff(Options(), got); diff != "" {
		t.Errorf("(-that submit reads +that the page has):\n%s", diff)
	}
}

// FuzzParse checks that no script makes Parse panic, and that every accepted
// job has the fields that the API requires.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"#SBATCH -n4 -N1-2 'x", "#SBATCH --begin=now+1day --export=A=1", "#SBATCH -t 1-99999:1", "#SBATCH --signal=@"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		j, err := Parse(Source{Name: "x", Text: []byte("#!/bin/sh\n" + text), Directory: "/"})
		if err != nil {
			if errs.KindOf(err) != errs.Malformed {
				t.Fatal(err)
			}
			return
		}
		if env, _ := j["environment"].([]string); len(env) == 0 {
			t.Fatal("no environment")
		}
		if dir, _ := j["current_working_directory"].(string); !strings.HasPrefix(dir, "/") {
			t.Fatalf("directory %q", dir)
		}
	})
}

// TestSimilarOption checks which option is suggested for a misspelled one.
func TestSimilarOption(t *testing.T) {
	for name, want := range map[string]string{
		"time-limit": "time", "time-max": "time", "time-mim": "time-min", "tiem": "time", "partitions": "partition", "cpu-per-tasks": "cpus-per-task",
		"mem-per-cpus": "mem-per-cpu", "gpus-per-job": "gpus", "output-file": "output", "jobname": "job-name", "job-nmae": "job-name", "accont": "account",
		"bogus": "", "": "", "-": "", "time-": "time",
	} {
		if got := similarOption(name); got != want {
			t.Errorf("--%s: %q, want %q", name, got, want)
		}
	}
}

// TestStandardInput checks that a script from standard input has the name that sbatch
// gives it.
func TestStandardInput(t *testing.T) {
	j, err := Parse(Source{Name: "-", Text: []byte("#!/bin/sh\n"), Directory: "/"})
	if err != nil || j["name"] != "sbatch" {
		t.Errorf("%v, %v", j["name"], err)
	}
}

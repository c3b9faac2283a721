package status

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/cli/script"
	"schedrestd/integration/harness"
)

// TestDirectives checks that the page understands #SBATCH lines as schedctl
// does: it must make the same request, and refuse the same lines.
func TestDirectives(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	p := harness.OpenStatus(t, l.URL)
	p.SignIn(l.OwnToken)
	p.Show("submit")
	if class, text := p.Eval(`document.querySelector(".formfoot [role=status]").className`), p.Eval(`document.querySelector(".formfoot [role=status]").textContent`); class != "muted" {
		t.Errorf("before anything is typed, the form shows an error: %v %v", class, text)
	}
	p.Fill("Working directory", "/home/ann")
	for i, lines := range []string{
		"-J a -p b,c --account=d", "--job-name 'a b' # comment -n 5", `--comment="it's \"x\""`, "-n4 -c 2", "-Hn4", "-N 2-4", "-N 3", "-t 1-2:30:15 --time-min=30", "-t infinite", "-t -1", "-t 90", "-t 1:30", "-t 2:00:01", "-t 1-0",
		"--mem=2G", "--mem=2G\n--mem-per-cpu=1500K", "--mem 1T --mem-per-gpu 4G", "--gres=gpu:a100:2,shard:1 -G 3", "--gpus-per-node=h100:4,2 --gpus-per-task=1 --gpus-per-socket=1 --cpus-per-gpu=8", "-w n[1-3,7],m -x k1",
		"--exclusive", "--exclusive=user --nice", "--nice=-5", "--mail-type=end,TIME_LIMIT_80 --mail-user=ann@example.org", "--mail-type=ALL,TIME_LIMIT", "--mail-type=NONE", "--signal=B:SIGUSR1@90", "--signal USR2", "--open-mode=append --no-requeue -k",
		"-a 1-4%2 -d afterok:17 -C 'rome|milan' --prefer ib", "-o out-%j -e err -i /dev/null", "-D work/x -q high --wckey w --reservation r -L lic:2", "-S 2 --ntasks-per-node=4 --ntasks-per-core=1 --ntasks-per-socket=2 --mincpus 3", "--tmp=10G --priority=7 --reboot --requeue -s -O --contiguous",
		"-m block:cyclic --network x --container /c --sockets-per-node=2 --threads-per-core=1", "-b 2027-01-02T03:04:05", "--begin=2027-02-03", "--export=NONE", "--export=A=1,B=x", "--export=ALL,C=3", "-p=x",
		"--hint=nomultithread --deadline=2027-01-02 --switches=2@5 --profile=all --cpu-freq=low", "--kill-on-invalid-dep=yes --spread-job --mem-bind=local", "--get-user-env",
		// refused
		"--job-name=precious --partition=fake --walltime=5", "--parsable", "--propagate", "--part=a --cpus=2", "--hint=compute_bound -B 2:1",
		"-J a\n--bogus=1", "--wait", "-n 1\nhetjob", "-Z", "word", "-n", "--mem=", "--hold=1", "-n 0", "-n 99999999999", "-t soon", "-t 1:2:3:4", "--mem=5X", "-N 4-2", "-N 0", "-J 'a", "--signal=X:USR1", "--signal=@5", "-w n[1", "--export=SCHED_JWT=x",
		"--export=", "--export=,A=1", "--exclusive=nobody", "--open-mode=x", "--mail-type=NEVER", "-b never", "--begin=2027-02-30", "--begin=25:00", "--nice=x", "--tmp=4096T", "--priority=-1", "-",
	} {
		text := "#!/bin/sh\n#SBATCH " + strings.ReplaceAll(lines, "\n", "\n#SBATCH ") + "\n\necho\n#SBATCH --ignored\n" + fmt.Sprintf("# case %d.\n", i)
		p.Fill("Script", text)
		p.Await("the script is read", fmt.Sprintf(`document.querySelector("pre.source").textContent.includes("# case %d.")`, i))
		refused, _ := p.Eval(`[...document.querySelectorAll(".directives .error .state")].map((e) => e.textContent).join(", ")`).(string)
		job, err := script.Parse(script.Source{Name: "job", Text: []byte(text), Directory: "/home/ann"})
		if got := p.Eval(`document.querySelector("form.submit button[type=submit]").disabled`); got != (err != nil) {
			t.Errorf("%q: Submit is disabled: %v; schedctl: %v", lines, got, err)
		}
		if err != nil {
			line := regexp.MustCompile(`line \d+`).FindString(err.Error())
			if refused != line {
				t.Errorf("%q: the page refuses %q, schedctl: %v", lines, refused, err)
			}
			continue
		}
		if refused != "" {
			t.Errorf("%q: the page refuses %s", lines, refused)
			continue
		}
		script.AddVariables(job, "SLURM_SUBMIT_DIR=/home/ann")
		command, _ := p.Eval(`document.querySelector("pre.source").textContent`).(string)
		_, body, _ := strings.Cut(command, "-d '")
		body, _, _ = strings.Cut(body, "' \\\n")
		var got, want struct{ Job map[string]any }
		harness.Must(t, json.Unmarshal([]byte(strings.ReplaceAll(body, `'\''`, "'")), &got))
		wanted, err := json.Marshal(map[string]any{"job": job})
		harness.Must(t, err)
		harness.Must(t, json.Unmarshal(wanted, &want))
		if diff := cmp.Diff(want.Job, got.Job, cmp.Comparer(func(a, b string) bool {
			return a == b || strings.HasPrefix(a, "PATH=") && strings.HasPrefix(b, "PATH=")
		})); diff != "" {
			t.Errorf("%q: (-schedctl +page)\n%s", lines, diff)
		}
	}
	// A field of the form has precedence over the script.
	p.Fill("Script", "#!/bin/sh\n#SBATCH -c 4 --export=NONE,SLURM_CPUS_PER_TASK=9\n")
	p.Fill("CPUs per task", "3")
	p.AwaitText(`"SLURM_CPUS_PER_TASK=3"`)
	p.Check(l.OwnToken)
}

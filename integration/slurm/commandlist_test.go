package slurm

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// verdict states how much of a command works.
type verdict string

const (
	works   verdict = "works"
	partly  verdict = "partly"  // the output is correct but lacks parts of Slurm's
	refused verdict = "refused" // the refusal is correct
	cannot  verdict = "can't"
)

// commandLine is a command that TestCommands runs, as the user whom its token
// names.
type commandLine struct {
	whose, line string
	verdict     verdict
	why         string // why something is missing
	wait        string // command that must print something before this command is run
}

func (c commandLine) title() string {
	if c.whose == "alice" {
		return c.line
	}
	return c.line + " (" + map[string]string{"root": "root", "forged": "a forged token", "expired": "an expired token", "none": "no token"}[c.whose] + ")"
}

const jobIs = "scontrol show job %d | grep -o JobState=%s"

var commandLines = []commandLine{
	{whose: "alice", line: "scontrol ping", verdict: works},
	{whose: "alice", line: "sinfo", verdict: works},
	{whose: "alice", line: "sinfo -N -l", verdict: works},
	{whose: "alice", line: "sinfo -R", verdict: works},
	{whose: "alice", line: "sinfo -o '%P %a %l %D %t %N %C'", verdict: works},
	{whose: "alice", line: `sinfo --json | grep -c '"head"'`, verdict: works},
	{whose: "alice", line: "squeue", verdict: works},

	{whose: "alice", line: "sbatch --parsable -o /dev/null --wrap 'sleep 600'", verdict: works},
	{whose: "alice", line: `printf '#!/bin/sh\nexit 3\n' | sbatch -o /dev/null -J three`, verdict: works},
	{whose: "alice", line: "sbatch -H -o /dev/null --wrap hostname", verdict: works},
	{whose: "alice", line: "sbatch --test-only --wrap hostname", verdict: cannot, why: "schedctld does not predict start times"},
	{whose: "alice", line: "sbatch --array=1-3 --wrap hostname", verdict: cannot, why: "schedctld has no job arrays"},
	{whose: "alice", line: "sbatch -d afterok:1 --wrap hostname", verdict: cannot, why: "schedctld has no job dependencies"},
	{whose: "alice", line: "sbatch --wrap hostname : --wrap hostname", verdict: cannot, why: "schedctld has no heterogeneous jobs"},
	{whose: "alice", line: "sbatch -p nowhere --wrap hostname", verdict: refused},
	{whose: "alice", line: "sbatch -n 999 --wrap hostname", verdict: refused},

	{whose: "alice", line: "squeue -o '%i %j %T %u %P'", verdict: works,
		wait: fmt.Sprintf(jobIs, 1, "RUNNING") + " >/dev/null && " + fmt.Sprintf(jobIs, 2, "FAILED")},
	{whose: "alice", line: "squeue -t all", verdict: works},
	{whose: "alice", line: "squeue -l", verdict: works},
	{whose: "alice", line: "squeue -j 1 -o '%i %T'", verdict: works},
	{whose: "alice", line: "squeue --me -o '%i %T'", verdict: works},
	{whose: "alice", line: "squeue -u bob -o '%i %T'", verdict: works},
	{whose: "alice", line: "squeue --start -o '%i %S'", verdict: partly, why: "the start time is missing"},
	{whose: "alice", line: `squeue --json | grep -c '"job_id"'`, verdict: works},
	{whose: "alice", line: "squeue -s", verdict: cannot, why: "schedctld does not list steps"},

	{whose: "alice", line: "scontrol show node", verdict: works},
	{whose: "alice", line: "scontrol show node nobody", verdict: refused},
	{whose: "alice", line: "scontrol show partition", verdict: works},
	{whose: "alice", line: "scontrol show job 1", verdict: works},
	{whose: "alice", line: "scontrol show job 99", verdict: refused},
	{whose: "alice", line: "scontrol show reservation", verdict: works},
	{whose: "alice", line: "scontrol show licenses", verdict: works},
	{whose: "alice", line: "scontrol wait_job 1", verdict: works},
	{whose: "alice", line: "scontrol show config", verdict: cannot},
	{whose: "alice", line: "scontrol show step", verdict: cannot},
	{whose: "alice", line: "scontrol show assoc_mgr", verdict: cannot},
	{whose: "alice", line: "scontrol show burstbuffer", verdict: cannot},
	{whose: "alice", line: "scontrol show topology", verdict: cannot},
	{whose: "alice", line: "scontrol write batch_script 1 -", verdict: cannot},
	{whose: "alice", line: "scontrol hold 3", verdict: works},
	{whose: "alice", line: "scontrol update JobId=3 TimeLimit=5", verdict: works},
	{whose: "alice", line: "scontrol suspend 1", verdict: cannot},
	{whose: "alice", line: "scontrol resume 1", verdict: cannot},
	{whose: "alice", line: "scontrol requeue 3", verdict: refused, why: "job 3 has not started yet"},
	{whose: "alice", line: "scontrol top 1", verdict: cannot},
	{whose: "alice", line: "scontrol notify 1 hello", verdict: cannot},
	{whose: "root", line: "scontrol update NodeName=head State=DRAIN Reason=x", verdict: cannot},
	{whose: "root", line: "scontrol update PartitionName=all State=DOWN", verdict: cannot},
	{whose: "root", line: "scontrol create reservation StartTime=now Duration=10 Users=alice Nodes=head", verdict: cannot},
	{whose: "root", line: "scontrol setdebug info", verdict: cannot},
	{whose: "root", line: "scontrol reconfigure", verdict: cannot, why: "schedctld reads its configuration only when it starts"},
	{whose: "root", line: "scontrol shutdown", verdict: cannot, why: "only the service manager stops schedctld"},
	{whose: "alice", line: "scontrol token", verdict: works},
	{whose: "alice", line: "scontrol token username=root", verdict: refused, why: "only root and SchedUser can get a token for another user"},

	{whose: "alice", line: "srun hostname", verdict: cannot, why: "schedctld has no interactive allocations"},
	{whose: "alice", line: "salloc true", verdict: cannot, why: "schedctld has no interactive allocations"},
	{whose: "alice", line: "sattach 1.0", verdict: cannot},
	{whose: "alice", line: "sstat -j 1", verdict: cannot},
	{whose: "alice", line: "strigger --get", verdict: cannot},
	{whose: "alice", line: "sprio", verdict: cannot, why: "priorities have no factors; by default jobs start in the order of submission"},

	{whose: "alice", line: "scancel 99", verdict: partly, why: "no message that there is no job 99"},
	{whose: "alice", line: "scancel -s USR1 -b 3", verdict: partly, why: "only running jobs can get a signal"},
	{whose: "alice", line: "scancel 3", verdict: works},
	{whose: "alice", line: "scancel 1", verdict: works},
	{whose: "alice", line: "scancel --me", verdict: works, wait: fmt.Sprintf(jobIs, 1, "CANCELLED")},
	{whose: "alice", line: "squeue -t all -o '%i %T %r'", verdict: works},

	{whose: "alice", line: "sdiag | sed -n '1,22p'", verdict: partly, why: "the numbers of jobs are correct, and those of the scheduler are 0"},
	{whose: "root", line: "sdiag -r", verdict: cannot, why: "schedctld can't reset its statistics"},
	{whose: "alice", line: "sshare", verdict: works},

	{whose: "alice", line: "sacct", verdict: works, wait: "sacct -n -X -j 1 -o state | grep CANCELLED"},
	{whose: "alice", line: "sacct -X -a -o jobid,jobname,state,user,exitcode", verdict: works},
	{whose: "alice", line: "sacct -j 2 -o jobid,state,exitcode", verdict: works},
	{whose: "alice", line: "sacctmgr ping", verdict: partly, why: "Slurm 22.05 does not have this command"},
	{whose: "alice", line: "sacctmgr -P show tres", verdict: works},
	{whose: "alice", line: "sacctmgr -P show cluster format=cluster,controlhost", verdict: works},
	{whose: "alice", line: "sacctmgr -P show user", verdict: works},
	{whose: "alice", line: "sacctmgr -P show account", verdict: works},
	{whose: "alice", line: "sacctmgr -P show assoc format=cluster,account,user", verdict: works},
	{whose: "alice", line: "sacctmgr -P show qos format=name", verdict: works},
	{whose: "alice", line: "sacctmgr -P show wckey", verdict: works},
	{whose: "root", line: "sacctmgr show stats | grep -oE 'DBD_GET_JOBS_COND|MsgType=30001|alice' | sort", verdict: works},
	{whose: "alice", line: "sacctmgr show reservation", verdict: cannot},
	{whose: "alice", line: "sacctmgr show event", verdict: cannot},
	{whose: "alice", line: "sacctmgr show federation", verdict: cannot},
	{whose: "alice", line: "sacctmgr show transaction", verdict: cannot},
	{whose: "alice", line: "sacctmgr show runawayjobs", verdict: cannot},
	{whose: "root", line: "sacctmgr -i add account x", verdict: works},
	{whose: "root", line: "sacctmgr -i add qos x", verdict: works},
	{whose: "root", line: "sacctmgr -i delete account x", verdict: works},

	{whose: "forged", line: "squeue", verdict: refused},
	{whose: "expired", line: "squeue", verdict: refused, wait: "squeue >/dev/null 2>&1 || echo it has ended"},
	{whose: "none", line: "squeue", verdict: refused, why: "without a token the command uses MUNGE, which the bundled daemons do not accept"},
	{whose: "forged", line: "sbatch --wrap hostname", verdict: refused},
	{whose: "none", line: "sbatch --wrap hostname", verdict: refused},
	{whose: "forged", line: "sacct", verdict: refused},
	{whose: "none", line: "sacct", verdict: refused},
}

// saying is the output and the exit status of a command.
type saying struct {
	text string
	code int
}

// indented returns text with indentation, as in a golden file, where unindented
// lines are titles.
func indented(text string) string {
	if text == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}

var sayings = regexp.MustCompile(`(?m)^(\S.*)\nexit (\d+)\n((?:  .*\n|\n)*)`)

// recordedIn reads a golden file.
func recordedIn(t *testing.T, text string) map[string]saying {
	t.Helper()
	found := map[string]saying{}
	for _, m := range sayings.FindAllStringSubmatch(text, -1) {
		code, err := strconv.Atoi(m[2])
		must(t, err)
		lines := strings.Split(strings.Trim(m[3], "\n"), "\n")
		for i := range lines {
			lines[i] = strings.TrimPrefix(lines[i], "  ")
		}
		found[m[1]] = saying{strings.TrimRight(strings.Join(lines, "\n"), " \n"), code}
	}
	return found
}

// The file commandsPage lists the commands and states which of them can be
// used. The file commandsOutput has their output.
const (
	commandsPage   = "../../docs/COMMANDS.md"
	commandsOutput = "testdata/commands/OUTPUT.md"
)

// TestCommandsPage compares docs/COMMANDS.md and the file of outputs with the
// recorded outputs. It needs no Slurm.
func TestCommandsPage(t *testing.T) {
	records := map[string]map[string]saying{}
	for _, release := range []string{"22.05", "24.11", "26.05"} {
		text, err := os.ReadFile(oursGolden + release + ".txt")
		if os.IsNotExist(err) {
			continue
		}
		must(t, err)
		records[release] = recordedIn(t, string(text))
	}
	page, output := commandsText(records)
	for file, want := range map[string]string{commandsPage: page, commandsOutput: output} {
		if updating() {
			must(t, os.WriteFile(file, []byte(want), 0o644))
			continue
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != want {
			t.Errorf("%s does not match the recorded outputs (%v): make golden", file, err)
		}
	}
}

const commandsHead = `# Slurm's commands with schedctld and scheddbd

Slurm's own commands can be used with the bundled daemons. They need a slurm.conf that has the ports of the daemons and
` + "`AuthAltTypes=auth/jwt`" + `. Set ` + "`SLURM_JWT`" + ` to the token that ` + "`schedctl token`" + ` prints. The table lists commands of Slurm
%s in the order in which a test runs them. The user is alice unless the row names another. In the sources,
` + "`integration/slurm/" + commandsOutput + "`" + ` has the expected output.

- *works*: the command does the same as with Slurm's daemons
- *partly*: what the command prints is correct, but some information is missing
- *refused*: the command fails, as it does with Slurm's daemons
- *can't*: the bundled daemons do not support the command

| command | result | reason, and last line that the command prints |
| --- | --- | --- |
`

const commandsOutputHead = `# Output of Slurm's commands with schedctld and scheddbd

Generated from the recorded outputs. Times, figures of the machine and tokens are left out. ` + "`exit`" + ` is shown when it is not 0.
`

// commandsText returns the page of the commands and the file of their outputs.
func commandsText(records map[string]map[string]saying) (page, output string) {
	var releases []string
	for _, r := range []string{"22.05", "24.11", "26.05"} {
		if records[r] != nil {
			releases = append(releases, r)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, commandsHead, strings.Join(releases, ", "))
	for _, c := range commandLines {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ReplaceAll(c.title(), "|", `\|`), c.verdict, remark(c, releases, records))
	}
	page = b.String()
	b.Reset()
	b.WriteString(commandsOutputHead)
	for _, c := range commandLines {
		fmt.Fprintf(&b, "\n## %s\n", strings.ReplaceAll(c.title(), "`", ""))
		for _, group := range alike(c.title(), releases, records) {
			s := records[group[0]][c.title()]
			text := s.text
			if s.code != 0 {
				text = strings.TrimLeft(text+"\n", "\n") + "exit " + strconv.Itoa(s.code)
			}
			if len(group) < len(releases) {
				fmt.Fprintf(&b, "\n%s:\n", strings.Join(group, ", "))
			}
			if text == "" {
				b.WriteString("\nNothing.\n")
				continue
			}
			fmt.Fprintf(&b, "\n```\n%s\n```\n", text)
		}
	}
	return page, b.String()
}

// remark returns the last column of a row: the reason for the verdict. If the
// command can't work or is refused, remark adds the last line that the command
// printed.
func remark(c commandLine, releases []string, records map[string]map[string]saying) string {
	parts := []string{}
	if c.why != "" {
		parts = append(parts, c.why)
	}
	if len(releases) > 0 && (c.verdict == cannot || c.verdict == refused) {
		lines := strings.Split(strings.TrimSpace(records[releases[len(releases)-1]][c.title()].text), "\n")
		if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
			parts = append(parts, "`"+strings.ReplaceAll(last, "|", `\|`)+"`")
		}
	}
	return strings.Join(parts, ": ")
}

// alike groups the releases whose commands printed the same text.
func alike(title string, releases []string, records map[string]map[string]saying) (groups [][]string) {
next:
	for _, r := range releases {
		for i, g := range groups {
			if records[g[0]][title] == records[r][title] {
				groups[i] = append(g, r)
				continue next
			}
		}
		groups = append(groups, []string{r})
	}
	return groups
}

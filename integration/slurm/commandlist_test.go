package slurm

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// verdict says to what extent a command works.
type verdict string

const (
	works   verdict = "works"
	partly  verdict = "partly"  // the output is correct, but parts of Slurm's output are missing
	refused verdict = "refused" // the refusal is correct
	cannot  verdict = "can't"
)

// commandLine is a command that TestCommands runs. The user field selects the
// token for the command.
type commandLine struct {
	user, line string
	verdict    verdict
	reason     string // why something is missing
	wait       string // command that must print something before this command is run
}

func (c commandLine) title() string {
	if c.user == "alice" {
		return c.line
	}
	return c.line + " (" + map[string]string{"root": "root", "forged": "a forged token", "expired": "an expired token", "none": "no token"}[c.user] + ")"
}

const jobStateCommand = "scontrol show job %d | grep -o JobState=%s"

var commandLines = []commandLine{
	{user: "alice", line: "scontrol ping", verdict: works},
	{user: "alice", line: "sinfo", verdict: works},
	{user: "alice", line: "sinfo -N -l", verdict: works},
	{user: "alice", line: "sinfo -R", verdict: works},
	{user: "alice", line: "sinfo -o '%P %a %l %D %t %N %C'", verdict: works},
	{user: "alice", line: `sinfo --json | grep -c '"head"'`, verdict: works},
	{user: "alice", line: "squeue", verdict: works},

	{user: "alice", line: "sbatch --parsable -o /dev/null --wrap 'sleep 600'", verdict: works},
	{user: "alice", line: `printf '#!/bin/sh\nexit 3\n' | sbatch -o /dev/null -J three`, verdict: works},
	{user: "alice", line: "sbatch -H -o /dev/null --wrap hostname", verdict: works},
	{user: "alice", line: "sbatch --test-only --wrap hostname", verdict: works},
	{user: "alice", line: "sbatch --array=1-3 --wrap hostname", verdict: cannot, reason: "schedctld has no job arrays"},
	{user: "alice", line: "sbatch -d afterok:1 --wrap hostname", verdict: cannot, reason: "schedctld has no job dependencies"},
	{user: "alice", line: "sbatch --wrap hostname : --wrap hostname", verdict: cannot, reason: "schedctld has no heterogeneous jobs"},
	{user: "alice", line: "sbatch -p nowhere --wrap hostname", verdict: refused},
	{user: "alice", line: "sbatch -n 999 --wrap hostname", verdict: refused},

	{user: "alice", line: "squeue -o '%i %j %T %u %P'", verdict: works,
		wait: fmt.Sprintf(jobStateCommand, 1, "RUNNING") + " >/dev/null && " + fmt.Sprintf(jobStateCommand, 2, "FAILED")},
	{user: "alice", line: "squeue -t all", verdict: works},
	{user: "alice", line: "squeue -l", verdict: works},
	{user: "alice", line: "squeue -j 1 -o '%i %T'", verdict: works},
	{user: "alice", line: "squeue --me -o '%i %T'", verdict: works},
	{user: "alice", line: "squeue -u bob -o '%i %T'", verdict: works},
	{user: "alice", line: "squeue --start -o '%i %S'", verdict: partly, reason: "the start time is missing"},
	{user: "alice", line: `squeue --json | grep -c '"job_id"'`, verdict: works},
	{user: "alice", line: "squeue -s", verdict: cannot, reason: "schedctld does not list steps"},

	{user: "alice", line: "scontrol show node", verdict: works},
	{user: "alice", line: "scontrol show node nobody", verdict: refused},
	{user: "alice", line: "scontrol show partition", verdict: works},
	{user: "alice", line: "scontrol show job 1", verdict: works},
	{user: "alice", line: "scontrol show job 99", verdict: refused},
	{user: "alice", line: "scontrol show reservation", verdict: works},
	{user: "alice", line: "scontrol show licenses", verdict: works},
	{user: "alice", line: "scontrol wait_job 1", verdict: works},
	{user: "alice", line: "scontrol show config", verdict: cannot},
	{user: "alice", line: "scontrol show step", verdict: cannot},
	{user: "alice", line: "scontrol show assoc_mgr", verdict: cannot},
	{user: "alice", line: "scontrol show burstbuffer", verdict: cannot},
	{user: "alice", line: "scontrol show topology", verdict: cannot},
	{user: "alice", line: "scontrol write batch_script 1 -", verdict: works},
	{user: "alice", line: "scontrol hold 3", verdict: works},
	{user: "alice", line: "scontrol update JobId=3 TimeLimit=5", verdict: works},
	{user: "alice", line: "scontrol suspend 1", verdict: cannot},
	{user: "alice", line: "scontrol resume 1", verdict: cannot},
	{user: "alice", line: "scontrol requeue 3", verdict: refused, reason: "job 3 has not started yet"},
	{user: "alice", line: "scontrol top 1", verdict: cannot},
	{user: "alice", line: "scontrol notify 1 hello", verdict: cannot},
	{user: "root", line: "scontrol update NodeName=head State=DRAIN Reason=x", verdict: cannot},
	{user: "root", line: "scontrol update PartitionName=all State=DOWN", verdict: cannot},
	{user: "root", line: "scontrol create reservation StartTime=now Duration=10 Users=alice Nodes=head", verdict: cannot},
	{user: "root", line: "scontrol setdebug info", verdict: cannot},
	{user: "root", line: "scontrol reconfigure", verdict: cannot, reason: "schedctld reads its configuration only when it starts"},
	{user: "root", line: "scontrol shutdown", verdict: cannot, reason: "only the service manager stops schedctld"},
	{user: "alice", line: "scontrol token", verdict: works},
	{user: "alice", line: "scontrol token username=root", verdict: refused, reason: "only root and SchedUser can get a token for another user"},

	{user: "alice", line: "srun hostname", verdict: cannot, reason: "schedctld has no interactive allocations"},
	{user: "alice", line: "salloc true", verdict: cannot, reason: "schedctld has no interactive allocations"},
	{user: "alice", line: "sattach 1.0", verdict: cannot},
	{user: "alice", line: "sstat -j 1", verdict: cannot},
	{user: "alice", line: "strigger --get", verdict: cannot},
	{user: "alice", line: "sprio", verdict: partly, reason: "the priorities have no factors"},

	{user: "alice", line: "scancel 99", verdict: partly, reason: "no message that there is no job 99"},
	{user: "alice", line: "scancel -s USR1 -b 3", verdict: partly, reason: "only running jobs can get a signal"},
	{user: "alice", line: "scancel 3", verdict: works},
	{user: "alice", line: "scancel 1", verdict: works},
	{user: "alice", line: "scancel --me", verdict: works, wait: fmt.Sprintf(jobStateCommand, 1, "CANCELLED")},
	{user: "alice", line: "squeue -t all -o '%i %T %r'", verdict: works},

	{user: "alice", line: "sdiag | sed -n '1,22p'", verdict: partly, reason: "the numbers of jobs are correct, and those of the scheduler are 0"},
	{user: "root", line: "sdiag -r", verdict: cannot, reason: "schedctld can't reset its statistics"},
	{user: "alice", line: "sshare", verdict: works},

	{user: "alice", line: "sacct", verdict: works, wait: "sacct -n -X -j 1 -o state | grep CANCELLED"},
	{user: "alice", line: "sacct -X -a -o jobid,jobname,state,user,exitcode", verdict: works},
	{user: "alice", line: "sacct -j 2 -o jobid,state,exitcode", verdict: works},
	{user: "alice", line: "sacctmgr ping", verdict: partly, reason: "Slurm 22.05 does not have this command"},
	{user: "alice", line: "sacctmgr -P show tres", verdict: works},
	{user: "alice", line: "sacctmgr -P show cluster format=cluster,controlhost", verdict: works},
	{user: "alice", line: "sacctmgr -P show user", verdict: works},
	{user: "alice", line: "sacctmgr -P show account", verdict: works},
	{user: "alice", line: "sacctmgr -P show assoc format=cluster,account,user", verdict: works},
	{user: "alice", line: "sacctmgr -P show qos format=name", verdict: works},
	{user: "alice", line: "sacctmgr -P show wckey", verdict: works},
	{user: "root", line: "sacctmgr show stats | grep -oE 'DBD_GET_JOBS_COND|MsgType=30003|alice' | sort", verdict: works},
	{user: "alice", line: "sacctmgr show reservation", verdict: cannot},
	{user: "alice", line: "sacctmgr show event", verdict: cannot},
	{user: "alice", line: "sacctmgr show federation", verdict: cannot},
	{user: "alice", line: "sacctmgr show transaction", verdict: cannot},
	{user: "alice", line: "sacctmgr show runawayjobs", verdict: cannot},
	{user: "root", line: "sacctmgr -i add account x", verdict: works},
	{user: "root", line: "sacctmgr -i add qos x", verdict: works},
	{user: "root", line: "sacctmgr -i delete account x", verdict: works},

	{user: "forged", line: "squeue", verdict: refused},
	{user: "expired", line: "squeue", verdict: refused, wait: "squeue >/dev/null 2>&1 || echo it has ended"},
	{user: "none", line: "squeue", verdict: refused, reason: "without a token the command uses MUNGE, which the bundled daemons do not accept"},
	{user: "forged", line: "sbatch --wrap hostname", verdict: refused},
	{user: "none", line: "sbatch --wrap hostname", verdict: refused},
	{user: "forged", line: "sacct", verdict: refused},
	{user: "none", line: "sacct", verdict: refused},
}

// commandResult is the output and the exit status of a command.
type commandResult struct {
	text string
	code int
}

// indent indents text for a golden file, in which only titles and exit statuses
// are not indented.
func indent(text string) string {
	if text == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}

var resultPattern = regexp.MustCompile(`(?m)^(\S.*)\nexit (\d+)\n((?:  .*\n|\n)*)`)

// parseRecorded reads a golden file.
func parseRecorded(t *testing.T, text string) map[string]commandResult {
	t.Helper()
	found := map[string]commandResult{}
	for _, m := range resultPattern.FindAllStringSubmatch(text, -1) {
		code, err := strconv.Atoi(m[2])
		must(t, err)
		lines := strings.Split(strings.Trim(m[3], "\n"), "\n")
		for i := range lines {
			lines[i] = strings.TrimPrefix(lines[i], "  ")
		}
		found[m[1]] = commandResult{strings.TrimRight(strings.Join(lines, "\n"), " \n"), code}
	}
	return found
}

// commandsPage is the file that lists the commands and states which of them
// work. commandsOutput is the file that contains the commands' output.
const (
	commandsPage   = "../../docs/generated/COMMANDS.md"
	commandsOutput = "testdata/commands/OUTPUT.md"
)

// TestCommandsPage checks that commandsPage and commandsOutput match the
// recorded outputs. It needs no Slurm.
func TestCommandsPage(t *testing.T) {
	records := map[string]map[string]commandResult{}
	for _, release := range []string{"22.05", "24.11", "26.05"} {
		text, err := os.ReadFile(commandsGolden + release + ".txt")
		if os.IsNotExist(err) {
			continue
		}
		must(t, err)
		records[release] = parseRecorded(t, string(text))
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

This page is generated. [BUNDLED.md](../BUNDLED.md#slurms-commands) describes how to use Slurm's commands with the bundled daemons. The table
lists the commands (releases %s) in the order in which a test runs them. The user is alice unless the row names another user. In
the sources, ` + "`integration/slurm/" + commandsOutput + "`" + ` contains the expected output.

- *works*: the command does the same as with Slurm's daemons
- *partly*: the command's output is correct, but incomplete
- *refused*: the command fails, as it does with Slurm's daemons
- *can't*: the bundled daemons do not support the command

| command | result | reason, and last line that the command prints |
| --- | --- | --- |
`

const commandsOutputHead = `# Output of Slurm's commands with schedctld and scheddbd

Generated from the recorded outputs. Times, figures of the machine and tokens are left out. ` + "`exit`" + ` is shown when it is not 0.
`

// commandsText returns the texts of commandsPage and commandsOutput.
func commandsText(records map[string]map[string]commandResult) (page, output string) {
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
		for _, group := range groupReleases(c.title(), releases, records) {
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

// remark returns the last column of a row. It contains the reason for the
// verdict and, if the command can't work or is refused, the last line that the
// command printed.
func remark(c commandLine, releases []string, records map[string]map[string]commandResult) string {
	parts := []string{}
	if c.reason != "" {
		parts = append(parts, c.reason)
	}
	if len(releases) > 0 && (c.verdict == cannot || c.verdict == refused) {
		lines := strings.Split(strings.TrimSpace(records[releases[len(releases)-1]][c.title()].text), "\n")
		if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
			parts = append(parts, "`"+strings.ReplaceAll(last, "|", `\|`)+"`")
		}
	}
	return strings.Join(parts, ": ")
}

// groupReleases groups the releases by the result of the command: its text and
// exit status.
func groupReleases(title string, releases []string, records map[string]map[string]commandResult) (groups [][]string) {
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

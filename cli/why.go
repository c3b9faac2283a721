package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/api/reason"
	"schedrestd/cli/rest"
	"schedrestd/internal/printable"
)

func whyCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "why ID...",
		Short: "Explain why jobs wait or have failed",
		Long: `why explains why jobs wait or have failed, and what would change it, for people who do not
know the words of Slurm.`,
		Args: atLeastOneJob,
	}
	o.connectFlags(cmd)
	o.outputFlag(cmd, "csv")
	cmd.ValidArgsFunction = o.completeJobs(&filter{all: true})
	return setRun(cmd, func(cmd *cobra.Command, ids []string) error {
		c, ids, err := o.dialForJobs(cmd.Context(), ids)
		if err != nil {
			return err
		}
		add, closeSheet := func(e explained) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "job %s %s: %s\n", e.Job, e.State, e.Explanation)
			return err
		}, func(unknown error) error { return unknown }
		if o.output != "table" {
			s := o.newSheet(cmd.OutOrStdout(), "explanations", []sheetColumn{{field: "job_id"}, {field: "job_state"}, {field: "explanation"}})
			add, closeSheet = func(e explained) error {
				text, _ := json.Marshal(e) // can't fail for texts
				return s.add(text)
			}, s.close
		}
		var joined error
		for _, id := range ids {
			jobs, _, err := c.PollJob(cmd.Context(), id, rest.Explained())
			joined = joinErrors(joined, err)
			for i := range jobs {
				j := &jobs[i]
				if err := add(explained{j.Label(), strings.Join(j.State, "+"), explanationOf(j, time.Now())}); err != nil {
					return err
				}
			}
		}
		return closeSheet(joined)
	})
}

// explained is a job with its explanation, for programs.
type explained struct {
	Job         string `json:"job_id"`
	State       string `json:"job_state"`
	Explanation string `json:"explanation"`
}

// meaningOf returns the explanation of a reason, with numbers if the server has sent
// it; "" if the reason is unknown.
func meaningOf(j *rest.Job, word string) string {
	if e := j.Explanation; e.Why != "" && word != "" {
		return printable.Text(e.Why + " " + e.Change)
	}
	e, _ := reason.Explain(word)
	return strings.TrimSpace(e.Why + " " + e.Change)
}

// explanationOf says why j waits or has failed, what would change it, and when it is
// expected to start.
func explanationOf(j *rest.Job, now time.Time) string {
	var list []string
	word := reasonOf(j)
	switch pending := j.BaseState() == "PENDING"; {
	case word == "" && pending:
		word = "None"
	case !pending && !reason.IsFailure(word): // a job that was cancelled keeps the reason for which it waited
		word = ""
	}
	switch meaning := meaningOf(j, word); {
	case j.FilesFailed():
		list = append(list, filesFailed+".")
	case meaning != "":
		list = append(list, meaning)
	case word != "":
		list = append(list, printable.Text(word)+".")
	default:
		return "it does not wait, and has not failed"
	}
	if d := printable.Text(j.Description); d != "" && !j.FilesFailed() && !strings.Contains(list[0], d) {
		list = append(list, d+".")
	}
	if j.Dependency != "" && strings.HasPrefix(word, "Dependency") && j.Explanation.Why == "" {
		list = append(list, "Dependency: "+printable.Text(j.Dependency)+".")
	}
	if start := j.Started; j.BaseState() == "PENDING" && start.Int() > now.Unix() {
		list = append(list, "Expected start: "+formatTime(start)+".")
	}
	return strings.Join(strings.Fields(strings.Join(list, " ")), " ")
}

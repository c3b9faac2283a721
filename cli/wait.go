package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

// retryTimeout limits the time for which a failing request is repeated. The
// limit applies to commands that wait for jobs or watch them.
const retryTimeout = 15 * time.Minute

// The pause between requests about the same job grows from minPause to
// maxPause. The first pauses are short, because many jobs are short.
const (
	minPause = 500 * time.Millisecond
	maxPause = 5 * time.Second
)

// pollJob polls the job with this id until it has ended. If the id is that of
// an array, pollJob polls until all tasks have ended. After each successful
// request, pollJob calls report with the jobs in the answer. Several calls of
// pollJob may share sem, which limits their concurrent requests.
func (c *connection) pollJob(ctx context.Context, id string, sem chan struct{}, report func([]rest.Job)) ([]rest.Job, error) {
	pause, failingSince := minPause, time.Time{}
	request := &rest.List{Fields: uniqueFields([]string{jobKey, summaryFields, "name,start_time,end_time"})}
	var jobs []rest.Job
	for {
		sem <- struct{}{}
		answer, meta, err := c.PollJob(ctx, id, request)
		<-sem
		switch {
		case err == nil:
			failingSince = time.Time{}
			if !meta.Unchanged {
				jobs = answer
			}
			report(jobs)
			if !slices.ContainsFunc(jobs, func(j rest.Job) bool { return j.Active() }) {
				return jobs, nil
			}
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !isRetryable(err) || !failingSince.IsZero() && time.Since(failingSince) > retryTimeout:
			return nil, &errs.Error{Kind: errs.KindOf(err), Message: "wait for job " + printable.Text(id), Err: err, Hint: errs.HintOf(err)}
		case failingSince.IsZero():
			failingSince = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
		pause = min(pause*3/2, maxPause)
	}
}

// isRetryable reports whether a request that failed with err may succeed if it
// is sent again.
func isRetryable(err error) bool {
	switch errs.KindOf(err) {
	case errs.Unavailable, errs.Timeout, errs.TooMany, errs.BadAnswer, errs.Internal:
		return true
	}
	return errors.Is(err, io.ErrUnexpectedEOF)
}

// exitStatus returns the exit status of the first job whose exit status is not
// 0. If there is no such job, it returns 0.
func exitStatus(jobs []rest.Job) int {
	for i := range jobs {
		if status := jobs[i].ExitStatus(); status != 0 {
			return status
		}
	}
	return 0
}

// The type progress shows the state of a job. On a terminal it updates one
// line. Otherwise it prints a line for each change.
type progress struct {
	w        io.Writer
	terminal table.Terminal
	style    table.Style
	lastLine string
}

func newProgress(w io.Writer) *progress {
	t := table.TerminalOf(w)
	return &progress{w: w, terminal: t, style: t.Style()}
}

func (p *progress) show(id string, jobs []rest.Job) {
	state, color := summary(jobs)
	line := "job " + printable.Text(id) + " " + state
	if !p.terminal.IsTerminal() {
		if line != p.lastLine {
			fmt.Fprintln(p.w, line)
		}
		p.lastLine = line
		return
	}
	if len(jobs) == 1 && jobs[0].BaseState() == "RUNNING" {
		line += " " + formatDuration(jobs[0].Elapsed(time.Now()))
	}
	if columns := p.style.Width; columns > 1 {
		line = table.Cut(line, columns-1)
	}
	if p.style.Color && color != table.Plain {
		line = table.Paint(line, color)
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", line)
	p.lastLine = line
}

// finish writes a newline, so that the last state stays on the terminal.
func (p *progress) finish() {
	if p.terminal.IsTerminal() && p.lastLine != "" {
		fmt.Fprintln(p.w)
	}
}

// summaryFields are the fields that summary shows.
const summaryFields = "job_state,nodes,state_reason,state_description,exit_code"

// summary describes the states of jobs. For a single job it describes the state
// in detail. For several jobs it returns the number of jobs in each state.
func summary(jobs []rest.Job) (string, table.Color) {
	if len(jobs) == 1 {
		j := &jobs[0]
		text := printable.Text(strings.Join(j.State, "+"))
		switch {
		case !j.Active():
			if o := outcome(j); o != successOutcome {
				text += ", " + printable.Text(o)
			}
		case j.Nodes != "":
			text += " on " + printable.Text(j.Nodes)
		case reasonOf(j) != "":
			text += " (" + printable.Text(j.Reason) + ")"
		}
		if j.Description != "" {
			text += ": " + printable.Text(j.Description)
		}
		return text, stateColor(j.State)
	}
	counts := map[string]int{}
	for i := range jobs {
		counts[jobs[i].BaseState()]++
	}
	var parts []string
	for state, n := range counts {
		parts = append(parts, fmt.Sprintf("%s %d", printable.Text(state), n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", "), table.Plain
}

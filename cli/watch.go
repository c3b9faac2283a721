package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

func watchCommand() *cobra.Command {
	var o options
	var f filter
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "watch [ID...]",
		Short: "Print each change of a job's state",
		Long: `watch prints a line when a job changes its state. With ids it ends when these jobs have
ended, with the exit code of the first of them that failed, as submit --wait does.
Without ids it watches all jobs, or those that its options select, until Ctrl-C.`,
		Example: "  schedctl watch 12 13\n  schedctl watch --me",
		Args:    cobra.ArbitraryArgs,
	}
	o.connectFlags(cmd)
	f.flags(cmd)
	o.completeFilter(cmd)
	cmd.Flags().DurationVar(&interval, "interval", 5*time.Second, "time between two requests for all jobs, at least 1s, if the server does not send the changes")
	cmd.ValidArgsFunction = o.completeJobs(&f)
	return setRun(cmd, func(cmd *cobra.Command, ids []string) error {
		switch {
		case interval < time.Second:
			return usageError("--interval %s: shorter than 1s", interval)
		case len(ids) > 0 && f.hasCondition():
			return usageError("watch: name jobs or select them, not both")
		}
		ids, err := expandIDs(ids)
		if err != nil {
			return err
		}
		c, err := o.dialWithFilter(cmd.Context(), &f)
		if err != nil {
			return err
		}
		ctx, stop := context.WithCancel(cmd.Context())
		defer stop()
		changes := newChangePrinter(cmd.OutOrStdout(), stop)
		if len(ids) > 0 {
			err = c.awaitJobs(ctx, ids, &await{until: rest.UntilEnded, report: func(jobs []rest.Job) {
				for i := range jobs {
					changes.print(&jobs[i])
				}
			}})
		} else {
			err = c.watchAll(ctx, &f, interval, changes)
		}
		return cmp.Or(changes.failure(), err)
	})
}

// watchAll follows the jobs that f selects. These include jobs that have ended,
// because users wait for jobs to end. It follows the events of a server that can
// wait, and asks others for the list after each interval.
func (c *connection) watchAll(ctx context.Context, f *filter, interval time.Duration, changes *changePrinter) error {
	states := f.states
	f.all, f.states = true, nil
	request := f.jobs([]string{summaryFields, "name"})
	initial := true
	list := func() (rest.Meta, error) {
		seen := map[uint32]bool{}
		m, err := c.selectJobs(ctx, request, f, func(j *rest.Job) {
			seen[j.ID] = true
			changes.update(j, initial, states)
		})
		if err == nil && initial {
			err = c.checkNames(ctx, f)
		}
		if err == nil && !m.Unchanged {
			changes.retain(seen)
			initial, request.Since = false, m.LastUpdate
		}
		return m, err
	}
	follower := &rest.JobFollower{List: request, Gone: changes.forget, Listed: changes.retain, Job: func(j *rest.Job) {
		if f.matches(j) {
			changes.update(j, false, states)
		}
	}}
	hasEvents, err := true, error(nil)
	for err == nil {
		err = c.repeat(ctx, request, schedule{interval, interval, retryTimeout}, func() (rest.Meta, bool, error) {
			m, err := list()
			return m, m.Wait > 0 && hasEvents, err
		})
		if err != nil {
			break
		}
		c.noteEvents()
		err = c.repeat(ctx, request, schedule{min(time.Second, interval), interval, retryTimeout}, func() (rest.Meta, bool, error) {
			if !request.Wait { // after a failure
				m, err := list()
				return m, false, err
			}
			err := follower.Follow(ctx, c.Client)
			if err == rest.ErrNoEvents {
				hasEvents = false
				return rest.Meta{}, true, nil
			}
			return rest.Meta{Wait: interval}, false, err
		})
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errs.Wrap(err, errs.KindOf(err), "watch jobs")
}

// A changePrinter prints the state of a job if the state differs from the last
// one that it recorded for that job.
type changePrinter struct {
	w     io.Writer
	style table.Style
	stop  func() // is called if the text can't be written

	mu     sync.Mutex // guards what follows
	states map[uint32]string
	err    error // the failure to write
}

func newChangePrinter(w io.Writer, stop func()) *changePrinter {
	return &changePrinter{w: w, stop: stop, style: table.TerminalOf(w).Style(), states: map[uint32]string{}}
}

// print prints the state of j if it has changed.
func (c *changePrinter) print(j *rest.Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := strings.Join(j.State, "+")
	if c.states[j.ID] == state {
		return
	}
	c.states[j.ID] = state
	text, color := summary([]rest.Job{*j})
	if c.style.Color && color != table.Plain {
		text = table.Paint(text, color)
	}
	_, err := fmt.Fprintf(c.w, "%s  %-8s  %-12s  %s\n",
		time.Now().Format("15:04:05"), printable.Text(j.Label()), printable.Text(j.Name), text)
	if err != nil {
		c.err = cmp.Or(c.err, err)
		c.stop()
	}
}

// failure returns the error of the first line that could not be written, if any.
func (c *changePrinter) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// update records the state of j, and prints the state if it has changed. If
// states is not empty, update prints a state only if states contains it. If
// initial is set, j comes from the first answer of the server. In this case
// update prints the state only if j is active.
func (c *changePrinter) update(j *rest.Job, initial bool, states []string) {
	selected := len(states) == 0
	for _, s := range states {
		selected = selected || j.BaseState() == s
	}
	if selected && (!initial || j.Active()) {
		c.print(j)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states[j.ID] = strings.Join(j.State, "+")
}

// forget forgets the state of the job with this id.
func (c *changePrinter) forget(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.states, id)
}

// retain forgets the states of jobs that are not in seen.
func (c *changePrinter) retain(seen map[uint32]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.states {
		if !seen[id] {
			delete(c.states, id)
		}
	}
}

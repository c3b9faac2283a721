package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/internal/errs"
)

// selectTargets returns the jobs to change: those that f selects and, if ids is
// not empty, that ids also names. It warns about named jobs that f does not
// select. The result contains an error for those that the server does not list.
func (c *connection) selectTargets(cmd *cobra.Command, f *filter, ids []string) (*targets, error) {
	var selected []*rest.Job
	known, active, partial := map[string]bool{}, map[string]bool{}, map[string]bool{}
	_, err := c.Jobs(cmd.Context(), f.jobsToChange(ids), func(j *rest.Job) error {
		for _, id := range ids {
			if j.Selects(id) {
				known[id], active[id] = true, active[id] || j.Active()
			}
		}
		switch {
		case f.matches(j):
			selected = append(selected, trimJob(j))
		case j.Active():
			partial[j.Whole()] = true
		}
		return nil
	})
	if err == nil {
		err = c.checkNames(cmd.Context(), f)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(selected, func(a, b *rest.Job) int { return cmp.Compare(a.ID, b.ID) })
	t := &targets{partial: partial, jobs: map[string]*rest.Job{}}
	if len(ids) == 0 {
		for _, j := range selected {
			t.addJob(j)
		}
		return t, nil
	}
	for _, id := range ids {
		if !known[id] {
			t.err = joinErrors(t.err, errs.New(errs.NotFound, "job %s is unknown", id).
				WithHint("schedctl jobs --all lists the jobs that the controller knows"))
			continue
		}
		found := false
		for _, j := range selected {
			if j.Selects(id) {
				found = true
				t.addNamed(j, id)
			}
		}
		switch {
		case found:
		case !active[id] && !f.all && len(f.states) == 0:
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: job %s was skipped: it has ended\n", id)
		default:
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: job %s was skipped: it does not match the options\n", id)
		}
	}
	return t, nil
}

// The type targets collects the ids of jobs to change. The server changes all
// tasks of an array, or components of a heterogeneous job, if it gets the id of the
// whole. So this id is used only if all active tasks or components were selected.
type targets struct {
	ids     []string
	jobs    map[string]*rest.Job // by id
	partial map[string]bool      // ids of arrays and heterogeneous jobs with an active part that was not selected
	err     error
}

func (t *targets) add(id string, j *rest.Job) {
	if t.jobs[id] == nil {
		t.jobs[id] = j
		t.ids = append(t.ids, id)
	}
}

// addNamed adds the part of j that the user's id names.
func (t *targets) addNamed(j *rest.Job, id string) {
	switch {
	case id == j.Whole():
		t.addJob(j)
	case j.ArrayTask.Set && j.Array() != "":
		t.add(j.Label(), j)
	default: // a job that does not belong to an array, or one of the pending tasks of j
		t.add(id, j)
	}
}

// addJob adds j and, if j stands for several pending tasks, all of these.
func (t *targets) addJob(j *rest.Job) {
	array := j.Whole()
	switch {
	case array == "":
		t.add(strconv.FormatUint(uint64(j.ID), 10), j)
	case j.ArrayTask.Set:
		if t.jobs[array] == nil {
			t.add(j.Label(), j)
		}
	case !t.partial[array]:
		t.add(array, j)
	case j.HetJob.Int() != 0:
		t.add(j.Label(), j)
	default:
		tasks, complete := j.PendingTasks()
		if !complete {
			t.err = joinErrors(t.err, wrapError("job "+j.Label(), errs.New(errs.Unsupported, "the server's list of tasks is incomplete").
				WithHint("name the tasks, or the whole array with the id %s", array)))
		}
		for id := range tasks {
			t.add(id, j)
		}
	}
}

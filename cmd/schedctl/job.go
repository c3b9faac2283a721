package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"schedrestd/api"
	"schedrestd/model"
)

func showJob(dial connector) *cobra.Command {
	return &cobra.Command{
		Use:     "job [ID]",
		Aliases: []string{"jobs"},
		Short:   "Show all jobs, or one job in detail",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := jobIDs(args)
			if err != nil {
				return err
			}
			c, err := dial()
			if err != nil {
				return err
			}
			describe := recordOf(api.Job)
			if len(ids) == 1 {
				first := true
				query := model.Query{Flags: model.ShowAll | model.ShowDetail}
				_, err := c.client.Job(cmd.Context(), c.credential, ids[0], query, func(j *model.Job) error {
					r, err := describe(&api.JobRow{Job: j, Users: users{}})
					if err != nil {
						return err
					}
					if !first {
						fmt.Fprintln(cmd.OutOrStdout()) // another task of an array
					}
					first = false
					return r.print(cmd.OutOrStdout())
				})
				return err
			}
			t := newTable(cmd.OutOrStdout(),
				column{"ID", "job_id"},
				column{"NAME", "name"},
				column{"USER", "user_name"},
				column{"STATE", "job_state"},
				column{"CPUS", "cpus"},
				column{"LIMIT", "time_limit"},
				column{"EXIT", "exit_code.return_code"},
				column{"REASON", "state_reason"},
			)
			_, err = c.client.Jobs(cmd.Context(), c.credential, model.Query{Flags: model.ShowAll}, func(j *model.Job) error {
				r, err := describe(&api.JobRow{Job: j, Users: users{}})
				if err != nil {
					return err
				}
				t.add(r)
				return nil
			})
			if err != nil {
				return err
			}
			return t.flush()
		},
	}
}

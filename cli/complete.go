package cli

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/internal/printable"
)

// completionTimeout limits the time for a completion, because the user's shell
// waits for the completion.
const completionTimeout = 3 * time.Second

// complete connects to the server and calls list, which must request the
// possible words. For each word, list calls the function that it gets as its
// last argument. complete does not print errors, because they would appear in
// the user's command line.
func (o *options) complete(list func(context.Context, *connection, func(word, description string)) error) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	o.timeout, o.quiet = min(o.timeout, completionTimeout), true
	var words []cobra.Completion
	c, err := o.dial(ctx)
	if err == nil {
		err = list(ctx, c, func(word, description string) {
			if strings.ContainsAny(word, " \t\n\\'\"$`;&|<>()*?!#~") || printable.Text(word) != word {
				return // a shell might run part of such a word
			}
			words = append(words, cobra.CompletionWithDesc(word, printable.Text(description)))
		})
	}
	if err != nil {
		cobra.CompDebugln(printable.Text(err.Error()), false)
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeJobs completes the ids of the jobs that f selects. Users rarely name
// the jobs of others, and the list of all jobs can be long. So unless f selects
// users, completeJobs completes the jobs of the user or, if there are none, those
// of all users.
func (o *options) completeJobs(f *filter) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return o.complete(func(ctx context.Context, c *connection, add func(string, string)) error {
			f := *f
			if err := f.check(); err != nil {
				return err
			}
			found := false
			list := func(f *filter) error {
				_, err := c.selectJobs(ctx, f.jobs([]string{"name,user_name,job_state"}), f, func(j *rest.Job) {
					found = true
					id, _, _ := strings.Cut(j.Label(), "_[") // pending tasks share one record
					add(id, j.Name+" "+j.User+" "+j.BaseState())
				})
				return err
			}
			own, hasUsers := f, f.me || len(f.users) > 0
			own.me = own.me || !hasUsers
			err := own.setUser(c.user)
			if err == nil {
				err = list(&own)
			}
			if hasUsers || found {
				return err
			}
			return list(&f)
		})
	}
}

// completeNodes completes names of nodes.
func (o *options) completeNodes(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return o.complete(func(ctx context.Context, c *connection, add func(string, string)) error {
		_, err := c.Nodes(ctx, &rest.List{Fields: []string{"name", "state"}}, func(n *rest.Node, _ json.RawMessage) error {
			add(n.Name, strings.Join(n.State, "+"))
			return nil
		})
		return err
	})
}

// completePartitions completes names of partitions.
func (o *options) completePartitions(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return o.complete(func(ctx context.Context, c *connection, add func(string, string)) error {
		return c.Partitions(ctx, &rest.List{Fields: []string{"name", "partition.state"}}, func(p *rest.Partition, _ json.RawMessage) error {
			add(p.Name, strings.Join(p.Partition.State, "+"))
			return nil
		})
	})
}

// completeFilter completes the options --node and --partition of a filter.
func (o *options) completeFilter(cmd *cobra.Command) {
	cmd.RegisterFlagCompletionFunc("node", o.completeNodes)
	cmd.RegisterFlagCompletionFunc("partition", o.completePartitions)
}

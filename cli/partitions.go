package cli

import (
	"encoding/json"
	"slices"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
)

func partitionsCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "partitions [NAME...]",
		Short: "List partitions",
		Args:  cobra.ArbitraryArgs,
	}
	o.connectFlags(cmd)
	o.outputFlag(cmd)
	cmd.ValidArgsFunction = o.completePartitions
	return setRun(cmd, func(cmd *cobra.Command, names []string) error {
		if err := o.checkOutput(); err != nil {
			return err
		}
		c, err := o.dial(cmd.Context())
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		d := o.document(out, "partitions")
		t := table.New(
			table.Column{Heading: "NAME"},
			table.Column{Heading: "STATE"},
			table.Column{Heading: "LIMIT", Right: true},
			table.Column{Heading: "DEFAULT", Right: true},
			table.Column{Heading: "NODES", Right: true},
			table.Column{Heading: "CPUS", Right: true},
			table.Column{Heading: "NODELIST", Shrink: 12},
		)
		seen := map[string]bool{}
		err = c.Partitions(cmd.Context(), func(p *rest.Partition, text json.RawMessage) error {
			if len(names) > 0 && !slices.Contains(names, p.Name) {
				return nil
			}
			seen[p.Name] = true
			if d != nil {
				return d.Add(text)
			}
			t.Add(
				textCell(p.Name),
				stateCell(p.Partition.State),
				textCell(formatLimit(p.Maximums.Time)),
				textCell(formatLimit(p.Defaults.Time)),
				numberCell(p.Nodes.Total),
				numberCell(p.CPUs.Total),
				textCell(p.Nodes.Configured),
			)
			return nil
		})
		if err != nil {
			return err
		}
		return writeResult(out, d, t, "partition", names, seen)
	})
}

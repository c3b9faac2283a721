package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
)

func partitionsCommand() *cobra.Command {
	var o options
	l := listing[*partitionRow]{columns: partitionColumns()}
	cmd := &cobra.Command{
		Use:   "partitions [NAME...]",
		Short: "List partitions",
		Long: `partitions lists partitions. The column NODES(A/I/O/T) contains the number of nodes that run
jobs, that are idle, that are in other states such as DOWN or DRAIN, and their total.
A * marks the partition of jobs that name none.`,
		Args: cobra.ArbitraryArgs,
	}
	o.connectFlags(cmd)
	o.outputFlag(cmd, "wide")
	l.flags(cmd)
	cmd.ValidArgsFunction = o.completePartitions
	return setRun(cmd, func(cmd *cobra.Command, names []string) error {
		if err := l.check(o.output); err != nil {
			return err
		}
		c, err := o.dial(cmd.Context())
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		d := o.document(out, "partitions")
		w := newWanted("partition", "schedctl partitions lists the partitions", names)
		var rows []*partitionRow
		request := &rest.List{}
		if d == nil {
			request.Fields = l.fields("name")
			if c.Version() >= "v0.0.45" {
				request.Fields = l.fields("name", "flags")
			}
		}
		err = c.Partitions(cmd.Context(), request, func(p *rest.Partition, text json.RawMessage) error {
			if !w.has(p.Name) {
				return nil
			}
			if d != nil {
				return d.Add(text)
			}
			rows = append(rows, &partitionRow{Partition: p})
			return nil
		})
		if err == nil && len(rows) > 0 {
			err = c.addLoads(cmd.Context(), names, rows)
		}
		if err != nil {
			return err
		}
		return writeResult(out, d, l.table(rows), w.check())
	})
}

// addLoads adds the nodes of the partitions with the given names, or of all, to rows.
func (c *connection) addLoads(ctx context.Context, names []string, rows []*partitionRow) error {
	request := nodesRequest(nil, nil, names)
	request.Fields = []string{loadFields, "partitions"}
	_, err := c.Nodes(ctx, request, func(n *rest.Node, _ json.RawMessage) error {
		for _, row := range rows {
			if slices.Contains(n.Partitions, row.Name) {
				row.usage.add(n)
			}
		}
		return nil
	})
	return err
}

// A partitionRow is a partition with the numbers of its nodes.
type partitionRow struct {
	*rest.Partition
	usage load
}

// label returns the name of p and, as sinfo does, an asterisk if p is the default.
func (p *partitionRow) label() string {
	if slices.Contains(p.Flags, "DEFAULT") {
		return p.Name + "*"
	}
	return p.Name
}

func partitionColumns() []column[*partitionRow] {
	return []column[*partitionRow]{
		{name: "name", fields: "name", Column: table.Column{Heading: "NAME", Shrink: 12, Rank: 2}, cell: func(p *partitionRow) table.Cell { return textCell(p.label()) }},
		{name: "state", fields: "partition.state", Column: table.Column{Heading: "STATE"}, cell: func(p *partitionRow) table.Cell { return stateCell(p.Partition.Partition.State) }},
		{name: "limit", fields: "maximums.time", Column: table.Column{Heading: "LIMIT", Right: true}, cell: func(p *partitionRow) table.Cell { return limitCell(p.Maximums.Time) }},
		{name: "default", fields: "defaults.time", Column: table.Column{Heading: "DEFTIME", Right: true, Drop: 1}, cell: func(p *partitionRow) table.Cell { return limitCell(p.Defaults.Time) }},
		{name: "nodes", Column: table.Column{Heading: "NODES(A/I/O/T)", Right: true}, cell: func(p *partitionRow) table.Cell {
			u := &p.usage
			return countCell(fmt.Sprintf("%d/%d/%d/%d", u.inUse(), u.idle, u.other, u.nodes), float64(u.nodes))
		}},
		{name: "cpus", fields: "cpus.total", Column: table.Column{Heading: "CPUS", Right: true}, cell: func(p *partitionRow) table.Cell { return numberCell(p.CPUs.Total) }},
		{name: "gpus", extra: true, Column: table.Column{Heading: "GPUS", Right: true}, cell: func(p *partitionRow) table.Cell { return gpuCell(p.usage.busyGPUs, p.usage.gpus) }},
		{name: "nodelist", fields: "nodes.configured", Column: table.Column{Heading: "NODELIST", Shrink: 12, Rank: 1}, cell: func(p *partitionRow) table.Cell { return textCell(p.Nodes.Configured) }},
	}
}

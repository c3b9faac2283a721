package main

import (
	"github.com/spf13/cobra"

	"schedrestd/api"
	"schedrestd/model"
)

func showNode(dial connector) *cobra.Command {
	return &cobra.Command{
		Use:     "node [NAME]",
		Aliases: []string{"nodes"},
		Short:   "Show all nodes, or one node in detail",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := dial()
			if err != nil {
				return err
			}
			describe := recordOf(api.Node)
			query := model.Query{Flags: model.ShowAll}
			if len(args) == 1 {
				n, _, err := c.client.Node(cmd.Context(), c.credential, args[0], query)
				if err != nil {
					return err
				}
				row := api.NodeRow{Node: n, Users: users{}}
				_, err = c.client.Partitions(cmd.Context(), c.credential, query, func(p *model.Partition) error {
					if model.HostlistHas(p.Nodes, n.Name) {
						row.Partitions = append(row.Partitions, p.Name)
					}
					return nil
				})
				if err != nil {
					return err
				}
				r, err := describe(&row)
				if err != nil {
					return err
				}
				return r.print(cmd.OutOrStdout())
			}
			t := newTable(cmd.OutOrStdout(),
				column{"NAME", "name"},
				column{"STATE", "state"},
				column{"CPUS", "cpus"},
				column{"ALLOC", "alloc_cpus"},
				column{"MEMORY", "real_memory"},
				column{"FREE", "free_mem"},
				column{"REASON", "reason"},
			)
			_, err = c.client.Nodes(cmd.Context(), c.credential, query, func(n *model.Node) error {
				r, err := describe(&api.NodeRow{Node: n, Users: users{}})
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

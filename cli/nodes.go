package cli

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/printable"
)

func nodesCommand() *cobra.Command {
	var o options
	var states, partitions []string
	cmd := &cobra.Command{
		Use:   "nodes [NAME...]",
		Short: "List nodes",
		Args:  cobra.ArbitraryArgs,
	}
	o.connectFlags(cmd)
	o.outputFlag(cmd)
	cmd.Flags().StringSliceVarP(&states, "state", "t", nil, "nodes in one of these `STATES`, such as IDLE or DRAIN")
	cmd.Flags().StringSliceVarP(&partitions, "partition", "p", nil, "nodes in these `PARTITIONS`")
	cmd.ValidArgsFunction = o.completeNodes
	cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(nodeStates, cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("partition", o.completePartitions)
	return setRun(cmd, func(cmd *cobra.Command, names []string) error {
		if err := o.checkOutput(); err != nil {
			return err
		}
		for i, s := range states {
			if states[i] = nodeState(s); states[i] == "" {
				return usageError("--state %s: unknown state", printable.Text(s)).
					WithHint("states are %s", strings.Join(nodeStates, ", "))
			}
		}
		c, err := o.dial(cmd.Context())
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		d := o.document(out, "nodes")
		t := table.New(
			table.Column{Heading: "NAME", Shrink: 12},
			table.Column{Heading: "STATE"},
			table.Column{Heading: "CPUS", Right: true},
			table.Column{Heading: "ALLOC", Right: true},
			table.Column{Heading: "LOAD", Right: true},
			table.Column{Heading: "MEMORY", Right: true},
			table.Column{Heading: "FREE", Right: true},
			table.Column{Heading: "GRES", Shrink: 6},
			table.Column{Heading: "PARTITIONS", Shrink: 10},
			table.Column{Heading: "REASON", Shrink: 10},
		)
		seen := map[string]bool{}
		err = c.Nodes(cmd.Context(), func(n *rest.Node, text json.RawMessage) error {
			if !hasAny(names, n.Name) {
				return nil
			}
			seen[n.Name] = true
			if !hasAny(states, n.State...) || !hasAny(partitions, n.Partitions...) {
				return nil
			}
			if d != nil {
				return d.Add(text)
			}
			load := ""
			if n.Load.Set {
				load = strconv.FormatFloat(n.Load.Value/100, 'f', 2, 64)
			}
			t.Add(
				textCell(n.Name),
				stateCell(n.State),
				numberCell(n.CPUs),
				numberCell(n.Allocated),
				textCell(load),
				memoryCell(n.Memory),
				memoryCell(n.Free),
				textCell(n.Gres),
				textCell(strings.Join(n.Partitions, ",")),
				textCell(n.Reason),
			)
			return nil
		})
		if err != nil {
			return err
		}
		return writeResult(out, d, t, "node", names, seen)
	})
}

// nodeStates lists the states and flags by which the user can select nodes.
var nodeStates = []string{
	"ALLOCATED", "CLOUD", "COMPLETING", "DOWN", "DRAIN", "ERROR", "FAIL", "FUTURE", "IDLE", "INVALID_REG", "MAINTENANCE",
	"MIXED", "NOT_RESPONDING", "PERFCTRS", "PLANNED", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "REBOOT_REQUESTED",
	"RESERVED", "UNKNOWN",
}

// shortNodeStates contains the full names of some states, keyed by the names
// that sinfo shows.
var shortNodeStates = map[string]string{
	"ALLOC": "ALLOCATED", "MIX": "MIXED", "COMP": "COMPLETING", "MAINT": "MAINTENANCE", "DRAINED": "DRAIN",
	"DRAINING": "DRAIN", "RESV": "RESERVED", "NO_RESPOND": "NOT_RESPONDING",
}

// nodeState returns the full name of a state, or "" if it is unknown.
func nodeState(s string) string {
	s = strings.ToUpper(s)
	if name := shortNodeStates[s]; name != "" {
		return name
	}
	if !slices.Contains(nodeStates, s) {
		return ""
	}
	return s
}

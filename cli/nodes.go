package cli

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/internal/printable"
)

func nodesCommand() *cobra.Command {
	var o options
	var f filter // of nodes
	l := listing[*rest.Node]{columns: nodeColumns()}
	cmd := &cobra.Command{
		Use:     "nodes [NAME...]",
		Short:   "List nodes",
		Example: "  schedctl nodes 'n[1-20]'\n  schedctl nodes --state DOWN --columns name,state,reason",
		Args:    cobra.ArbitraryArgs,
	}
	o.connectFlags(cmd)
	o.outputFlag(cmd, "wide")
	l.flags(cmd)
	cmd.Flags().StringSliceVarP(&f.states, "state", "t", nil, "nodes in one of these `STATES`, such as IDLE or DRAIN")
	cmd.Flags().StringSliceVarP(&f.partitions, "partition", "p", nil, "nodes in these `PARTITIONS`")
	cmd.ValidArgsFunction = o.completeNodes
	cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(nodeStates, cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("partition", o.completePartitions)
	return setRun(cmd, func(cmd *cobra.Command, exprs []string) error {
		if err := l.check(o.output); err != nil {
			return err
		}
		names, err := expandHosts("node", exprs)
		if err != nil {
			return err
		}
		if err := checkNodeStates(f.states); err != nil {
			return err
		}
		c, err := o.dial(cmd.Context())
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		d := o.document(out, "nodes")
		w := newWanted("node", "schedctl nodes lists the nodes", names)
		request := nodesRequest(names, f.states, f.partitions)
		if d == nil {
			request.Fields = l.fields("name,state,partitions")
		}
		var rows []*rest.Node
		others := 0
		_, err = c.Nodes(cmd.Context(), request, func(n *rest.Node, text json.RawMessage) error {
			if !w.has(n.Name) || !hasAny(f.states, n.State...) || !hasAny(f.partitions, n.Partitions...) {
				others++
				return nil
			}
			f.see(&partitionKind, f.partitions, n.Partitions...)
			if d != nil {
				return d.Add(text)
			}
			rows = append(rows, n)
			return nil
		})
		c.noteOthers(others)
		if err != nil {
			return err
		}
		return writeResult(out, d, l.table(rows), joinErrors(w.check(), c.checkNames(cmd.Context(), &f)))
	})
}

// nodeColumns returns the columns of a list of nodes. On a narrow terminal, the
// reason why a node is down is the last thing that is shortened.
func nodeColumns() []column[*rest.Node] {
	return []column[*rest.Node]{
		{name: "name", fields: "name", Column: table.Column{Heading: "NAME", Shrink: 12, Rank: 3}, cell: func(n *rest.Node) table.Cell { return textCell(n.Name) }},
		{name: "state", fields: "state", Column: table.Column{Heading: "STATE", Shrink: 12, Rank: 4}, cell: func(n *rest.Node) table.Cell { return stateCell(n.State) }},
		{name: "cpus", fields: "cpus", Column: table.Column{Heading: "CPUS", Right: true}, cell: func(n *rest.Node) table.Cell { return numberCell(n.CPUs) }},
		{name: "alloc", fields: "alloc_cpus", Column: table.Column{Heading: "ALLOC", Right: true}, cell: func(n *rest.Node) table.Cell { return numberCell(n.Allocated) }},
		{name: "load", fields: "cpu_load", Column: table.Column{Heading: "LOAD", Right: true, Drop: 2}, cell: loadCell},
		{name: "memory", fields: "real_memory", Column: table.Column{Heading: "MEMORY", Right: true, Drop: 3}, cell: func(n *rest.Node) table.Cell { return memoryCell(n.Memory) }},
		{name: "free", fields: "free_mem", Column: table.Column{Heading: "FREE", Right: true, Drop: 1}, cell: func(n *rest.Node) table.Cell { return memoryCell(n.Free) }},
		{name: "gpus", fields: "gres,gres_used", Column: table.Column{Heading: "GPUS", Right: true, Drop: 5}, cell: func(n *rest.Node) table.Cell { return gpuCell(n.GPUs()) }},
		{name: "gres", fields: "gres", extra: true, Column: table.Column{Heading: "GRES", Shrink: 6, Rank: 1}, cell: func(n *rest.Node) table.Cell { return textCell(n.Gres) }},
		{name: "partitions", fields: "partitions", Column: table.Column{Heading: "PARTITIONS", Shrink: 10, Rank: 1, Drop: 4}, cell: func(n *rest.Node) table.Cell { return textCell(strings.Join(n.Partitions, ",")) }},
		{name: "reason", fields: "reason", Column: table.Column{Heading: "REASON", Shrink: 26, Rank: 5}, cell: func(n *rest.Node) table.Cell { return textCell(n.Reason) }},
	}
}

func loadCell(n *rest.Node) table.Cell {
	if !n.Load.Set {
		return textCell("")
	}
	load := n.Load.Value / 100
	return countCell(strconv.FormatFloat(load, 'f', 2, 64), load)
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

// checkNodeStates replaces states by their full names, and refuses unknown ones.
func checkNodeStates(states []string) error {
	for i, s := range states {
		if states[i] = nodeState(s); states[i] == "" {
			return usageError("--state %s: unknown state", printable.Text(s)).WithHint("states are %s", strings.Join(nodeStates, ", "))
		}
	}
	return nil
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

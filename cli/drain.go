package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func drainCommand() *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use:   "drain NODE... --reason TEXT",
		Short: "Let nodes start no more jobs",
		Long: `drain lets nodes start no more jobs; running jobs continue. Administrators and operators may
drain nodes. The reason is shown to all users.`,
		Example: "  schedctl drain node7 --reason 'replace a disk'\n  schedctl drain 'n[1-4]' --reason maintenance",
	}
	nodeChange(cmd, "drained", func() (map[string]any, error) {
		if strings.TrimSpace(reason) == "" {
			return nil, usageError("drain: no reason is given").WithHint("give one with --reason, for users and other administrators")
		}
		return map[string]any{"state": []string{"DRAIN"}, "reason": reason}, nil
	})
	cmd.Flags().StringVarP(&reason, "reason", "r", "", "why, as `TEXT` for users")
	cmd.RegisterFlagCompletionFunc("reason", cobra.NoFileCompletions)
	return cmd
}

func resumeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume NODE...",
		Short: "Let nodes start jobs again",
		Long: `resume lets nodes that are drained or down start jobs again. Administrators and operators may
do so.`,
		Example: "  schedctl resume node7",
	}
	return nodeChange(cmd, "resumed", func() (map[string]any, error) { return map[string]any{"state": []string{"RESUME"}}, nil })
}

// nodeChange makes cmd change the nodes that its arguments name. The function
// fields returns the new values. The participle done is for the result.
func nodeChange(cmd *cobra.Command, done string, fields func() (map[string]any, error)) *cobra.Command {
	var o options
	o.connectFlags(cmd)
	cmd.ValidArgsFunction = o.completeNodes
	cmd.Args = func(_ *cobra.Command, words []string) error {
		if len(words) == 0 {
			return usageError("no node is named")
		}
		return nil
	}
	return setRun(cmd, func(cmd *cobra.Command, words []string) error {
		names, err := expandHosts(cmd.Name(), words)
		if err != nil {
			return err
		}
		values, err := fields()
		if err != nil {
			return err
		}
		c, err := o.dial(cmd.Context())
		if err != nil {
			return err
		}
		var joined error
		changed := 0
		for _, name := range names {
			err := c.UpdateNode(cmd.Context(), name, values)
			if err == nil {
				changed++
				continue
			}
			joined = joinErrors(joined, wrapError("node "+name, err))
			if isGeneral(cmd.Context(), err) {
				break
			}
		}
		word := "nodes"
		if changed == 1 {
			word = "node"
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d %s %s\n", changed, word, done)
		return joinErrors(err, joined)
	})
}

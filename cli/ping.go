package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

func pingCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "ping",
		Short: "Check whether the controllers answer",
		Long: `ping prints a line for each controller: its name, primary or backup, UP or DOWN, its
response time, and where this time was measured: at the gateway or, without one, on this
machine. The exit status is 0 if at least one controller is up.`,
		Args: atMost(0, ""),
	}
	o.connectFlags(cmd)
	return setRun(cmd, func(cmd *cobra.Command, _ []string) error {
		c, err := o.dial(cmd.Context())
		if err != nil {
			return err
		}
		pings, err := c.Ping(cmd.Context())
		if err != nil && c.cluster != nil {
			if cause := c.cluster.Client.Verify(cmd.Context(), c.cluster.Credential); cause != nil {
				return cause
			}
		}
		if err != nil {
			return err
		}
		from := "this machine"
		if c.cluster == nil {
			from = c.Server()
		}
		up := false
		for _, p := range pings {
			text := "DOWN"
			if p.IsUp() {
				text = fmt.Sprintf("UP %d us", p.Latency.Int())
			}
			up = up || p.IsUp()
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s %s from %s\n", printable.Text(p.Hostname), printable.Text(p.Mode), text, from); err != nil {
				return err
			}
		}
		if !up {
			return errs.New(errs.Unavailable, "no controller answers %s", from)
		}
		return nil
	})
}

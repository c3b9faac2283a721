package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func pingCommand(dial connector) *cobra.Command {
	return &cobra.Command{
		Use:   "ping",
		Short: "Check whether the controllers answer",
		Long: `ping prints a line for each controller: its name, primary or backup, UP or DOWN, and
its response time. The exit status is 0 if at least one controller is up.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := dial()
			if err != nil {
				return err
			}
			pings, err := c.client.Ping(cmd.Context(), c.credential)
			if err != nil {
				return err
			}
			up := false
			for _, p := range pings {
				if p.Responding {
					fmt.Fprintf(cmd.OutOrStdout(), "%s %s UP %d us\n", p.Hostname, p.Mode, p.Latency)
				} else {
					fmt.Fprintf(cmd.OutOrStdout(), "%s %s DOWN\n", p.Hostname, p.Mode)
				}
				up = up || p.Responding
			}
			if !up {
				return c.client.Verify(cmd.Context(), c.credential) // returns the reason
			}
			return nil
		},
	}
}

package main

import (
	"github.com/spf13/cobra"

	"schedrestd/demo"
)

func demoCommand() *cobra.Command {
	var opt demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole system on this machine until Ctrl-C",
		Long: `demo starts an accounting daemon, a controller and the gateway on this machine, from
a configuration of its own in a temporary directory, and prints how to use them.
Ctrl-C ends all of it, running jobs too, and leaves nothing behind.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt.Out, opt.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return demo.Run(opt)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opt.Listen, "listen", demo.DefaultListen, "where the gateway listens, `HOST:PORT`; port 0 picks a free one")
	flags.BoolVar(&opt.Once, "once", false, "run one job from submission to its output, then stop")
	flags.StringVar(&opt.Stage, "stage", "", "directory of the demo that this process is a part of")
	flags.MarkHidden("stage")
	return cmd
}

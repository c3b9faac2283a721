package main

import (
	"github.com/spf13/cobra"

	"schedrestd/bundled/demo"
)

func demoCommand() *cobra.Command {
	var opt demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the whole system on this machine until Ctrl-C",
		Long: `demo starts an accounting daemon, a controller and the gateway on this machine, from
a temporary configuration. It runs a job, shows its output, and prints commands to try.
Ctrl-C stops all of it, including running jobs, and removes all files.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt.Out, opt.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return demo.Run(opt)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opt.Listen, "listen", demo.DefaultListen, "address of the gateway, `HOST:PORT`; port 0 selects a free port")
	flags.BoolVar(&opt.Once, "once", false, "stop when the job has ended")
	flags.BoolVar(&opt.TLS, "tls", false, "use TLS between the gateway and the daemons")
	flags.StringVar(&opt.Stage, "stage", "", "directory of the demo to which this process belongs")
	flags.MarkHidden("stage")
	return cmd
}

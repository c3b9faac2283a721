package plan

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"schedrestd/internal/feature"
)

const usage = `Usage: schedrestd [options] LISTEN...

Serve the scheduler over REST from separate, confined processes. LISTEN is:
  [https://][host]:port   TCP; no host means all addresses; IPv6 goes in [ ]
  unix:/path/to/socket    a UNIX socket
  compute.read=LISTEN     one of these, at which clients can only read
Without LISTEN it uses SCHEDRESTD_LISTEN, sockets from the service manager, or
standard input and output as its only connection (inetd).

LIST is comma-separated names, or the word list to see what is available.

Options [and their defaults]:
`

const examples = `
Examples:
  schedrestd -f /etc/slurm/slurm.conf -u schedrestd 127.0.0.1:6820
  schedrestd -u schedrestd https://:6820 https://[::1]:6821
  schedrestd -a rest_auth/local unix:/run/schedrestd/socket
  printf 'GET http://localhost/sched/%s/ping HTTP/1.1\n\n' | schedrestd

Tokens are accepted when SCHED_JWT=daemon is set. Environment and signals:
man 8 schedrestd. Shell completion: schedrestd completion bash|zsh|fish
`

// setHelp sets the text that -h prints and the line that -V prints. The text
// fits into 80 columns.
func setHelp(cmd *cobra.Command) {
	defaultHelp := cmd.HelpFunc()
	cmd.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c != cmd {
			defaultHelp(c, args)
			return
		}
		out := c.OutOrStdout()
		_, _ = io.WriteString(out, usage+c.Flags().FlagUsages())
		fmt.Fprintf(out, examples, latest())
	})
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
}

// latest returns the newest API version that is not a preview, as it appears in
// paths.
func latest() string { return feature.LatestOf(feature.Parsers).Name() }

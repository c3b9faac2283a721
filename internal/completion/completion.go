// Package completion makes cobra's completions for bash work on machines that
// lack the package bash-completion.
package completion

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"schedrestd/internal/errs"
)

// Cobra's script for bash calls this function of the package bash-completion,
// which not every machine has.
const packageCall = "    _get_comp_words_by_ref \"$@\" cur prev words cword\n"

// ownWords does the same as packageCall without the package. Bash splits the
// line at = and : as well as at blanks. Parts without a blank between them
// belong to one word.
const ownWords = `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local line=$COMP_LINE i blanks
    words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        blanks=${line%%[![:space:]]*}
        line=${line#"$blanks"}
        line=${line#"${COMP_WORDS[i]}"}
        if [[ $i -eq 0 || -n $blanks ]]; then
            words+=("${COMP_WORDS[i]}")
        else
            words[${#words[@]}-1]+=${COMP_WORDS[i]}
        fi
    done
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=
    if [[ $cword -gt 0 ]]; then
        prev=${words[cword-1]}
    fi
`

// PlainUsages removes the quotes with which usages of options name the value, as
// in "read `FILE`". Cobra would show them in completions. Call it only if
// IsRequest returns true, because the help needs the quotes.
func PlainUsages(root *cobra.Command) {
	plain := func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) }
	root.Flags().VisitAll(plain)
	root.PersistentFlags().VisitAll(plain)
	for _, cmd := range root.Commands() {
		PlainUsages(cmd)
	}
}

// IsRequest reports whether args, the arguments of the program, are a shell's
// request for completions.
func IsRequest(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// WithoutPackage makes the script that "completion bash" prints work without the
// package bash-completion. The args argument holds the command line of root. If
// root has no other commands, it gets the command "completion" only if args
// call it.
func WithoutPackage(root *cobra.Command, args []string) {
	root.InitDefaultCompletionCmd(args...)
	bash, _, err := root.Find([]string{"completion", "bash"})
	if err != nil || bash.Name() != "bash" {
		return
	}
	bash.Long = "Generate the autocompletion script for the bash shell.\n\nTo load completions in your current shell session:\n\n\tsource <(" + root.Name() + " completion bash)"
	bash.RunE = func(cmd *cobra.Command, _ []string) error {
		var script bytes.Buffer
		noDescriptions, _ := cmd.Flags().GetBool("no-descriptions")
		if err := root.GenBashCompletionV2(&script, !noDescriptions); err != nil {
			return err
		}
		if strings.Count(script.String(), packageCall) != 1 {
			return errs.New(errs.Internal, "completion: unexpected script of cobra")
		}
		_, err := strings.NewReplacer(packageCall, ownWords).WriteString(cmd.OutOrStdout(), script.String())
		return err
	}
}

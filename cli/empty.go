package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// RefuseEmptyValues makes root and its commands refuse an option or argument
// with an empty value. Such a value is usually a shell variable that is not
// set. If it counted as a missing option, an empty --user of cancel beside another
// option would cancel the jobs of all users.
func RefuseEmptyValues(root *cobra.Command) {
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if name := cmd.Name(); name == cobra.ShellCompRequestCmd || name == cobra.ShellCompNoDescRequestCmd {
			return nil // the last argument, which the shell wants to complete, may be empty
		}
		if slices.Contains(args, "") {
			return WithStatus(usageError("%s: an argument is empty", cmd.Name()).WithHint("leave it out, or give it a value"))
		}
		var err error
		cmd.Flags().Visit(func(f *pflag.Flag) {
			if err == nil && hasEmptyValue(f.Value) {
				err = WithStatus(usageError("%s: --%s has an empty value", cmd.Name(), f.Name).
					WithHint("leave the option out, or give it a value"))
			}
		})
		return err
	}
}

// hasEmptyValue reports whether v is empty or a list with an empty element.
func hasEmptyValue(v pflag.Value) bool {
	list, ok := v.(pflag.SliceValue)
	if !ok {
		return strings.TrimSpace(v.String()) == ""
	}
	elements := list.GetSlice()
	return len(elements) == 0 || slices.ContainsFunc(elements, func(e string) bool { return strings.TrimSpace(e) == "" })
}

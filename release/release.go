// Package release says which release and which build of this project a program is.
package release

import "strings"

// Version is the release, as major.minor.micro.
const Version = "0.1.0"

// Set by the linker: the commit that was built, with "-dirty" when files differed from
// it, and its date. They are empty when the source was no git clone.
var commit, date string

// Build returns the release with the commit and its date, as -V prints it.
func Build() string { return build(commit, date) }

func build(commit, date string) string {
	if commit == "" {
		return Version
	}
	return Version + " (" + strings.TrimSuffix("commit "+commit+", "+date, ", ") + ")"
}

// Asked reports whether the arguments of a program only ask for its version. It
// is for programs without other options.
func Asked(args []string) bool {
	return len(args) == 2 && (args[1] == "-V" || args[1] == "--version")
}

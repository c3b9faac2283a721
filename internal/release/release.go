// Package release identifies the release and the build of a program.
package release

import "strings"

// Version is the release, as major.minor.micro.
const Version = "0.3.0"

// The linker sets these variables. The value of commit is the commit that was
// built, followed by "-dirty" if files differed from it. The value of date is
// the date of that commit. Both are "" if the source was not a git clone.
var commit, date string

// Build returns the release, the commit and the commit's date, as -V prints
// them.
func Build() string { return build(commit, date) }

func build(commit, date string) string {
	if commit == "" {
		return Version
	}
	return Version + " (" + strings.TrimSuffix("commit "+commit+", "+date, ", ") + ")"
}

// VersionRequested reports whether args request the version and nothing else.
// It is for programs without other options.
func VersionRequested(args []string) bool {
	return len(args) == 2 && (args[1] == "-V" || args[1] == "--version")
}

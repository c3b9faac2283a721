package plan

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"schedrestd/internal/feature"
)

// addCompletion adds to cmd the command "completion SHELL", which prints a
// script for the shell. It also adds the completions that this script requests.
// They come only from built-in lists, the names of files, /etc/passwd and
// /etc/group, so no configuration is read to complete a word.
func addCompletion(cmd *cobra.Command) {
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.ValidArgsFunction = completeListen
	for flag, values := range map[string]func() []feature.Entry{
		"auth":        authEntries,
		"openapi":     contentEntries,
		"data-parser": parserEntries,
	} {
		complete := func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			return completeList(values(), toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		mustRegister(cmd.RegisterFlagCompletionFunc(flag, complete))
	}
	for flag, database := range map[string]string{"user": "/etc/passwd", "group": "/etc/group", "socket-group": "/etc/group"} {
		complete := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return firstFields(database), cobra.ShellCompDirectiveNoFileComp
		}
		mustRegister(cmd.RegisterFlagCompletionFunc(flag, complete))
	}
	for _, flag := range []string{"threads", "max-connections", "max-per-source", "max-identities", "max-body"} {
		mustRegister(cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions))
	}
	modes := cobra.FixedCompletions([]string{"0600", "0660", "0666"}, cobra.ShellCompDirectiveNoFileComp)
	mustRegister(cmd.RegisterFlagCompletionFunc("socket-mode", modes))
}

// mustRegister panics on an error. The only causes of an error are a flag that does not
// exist and a flag that already has completions.
func mustRegister(err error) {
	if err != nil {
		panic(err)
	}
}

func authEntries() (list []feature.Entry) {
	for _, e := range feature.Auths {
		list = append(list, e.Entry)
	}
	return list
}

func contentEntries() (list []feature.Entry) {
	for _, e := range feature.Contents {
		list = append(list, e.Entry)
	}
	return list
}

func parserEntries() []feature.Entry {
	list := []feature.Entry{{Name: "latest", About: latest()}}
	for _, p := range feature.Parsers {
		list = append(list, feature.Entry{Name: p.Name(), About: "flags " + p.Flags.String()})
	}
	return list
}

// completeList completes the last word of a comma-separated list. The possible
// words are the names in entries or, after a version and a plus, the flags of
// that version. Each completion contains the whole list, not only the last
// word.
func completeList(entries []feature.Entry, toComplete string) []string {
	cut := strings.LastIndexByte(toComplete, ',') + 1
	before, word := toComplete[:cut], toComplete[cut:]
	if version, _, hasFlags := strings.Cut(word, "+"); hasFlags {
		parsers, err := feature.ParseParsers("", version)
		if err != nil {
			return nil
		}
		before += word[:strings.LastIndexByte(word, '+')]
		entries = nil
		for _, e := range feature.AllFlags {
			if supportsFlag(parsers[0].Version, e.Flag) && !strings.Contains(before+"+", e.Name+"+") {
				entries = append(entries, e.Entry)
			}
		}
	} else if before == "" {
		entries = append(entries, feature.Entry{Name: listWord, About: "list what is available"})
	}
	var completions []string
	for _, e := range entries {
		if strings.HasPrefix(before+e.Name, toComplete) && !strings.Contains(","+before, ","+e.Name+",") {
			completions = append(completions, before+e.Name+"\t"+e.About)
		}
	}
	return completions
}

func supportsFlag(version uint8, flag feature.Flags) bool {
	for _, p := range feature.Parsers {
		if p.Version == version {
			return p.Flags.Has(flag)
		}
	}
	return false
}

// completeListen completes the LISTEN argument. It offers the beginnings of
// addresses or, after unix:, paths.
func completeListen(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	path, ok := strings.CutPrefix(toComplete, "unix:")
	if !ok {
		var completions []string
		for _, s := range []string{
			"unix:/\ta local socket",
			"https://\tTCP with TLS",
			"127.0.0.1:6820\tTCP, this machine only",
			":6820\tTCP, all addresses",
		} {
			if strings.HasPrefix(s, toComplete) {
				completions = append(completions, s)
			}
		}
		return completions, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	dir, base := filepath.Split(path)
	if dir == "" {
		return []string{"unix:/"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	files, _ := os.ReadDir(dir)
	var completions []string
	for _, f := range files {
		switch {
		case !strings.HasPrefix(f.Name(), base):
		case f.IsDir():
			completions = append(completions, "unix:"+dir+f.Name()+"/")
		case f.Type()&os.ModeSocket != 0:
			completions = append(completions, "unix:"+dir+f.Name())
		}
	}
	return completions, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// firstFields returns the first field of each line in a file such as
// /etc/passwd.
func firstFields(path string) []string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var names []string
	for line := range strings.Lines(string(data)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, name)
		}
	}
	return names
}

package plan

import (
	"fmt"
	"io"
	"strings"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
)

// listWord is the value with which an option requests a list of names.
const listWord = "list"

// wantsList reports whether the value of -a, -d or -s requests a list.
func (o *options) wantsList() bool {
	return o.Auth.Value == listWord || o.Content.Value == listWord || isParserList(o.Parsers.Value)
}

// isParserList reports whether v is the word "list", alone or with flags.
func isParserList(v string) bool { return v == listWord || strings.HasPrefix(v, listWord+"+") }

// printList prints the plugins of each requested kind. Each line has the name
// of a plugin and a description. If the configuration can be read and makes the
// plugin unavailable, the description also states the reason.
func (o *options) printList(out io.Writer) error {
	var c *conf.Cluster
	if from, err := o.findConfiguration(); err == nil && from.path != devNull {
		if cluster, _, err := newPlanner(*o, from, io.Discard).readConfiguration(); err == nil {
			c = cluster
		}
	}
	var page entries
	if o.Auth.Value == listWord {
		for _, e := range feature.Auths {
			var reason error
			if c != nil {
				reason = o.checkAuth(e.Auth, c)
			}
			page.add(e.Entry, reason)
		}
	}
	if isParserList(o.Parsers.Value) {
		if err := o.listParsers(&page); err != nil {
			return err
		}
	}
	if o.Content.Value == listWord {
		for _, e := range feature.Contents {
			var reason error
			if c != nil && c.Accounting == nil && e.Content == feature.Accounting {
				reason = errs.New(errs.Invalid, noAccounting)
			}
			page.add(e.Entry, reason)
		}
	}
	page.print(out)
	return nil
}

// entries is a list in two columns.
type entries []feature.Entry

func (l *entries) add(e feature.Entry, reason error) {
	if reason != nil {
		e.About += fmt.Sprintf(" (unavailable: %v)", reason)
	}
	*l = append(*l, e)
}

func (l entries) print(out io.Writer) {
	width := 0
	for _, e := range l {
		width = max(width, len(e.Name))
	}
	for _, e := range l {
		fmt.Fprintf(out, "%-*s  %s\n", width, e.Name, e.About)
	}
}

// listParsers prints the API versions. For list+flags, it also prints the flags
// that each version supports, with explanations. For list+FLAG, it prints only
// the versions that support that flag.
func (o *options) listParsers(page *entries) error {
	_, flag, hasFlag := strings.Cut(o.Parsers.Value, "+")
	allFlags := flag == "flags"
	var required feature.Flags
	if hasFlag && !allFlags {
		for _, e := range feature.AllFlags {
			if e.Name == "+"+flag {
				required = e.Flag
			}
		}
		if required == 0 {
			return errs.New(errs.Invalid, "%s: no data parser has the flag %q", o.Parsers.Origin, "+"+flag).
				WithHint("list+flags shows the flags of each")
		}
	}
	for _, p := range feature.Parsers {
		if !p.Flags.Has(required) {
			continue
		}
		about := "paths /sched/" + p.Name() + "/…"
		switch {
		case p == feature.LatestOf(feature.Parsers):
			about += ", latest"
		case p.Preview():
			about += ", preview of Slurm " + feature.PreviewOf
		}
		if allFlags {
			about += ", " + strings.ReplaceAll(p.Flags.String(), "+", " +")[1:]
		}
		page.add(feature.Entry{Name: feature.Parser{Version: p.Version, Flags: required}.Plugin(), About: about}, nil)
	}
	for _, e := range feature.AllFlags {
		if allFlags || required == e.Flag {
			page.add(feature.Entry{Name: "  " + e.Name, About: e.About}, nil)
		}
	}
	return nil
}

package plan

import (
	"fmt"
	"io"
	"strings"

	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/feature"
)

// list is the value of an option that requests the available names.
const list = "list"

// listAsked reports whether -a, -d or -s requests a list.
func (o *options) listAsked() bool {
	return o.auth.value == list || o.content.value == list || asksParsers(o.parsers.value)
}

// asksParsers reports whether v is the word "list", with or without flags.
func asksParsers(v string) bool { return v == list || strings.HasPrefix(v, list+"+") }

// list prints the plugins of each requested kind, one per line: the plugin's
// name, followed by a description. If the configuration is readable and makes a
// plugin unavailable, the description includes the reason.
func (o *options) list(out io.Writer) error {
	var c *conf.Cluster
	if path, err := o.reader().Find(o.conf); err == nil && path != null {
		if read, _, err := o.reader().Read(path); err == nil {
			c = read
		}
	}
	var page entries
	if o.auth.value == list {
		for _, e := range feature.Auths {
			var lacks error
			if c != nil {
				lacks = o.lacks(e.Auth, c)
			}
			page.add(e.Entry, lacks)
		}
	}
	if asksParsers(o.parsers.value) {
		if err := o.listParsers(&page); err != nil {
			return err
		}
	}
	if o.content.value == list {
		for _, e := range feature.Contents {
			var lacks error
			if c != nil && c.Accounting == nil && e.Content == feature.Accounting {
				lacks = errs.New(errs.Invalid, noAccounting)
			}
			page.add(e.Entry, lacks)
		}
	}
	page.print(out)
	return nil
}

// entries is a list in two columns.
type entries []feature.Entry

func (l *entries) add(e feature.Entry, lacks error) {
	if lacks != nil {
		e.About += fmt.Sprintf(" (unavailable: %v)", lacks)
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

// listParsers prints the API versions. For list+flags, it prints and explains
// the flags that each version supports. For list+FLAG, it prints the versions
// that support the flag.
func (o *options) listParsers(page *entries) error {
	_, flag, flagged := strings.Cut(o.parsers.value, "+")
	all := flag == "flags"
	var only feature.Flags
	if flagged && !all {
		for _, e := range feature.AllFlags {
			if e.Name == "+"+flag {
				only = e.Flag
			}
		}
		if only == 0 {
			return errs.New(errs.Invalid, "%s: no data parser has the flag %q", o.parsers.from, "+"+flag).
				WithHint("list+flags shows the flags of each")
		}
	}
	for i, p := range feature.Parsers {
		if !p.Flags.Has(only) {
			continue
		}
		about := "paths /sched/" + p.Name() + "/…"
		if i == len(feature.Parsers)-1 {
			about += ", latest"
		}
		if all {
			about += ", " + strings.ReplaceAll(p.Flags.String(), "+", " +")[1:]
		}
		page.add(feature.Entry{Name: feature.Parser{Version: p.Version, Flags: only}.Plugin(), About: about}, nil)
	}
	for _, e := range feature.AllFlags {
		if all || only == e.Flag {
			page.add(feature.Entry{Name: "  " + e.Name, About: e.About}, nil)
		}
	}
	return nil
}

// newest returns the newest API version, in the form of a path.
func newest() string { return feature.Parsers[len(feature.Parsers)-1].Name() }

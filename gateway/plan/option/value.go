package option

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"schedrestd/gateway/endpoint"
	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
	"schedrestd/ipc/work"
	"schedrestd/rpc/confserver"
)

// The functions in this file return functions that parse the value of a variable
// and store it.

// ignore does nothing. It is for variables that other code reads.
func ignore(_, _ string) error { return nil }

func text(to *string) func(name, v string) error {
	return func(_, v string) error { *to = v; return nil }
}

// claim stores the name or the value of a token's claim.
func claim(to *string) func(name, v string) error {
	return func(name, v string) error {
		if len(v) > work.MaxText {
			return invalid(name, v, " is longer than %d bytes", work.MaxText)
		}
		*to = v
		return nil
	}
}

// list stores words that are separated by commas.
func list(to *[]string) func(name, v string) error {
	return func(_, v string) error { *to = splitList(v); return nil }
}

// path stores an absolute path.
func path(to *string) func(name, v string) error {
	return func(name, v string) error {
		if !filepath.IsAbs(v) {
			return invalid(name, v, " is not an absolute path")
		}
		*to = filepath.Clean(v)
		return nil
	}
}

// oneOf stores one of the allowed words.
func oneOf(to *string, allowed ...string) func(name, v string) error {
	return func(name, v string) error {
		if !slices.Contains(allowed, v) {
			return invalid(name, v, "").WithHint("allowed values: %s", strings.Join(allowed, ", "))
		}
		*to = v
		return nil
	}
}

// word stores whether the value is yes, which is one of the allowed values.
func word(to *bool, yes string, allowed ...string) func(name, v string) error {
	return func(name, v string) error {
		err := oneOf(&v, allowed...)(name, v)
		*to = v == yes
		return err
	}
}

// duration stores a time from least to most.
func duration(to *time.Duration, least, most time.Duration, example string) func(name, v string) error {
	return func(name, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < least || d > most {
			return invalid(name, v, " is not a time of %v to %v, such as %s", least, most, example)
		}
		*to = d
		return nil
	}
}

// flagValue stores a value that is parsed like that of a flag.
func flagValue(to pflag.Value) func(name, v string) error {
	return func(name, v string) error {
		if err := to.Set(v); err != nil {
			return invalid(name, v, " is %v", err)
		}
		return nil
	}
}

// unset stores a value with set, unless a flag has stored one.
func unset[T comparable](to *T, set func(name, v string) error) func(name, v string) error {
	return func(name, v string) error {
		var zero T
		if *to != zero {
			return nil
		}
		return set(name, v)
	}
}

// names stores a list of names, unless a flag has stored one.
func names(to *NameList) func(name, v string) error {
	return func(name, v string) error {
		if to.Origin == "" {
			to.Origin, to.Value = "environment: "+name, v
		}
		return nil
	}
}

// netns stores a network namespace.
func netns(to *string) func(name, v string) error {
	return func(name, v string) error {
		*to = v
		return endpoint.CheckNamespace("environment: "+name+"="+v, v)
	}
}

// SetLayout sets what a word of Slurm means for a layout.
func SetLayout(to *work.Layout, word string) {
	switch word {
	case "compact":
		*to &^= work.Pretty
	case "pretty":
		*to |= work.Pretty
	case "no_tag":
		*to |= work.NoTag
	}
}

// layout stores the layout of response bodies. As in Slurm, the value may consist
// of several words. The words compact and pretty exclude each other. Without
// either of them, YAML is pretty. Words of Slurm that are not in allowed have no
// effect.
func (o *Options) layout(to **work.Layout, allowed ...string) func(name, v string) error {
	return func(name, v string) error {
		words := splitList(strings.ToLower(v)) // as in Slurm, words may be in any case
		bad := len(words) == 0 || slices.Contains(words, "compact") && slices.Contains(words, "pretty")
		layout, isSet := work.Pretty, false
		for _, word := range words {
			switch {
			case slices.Contains(allowed, word):
				SetLayout(&layout, word)
				isSet = true
			case word == "complex", word == "no_tag":
				o.WithoutEffect = append(o.WithoutEffect, name+": "+word)
			default:
				bad = true
			}
		}
		if bad {
			return invalid(name, v, "").WithHint("allowed values: %s", strings.Join(allowed, ", "))
		}
		if isSet {
			*to = &layout
		}
		return nil
	}
}

func (o *Options) setConfServer(name, v string) (err error) {
	if o.FallbackServer, err = confserver.Parse(v); err != nil {
		return errs.New(errs.Invalid, "environment: %s: %v", name, err).WithHint("%s", errs.HintOf(err))
	}
	return nil
}

func (o *Options) setListen(name, v string) error {
	if len(o.Listen) > 0 {
		// The administrator may rely on these addresses, or on their scopes.
		o.WithoutEffect = append(o.WithoutEffect, name+": arguments name the addresses")
		return nil
	}
	list := splitList(v)
	if len(list) == 0 {
		return invalid(name, v, " names no address")
	}
	return o.listenOn(list)
}

// setStatuses sets the responses that the OpenAPI document lists for each
// operation.
func (o *Options) setStatuses(name, v string) (err error) {
	o.Setup.Statuses, err = feature.ParseStatuses("environment: "+name, v)
	return err
}

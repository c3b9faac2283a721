package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"schedrestd/api/schema"
)

// Parameters of lists of the accounting daemon.

// texts returns a parameter that is a comma-separated list of strings. Empty
// strings are ignored.
func texts[P any](name, doc string, at func(*P) *[]string, opts ...schema.Option) schema.Field[P] {
	return schema.F(name, csvList, at, doc+", separated by commas", opts...)
}

func csvList() schema.Type[[]string] {
	return asList(func(s string) ([]string, error) {
		if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			return nil, fmt.Errorf("expected names separated by commas, got %q", schema.Shorten(s))
		}
		return splitNames(s), nil
	})
}

// splitNames returns the comma-separated names of s. It omits empty names, and
// keeps blanks: the name of another record may differ only in them.
func splitNames(s string) []string {
	if strings.TrimSpace(s) == "" { // the parameter is empty
		return nil
	}
	return slices.DeleteFunc(strings.Split(s, ","), func(name string) bool { return name == "" })
}

// clusterTexts returns a parameter that is a list of cluster names. Its parser
// checks the names, because the daemon uses them in the names of database
// tables.
func clusterTexts[P any](name, doc string, at func(*P) *[]string, opts ...schema.Option) schema.Field[P] {
	names := func() schema.Type[[]string] {
		return asList(func(s string) ([]string, error) {
			list := splitNames(s)
			for _, cluster := range list {
				if !IsClusterName(cluster) {
					return nil, fmt.Errorf("expected cluster names separated by commas, got %q", schema.Shorten(cluster))
				}
			}
			return list, nil
		})
	}
	return schema.F(name, names, at, doc+", separated by commas", opts...)
}

// IsClusterName reports whether a text has only characters that are safe in the
// names of the database tables of a cluster.
func IsClusterName(name string) bool {
	return strings.Trim(name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-.") == ""
}

// words returns the comma-separated words of s. It omits empty words.
func words(s string) (list []string) {
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// numberTexts returns a parameter that is a list of numbers. Its parser checks
// that each element is a number, because a daemon may insert the elements into
// a database query unchanged.
func numberTexts[P any](name, doc string, at func(*P) *[]string, opts ...schema.Option) schema.Field[P] {
	numbers := func() schema.Type[[]string] {
		return asList(func(s string) (list []string, err error) {
			for _, part := range words(s) {
				n, err := strconv.ParseUint(part, 10, 32)
				if err != nil {
					return nil, fmt.Errorf("expected numbers separated by commas, got %q", schema.Shorten(part))
				}
				list = append(list, strconv.FormatUint(n, 10))
			}
			return list, nil
		})
	}
	return schema.F(name, numbers, at, doc+", separated by commas", opts...)
}

// hostList returns the type of a parameter with a host list, such as
// "node1,n[01-03]".
func hostList() schema.Type[string] {
	return asList(func(s string) (string, error) {
		errSyntax := fmt.Errorf("expected nodes such as node1,n[01-03], got %q", schema.Shorten(s))
		open := false
		for _, c := range s {
			switch {
			case c == '[' && open, c == ']' && !open, open && c != ']' && !strings.ContainsRune("0123456789-,", c):
				return "", errSyntax
			}
			open = c == '[' || open && c != ']'
		}
		if open || strings.Contains(s, "[]") {
			return "", errSyntax
		}
		return s, nil
	})
}

// boolText returns the type of a boolean parameter, which clients send as text.
// As in slurmrestd, a parameter without "=" is true, and one with an empty text
// is false.
func boolText() schema.Type[bool] {
	parse := parseAsText(func(s string) (bool, error) {
		switch strings.ToLower(s) {
		case "true", "yes", "1", "on", "t", "y":
			return true, nil
		case "false", "no", "0", "off", "f", "n", "":
			return false, nil
		}
		return false, fmt.Errorf("expected true or false, got %q", schema.Shorten(s))
	})
	return schema.Simple(&schema.Shape{Kind: "string"}, func(e schema.Encoder, _ *bool) { e.Null() },
		func(r *schema.Report, v *schema.Value, into *bool) bool {
			if v.Bare {
				*into = true
				return true
			}
			return parse(r, v, into)
		})
}

// flagText returns a boolean parameter that sets or clears one bit of an
// integer.
func flagText[P any, T schema.Integer](name, doc string, at func(*P) *T, bit T, opts ...schema.Option) schema.Field[P] {
	return schema.Set(name, boolText, func(p *P, on bool) error {
		if *at(p) &^= bit; on {
			*at(p) |= bit
		}
		return nil
	}, doc, opts...)
}

// decimal returns the type of a parameter that is an unsigned decimal number.
func decimal() schema.Type[uint32] {
	return asText(func(s string) (uint32, error) {
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			return 0, fmt.Errorf("expected a number, got %q", schema.Shorten(s))
		}
		return uint32(n), nil
	})
}

// ignoredParam returns a parameter that is ignored.
func ignoredParam[P any](name string, opts ...schema.Option) schema.Field[P] {
	return schema.Ignore[P](name, csvList, "Ignored: selects the columns of a table, but answers have all fields", opts...)
}

// objectName returns the type of a path segment that is the name of an object.
// The kind argument is the noun in error messages, such as "account".
func objectName(kind string) func() schema.Type[string] {
	return func() schema.Type[string] {
		return asText(func(s string) (string, error) {
			if s == "" || strings.ContainsAny(s, ",\x00") {
				return "", noSuch(kind, s)
			}
			return s, nil
		})
	}
}

// nameParams returns the parameters of an endpoint whose only parameter is the
// path segment with the name of an object.
func nameParams[P any](name, kind, doc string, at func(*P) *string) *schema.ObjectType[P] {
	return schema.Object("", func() schema.Fields[P] {
		return schema.Fields[P]{schema.F(name, objectName(kind), at, doc, schema.Required(0))}
	})
}

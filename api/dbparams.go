package api

import (
	"fmt"
	"strconv"
	"strings"

	"schedrestd/api/schema"
)

// Parameters of lists of the accounting daemon.

// texts is a parameter of several texts with commas between them. Empty ones are none.
func texts[P any](name, doc string, at func(*P) *[]string, opts ...schema.Option) schema.Field[P] {
	return schema.F(name, csv, at, doc+", with commas between them", opts...)
}

func csv() schema.Type[[]string] {
	return asText(func(s string) ([]string, error) {
		var list []string
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
		return list, nil
	})
}

// yes is a boolean as text.
func yes() schema.Type[bool] {
	return asText(func(s string) (bool, error) {
		switch strings.ToLower(s) {
		case "true", "yes", "1":
			return true, nil
		case "false", "no", "0":
			return false, nil
		}
		return false, fmt.Errorf("expected true or false, got %q", schema.Shorten(s))
	})
}

// flagText is a boolean parameter that is a bit of a set.
func flagText[P any, T schema.Integer](name, doc string, at func(*P) *T, bit T, opts ...schema.Option) schema.Field[P] {
	return schema.Take(name, yes, func(p *P, on bool) error {
		if *at(p) &^= bit; on {
			*at(p) |= bit
		}
		return nil
	}, doc, opts...)
}

// decimal is an unsigned number as text.
func decimal() schema.Type[uint32] {
	return asText(func(s string) (uint32, error) {
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			return 0, fmt.Errorf("expected a number, got %q", schema.Shorten(s))
		}
		return uint32(n), nil
	})
}

// passedOver is a parameter that makes no difference.
func passedOver[P any](name string, opts ...schema.Option) schema.Field[P] {
	return schema.Ignore[P](name, schema.String, "Which columns a table has; every field is shown in any case", opts...)
}

// someName is a part of a path that names something of a kind.
func someName(kind string) func() schema.Type[string] {
	return func() schema.Type[string] {
		return asText(func(s string) (string, error) {
			if s == "" || strings.ContainsAny(s, ",\x00") {
				return "", fmt.Errorf("there is no %s %q", kind, schema.Shorten(s))
			}
			return s, nil
		})
	}
}

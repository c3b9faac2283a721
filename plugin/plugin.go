// Package plugin names what a gateway can be told to load: ways to authenticate, content and API
// versions with their flags. Nothing is loaded here: all of it is built in, and a name switches
// it on. The words are what slurmrestd's options and documents use.
//
// It is a list of words and knows no table of the API, because the parent, which may be root,
// reads command lines with it. Package api is held against it by a test.
package plugin

import (
	"fmt"
	"slices"
	"strings"

	"schedrestd/errs"
)

// Flags are what can be said of an API version, as "+fast".
type Flags uint8

// The flags.
const (
	Fast         Flags = 1 << iota // no warnings, and no strict reading of requests
	PreferRefs                     // OpenAPI: a schema that is used once is written in place
	MinimizeRefs                   // OpenAPI: a schema that is used once keeps its name all the same
	InlineEnums                    // OpenAPI: the words of a set stand where they are used
)

// Has tells whether f has all of other.
func (f Flags) Has(other Flags) bool { return f&other == other }

// flagNames in the order of their bits.
var flagNames = []struct {
	flag        Flags
	name, about string
}{
	{Fast, "fast", "no warnings about what a request has wrong or too much; what can't be understood is passed over"},
	{PreferRefs, "prefer_refs", "OpenAPI: a schema that is referred to once is written where it is used"},
	{MinimizeRefs, "minimize_refs", "OpenAPI: a schema that is referred to once is referred to all the same"},
	{InlineEnums, "inline_enums", "OpenAPI: the words of a list stand in the list, not in a schema of their own"},
}

// String is f as it is written after a version, "+fast+minimize_refs".
func (f Flags) String() string {
	var b strings.Builder
	for _, n := range flagNames {
		if f.Has(n.flag) {
			b.WriteString("+" + n.name)
		}
	}
	return b.String()
}

// Parser is an API version, v0.0.Version, with flags: those it knows in Parsers, those that were
// asked for elsewhere.
type Parser struct {
	Version uint8
	Flags   Flags
}

// Name is the version as it stands in a path, "v0.0.42".
func (p Parser) Name() string { return fmt.Sprintf("v0.0.%d", p.Version) }

// Parsers is every API version there is with the flags it knows, oldest first.
var Parsers = []Parser{
	{40, Fast},
	{41, Fast | PreferRefs},
	{42, Fast | MinimizeRefs | InlineEnums},
	{43, Fast | MinimizeRefs},
}

// Auth is a set of ways to authenticate.
type Auth uint8

// The ways.
const (
	Local Auth = 1 << iota // rest_auth/local
	JWT                    // rest_auth/jwt
)

// Content is a set of content plugins.
type Content uint8

// The content plugins.
const (
	Controller Content = 1 << iota // openapi/schedctld
	Accounting                     // openapi/scheddb
)

// Has tells whether a has all of other.
func (a Auth) Has(other Auth) bool { return a&other == other }

// Has tells whether c has all of other.
func (c Content) Has(other Content) bool { return c&other == other }

// ParseParsers reads the value of -d: versions with commas between them, each with "data_parser/"
// before it or not, and with flags after it or not; "latest" is the newest. The result is in
// the order of Parsers. from says where the value stood, for errors.
func ParseParsers(from, value string) ([]Parser, error) {
	var list []Parser
	for _, word := range words(value) {
		name, flags, _ := strings.Cut(strings.TrimPrefix(word, "data_parser/"), "+")
		known, ok := parser(name)
		if !ok {
			return nil, errs.New(errs.Invalid, "%s: there is no data parser %q", from, name).
				WithHint("allowed are latest, %s", strings.Join(parserNames(), ", "))
		}
		asked := Parser{Version: known.Version}
		for flag := range strings.SplitSeq(flags, "+") {
			if flags == "" {
				break
			}
			f, err := flagOf(known, flag)
			if err != nil {
				return nil, errs.Wrap(err, errs.Invalid, "%s", from)
			}
			asked.Flags |= f
		}
		if slices.ContainsFunc(list, func(p Parser) bool { return p.Version == asked.Version }) {
			return nil, errs.New(errs.Invalid, "%s: %s is named twice", from, asked.Name())
		}
		list = append(list, asked)
	}
	if len(list) == 0 {
		return nil, errs.New(errs.Invalid, "%s names no data parser", from).WithHint("allowed are latest, %s", strings.Join(parserNames(), ", "))
	}
	slices.SortFunc(list, func(a, b Parser) int { return int(a.Version) - int(b.Version) })
	return list, nil
}

// AllParsers is every version without flags: the default of -d.
func AllParsers() []Parser {
	list := slices.Clone(Parsers)
	for i := range list {
		list[i].Flags = 0
	}
	return list
}

func parser(name string) (Parser, bool) {
	if name == "latest" {
		return Parsers[len(Parsers)-1], true
	}
	for _, p := range Parsers {
		if p.Name() == name {
			return p, true
		}
	}
	return Parser{}, false
}

func parserNames() []string {
	var names []string
	for _, p := range Parsers {
		names = append(names, p.Name())
	}
	return names
}

func flagOf(p Parser, name string) (Flags, error) {
	for _, n := range flagNames {
		if n.name == name && p.Flags.Has(n.flag) {
			return n.flag, nil
		}
	}
	return 0, errs.New(errs.Invalid, "%s has no flag %q", p.Name(), name).WithHint("it has %s", p.Flags)
}

// ParseAuth reads the value of -a.
func ParseAuth(from, value string) (Auth, error) {
	return set(from, value, "rest_auth/", map[string]Auth{"local": Local, "jwt": JWT})
}

// ParseContent reads the value of -s. Slurm's own names of the two are taken too.
func ParseContent(from, value string) (Content, error) {
	return set(from, value, "openapi/", map[string]Content{
		"schedctld": Controller, "scheddb": Accounting, "slurmctld": Controller, "slurmdbd": Accounting})
}

// set reads words with commas between them.
func set[T ~uint8](from, value, prefix string, known map[string]T) (all T, err error) {
	for _, word := range words(value) {
		one, ok := known[strings.TrimPrefix(word, prefix)]
		if !ok {
			return 0, errs.New(errs.Invalid, "%s: there is no plugin %q", from, word).
				WithHint("allowed are %s", strings.Join(allowed(prefix, known), ", "))
		}
		all |= one
	}
	if all == 0 {
		return 0, errs.New(errs.Invalid, "%s names no plugin", from).WithHint("allowed are %s", strings.Join(allowed(prefix, known), ", "))
	}
	return all, nil
}

func allowed[T ~uint8](prefix string, known map[string]T) []string {
	var names []string
	for name := range known {
		if !strings.HasPrefix(name, "slurm") {
			names = append(names, prefix+name)
		}
	}
	slices.Sort(names)
	return names
}

func words(value string) []string {
	var list []string
	for w := range strings.SplitSeq(value, ",") {
		if w = strings.TrimSpace(w); w != "" {
			list = append(list, w)
		}
	}
	return list
}

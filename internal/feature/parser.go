package feature

import (
	"fmt"
	"slices"
	"strings"

	"schedrestd/internal/errs"
)

// Flags are the options of an API version, such as "+fast".
type Flags uint8

const (
	Fast         Flags = 1 << iota // no warnings, and lenient parsing of requests
	PreferRefs                     // OpenAPI: all schemas have names, as always from v0.0.42 on
	MinimizeRefs                   // OpenAPI: only the schemas of bodies that several operations share have names
	InlineEnums                    // OpenAPI: inline enumerations
)

// Has reports whether the set f contains all flags of the set other.
func (f Flags) Has(other Flags) bool { return f&other == other }

// FlagEntry is a flag with its name.
type FlagEntry struct {
	Flag Flags
	Entry
}

// AllFlags lists every flag, in the order of the bits.
var AllFlags = []FlagEntry{
	{Fast, Entry{"+fast", "read requests leniently, without warnings"}},
	{PreferRefs, Entry{"+prefer_refs", "OpenAPI: refer to all schemas by name; the default from v0.0.42 on"}},
	{MinimizeRefs, Entry{"+minimize_refs", "OpenAPI: refer by name only to bodies that several operations share"}},
	{InlineEnums, Entry{"+inline_enums", "OpenAPI: inline lists of enumerated values"}},
}

// String returns the flags as they are written after a version, such as
// "+fast+minimize_refs".
func (f Flags) String() string { return strings.Join(f.names(), "") }

func (f Flags) names() []string {
	var list []string
	for _, e := range AllFlags {
		if f.Has(e.Flag) {
			list = append(list, e.Name)
		}
	}
	return list
}

// Parser is the API version v0.0.Version with flags. In the list Parsers, these
// are the flags that the version supports. In a result of ParseParsers, they
// are the flags that the administrator chose.
type Parser struct {
	Version uint8
	Flags   Flags
}

// Preview reports whether no released Slurm has the version yet. So it may still
// change.
func (p Parser) Preview() bool { return p.Version > latest }

// Name returns the version as it appears in paths, such as "v0.0.42".
func (p Parser) Name() string { return fmt.Sprintf("v0.0.%d", p.Version) }

// Plugin returns the version and its flags as the value of the option -d, such
// as "data_parser/v0.0.42+fast".
func (p Parser) Plugin() string { return parserPrefix + p.Name() + p.Flags.String() }

const parserPrefix = "data_parser/"

// Parsers lists every API version, oldest first, with the flags that it
// supports. Slurm's versions after v0.0.41 accept +prefer_refs and ignore it.
var Parsers = []Parser{
	{40, Fast},
	{41, Fast | PreferRefs},
	{42, Fast | PreferRefs | MinimizeRefs | InlineEnums},
	{43, Fast | PreferRefs | MinimizeRefs},
	{44, Fast | PreferRefs | MinimizeRefs},
	{45, Fast | PreferRefs | MinimizeRefs},
	{46, Fast | PreferRefs | MinimizeRefs},
}

// latest is the newest version of a released Slurm. The versions after it are
// previews of the release PreviewOf.
const (
	latest    = 45
	PreviewOf = "26.11"
)

// LatestOf returns the newest version in list that is not a preview. If list
// has only previews, it returns the newest of these. The list must not be empty.
func LatestOf(list []Parser) Parser {
	for _, p := range slices.Backward(list) {
		if !p.Preview() {
			return p
		}
	}
	return list[len(list)-1]
}

// AllParsers returns every version without flags. This is the default of -d.
func AllParsers() []Parser {
	list := slices.Clone(Parsers)
	for i := range list {
		list[i].Flags = 0
	}
	return list
}

// ParseParsers parses the value of -d, a comma-separated list of versions. Each
// version may have the prefix "data_parser/" and flags. The word "latest" means
// the newest version that is not a preview. The result is in the order of
// Parsers. Error messages name origin as the source of the value.
func ParseParsers(origin, value string) ([]Parser, error) {
	var list []Parser
	for _, word := range split(value) {
		p, err := parseParser(origin, word)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list, func(q Parser) bool { return q.Version == p.Version })
		switch {
		case i < 0:
			list = append(list, p)
		case list[i] != p:
			return nil, errs.New(errs.Invalid, "%s: %s is named twice, with different flags", origin, p.Name())
		}
	}
	if len(list) == 0 {
		return nil, errs.New(errs.Invalid, "%s names no data parser", origin).WithHint("%s", parserHint())
	}
	slices.SortFunc(list, func(a, b Parser) int { return int(a.Version) - int(b.Version) })
	return list, nil
}

func parseParser(origin, word string) (Parser, error) {
	name, flags, hasFlags := strings.Cut(strings.TrimPrefix(word, parserPrefix), "+")
	supported, ok := parserOf(name)
	if !ok {
		return Parser{}, unknownError(origin, "data parser", name).WithHint("%s", parserHint())
	}
	p := Parser{Version: supported.Version}
	if !hasFlags {
		return p, nil
	}
	for flag := range strings.SplitSeq(flags, "+") {
		f := flagOf("+" + flag)
		if f == 0 || !supported.Flags.Has(f) {
			return p, errs.New(errs.Invalid, "%s: %s has no flag %q", origin, p.Name(), "+"+flag).
				WithHint("it has %s", strings.Join(supported.Flags.names(), ", "))
		}
		p.Flags |= f
	}
	return p, nil
}

// Latest is the word that stands for the newest API version that is not a
// preview.
const Latest = "latest"

func parserOf(name string) (Parser, bool) {
	if name == Latest {
		return LatestOf(Parsers), true
	}
	for _, p := range Parsers {
		if p.Name() == name {
			return p, true
		}
	}
	return Parser{}, false
}

// flagOf returns the flag with the given name, such as "+fast", or 0. Like
// Slurm, it ignores case.
func flagOf(name string) Flags {
	for _, e := range AllFlags {
		if strings.EqualFold(e.Name, name) {
			return e.Flag
		}
	}
	return 0
}

func parserHint() string {
	names := []string{"allowed values: latest"}
	for _, p := range Parsers {
		names = append(names, p.Name())
	}
	return strings.Join(names, ", ")
}

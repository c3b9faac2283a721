package schema

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// ReadYAML reads one YAML document. It is the counterpart of ReadJSON for a format that was made for
// people: what gives YAML its traps is refused or left text, so that nothing is taken for
// something that its writer did not mean.
//
// A plain scalar is null, true, false or a decimal number as the core schema of YAML 1.2 has
// them; else it is text: also yes, no, on and off, dates, 12:30, and numbers in other bases
// or with leading zeros, 0xff and 007, which in a job are masks and names more often than
// counts. (!!int says that such a thing is meant as a number.) The tags of JSON's types are
// taken, others refused. Aliases are copies of what they name, within limits; merge keys ("<<"),
// keys that are not scalars, and a second document are refused.
//
// The parser builds its tree before anything can be limited there, at up to 500 bytes for two of
// text, and looks through all directives for each. So marks, of which each value but the first needs one, and
// directives are counted before it sees the text. Errors are *SyntaxError.
func ReadYAML(text string, lim Limits) (v *Value, err error) {
	text = strings.TrimPrefix(text, "\uFEFF")
	if err := scanYAML(text, lim); err != nil {
		return nil, err
	}
	tree, err := parseYAML(acceptYAML12(text))
	if err != nil {
		return nil, err
	}
	r := yamlReader{lim: lim}
	doc, err := r.value(tree, 0)
	if err != nil {
		return nil, err
	}
	return &doc, nil
}

const (
	maxDirectives = 8
	maxAliased    = 10_000 // values that are copies: a kilobyte of text must not become a million of them
)

// scanYAML refuses what would cost the parser too much, or mislead it.
func scanYAML(text string, lim Limits) error {
	marks, directives := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ',', '[', '{', ':':
			marks++
		case '-', '?':
			if i+1 == len(text) || strings.IndexByte(" \t\r\n", text[i+1]) >= 0 {
				marks++
			}
		case '%':
			if i == 0 || text[i-1] == '\n' || text[i-1] == '\r' {
				directives++
			}
		}
		if marks > lim.Values/2 || directives > maxDirectives {
			return at(text, i, "too many values", true)
		}
	}
	if !utf8.ValidString(text) {
		return at(text, invalidUTF8(text), "not UTF-8", false)
	}
	return nil
}

func invalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return i
		}
	}
	return len(s)
}

// at makes the error of a problem at a byte of the text.
func at(text string, i int, problem string, tooLarge bool) *SyntaxError {
	before := text[:i]
	lineStart := strings.LastIndexByte(before, '\n') + 1
	return &SyntaxError{
		Line:   strings.Count(before, "\n") + 1,
		Column: utf8.RuneCountInString(before[lineStart:]) + 1, Problem: problem, TooLarge: tooLarge}
}

// parseYAML makes the tree of the only document in text.
func parseYAML(text string) (tree *yaml.Node, err error) {
	from := &slowly{text: text}
	defer func() {
		if p := recover(); p != nil { // a fault in the parser is no reason to fall over
			tree, err = nil, from.fail(fmt.Errorf("the parser gave up"))
		}
	}()
	d := yaml.NewDecoder(from)
	var doc, more yaml.Node
	switch err := d.Decode(&doc); {
	case err == io.EOF:
		return nil, at(text, len(text), "a value is missing", false)
	case err != nil:
		return nil, from.fail(err)
	case len(doc.Content) != 1:
		return nil, at(text, len(text), "a value is missing", false)
	}
	switch err := d.Decode(&more); {
	case err == nil:
		return nil, &SyntaxError{Line: more.Line, Column: more.Column, Problem: "a second document follows"}
	case err != io.EOF:
		return nil, from.fail(err)
	}
	return doc.Content[0], nil
}

// slowly gives a text to the parser in small pieces. How much was taken when it failed tells where
// it was: it names a line at most, and not always the right one.
type slowly struct {
	text string
	at   int
}

// Read gives the next few bytes.
func (s *slowly) Read(p []byte) (int, error) {
	if s.at == len(s.text) {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 4)], s.text[s.at:])
	s.at += n
	return n, nil
}

// fail makes the error of what the parser says, in its words without its name.
func (s *slowly) fail(err error) *SyntaxError {
	problem := strings.TrimPrefix(err.Error(), "yaml: ")
	where := at(s.text, s.at, "", false)
	if rest, ok := strings.CutPrefix(problem, "line "); ok {
		if number, said, ok := strings.Cut(rest, ": "); ok {
			problem = said
			if line, err := strconv.Atoi(number); err == nil && line < where.Line {
				where.Line, where.Column = line, lineLength(s.text, line)+1
			}
		}
	}
	where.Problem = problem
	return where
}

// lineLength is how many characters the line has.
func lineLength(text string, line int) int {
	for range line - 1 {
		_, text, _ = strings.Cut(text, "\n")
	}
	first, _, _ := strings.Cut(text, "\n")
	return utf8.RuneCountInString(first)
}

// yamlReader makes Values of a tree.
type yamlReader struct {
	lim     Limits
	n       int // values so far
	aliased int // of these, copies
	copying int // how many aliases we are in
}

func (r *yamlReader) value(node *yaml.Node, depth int) (v Value, err error) {
	v.Line, v.Column = int32(node.Line), int32(node.Column)
	if r.n++; r.n > r.lim.Values {
		return v, refuseNode(node, "too many values", true)
	}
	if depth > r.lim.Depth {
		return v, refuseNode(node, "nested too deeply", false)
	}
	if r.copying > 0 {
		if r.aliased++; r.aliased > maxAliased {
			return v, refuseNode(node, "too many values by aliases", true)
		}
	}
	switch node.Kind {
	case yaml.AliasNode:
		return r.alias(node, depth)
	case yaml.SequenceNode:
		v.Kind = Array
		if err := kindTag(node, "!!seq"); err != nil {
			return v, err
		}
		v.Items, err = r.elements(node.Content, depth)
	case yaml.MappingNode:
		v.Kind = Map
		if err := kindTag(node, "!!map"); err != nil {
			return v, err
		}
		v.Items, err = r.members(node.Content, depth)
	case yaml.ScalarNode:
		err = r.scalar(node, &v)
	default:
		err = refuseNode(node, "not a value", false)
	}
	return v, err
}

// alias is a copy of what the alias names, at the alias's place. One that names what it stands in
// ends at the depth limit.
func (r *yamlReader) alias(node *yaml.Node, depth int) (Value, error) {
	r.copying++
	v, err := r.value(node.Alias, depth+1)
	r.copying--
	v.Line, v.Column = int32(node.Line), int32(node.Column)
	return v, err
}

func (r *yamlReader) elements(nodes []*yaml.Node, depth int) ([]Value, error) {
	var items []Value
	for _, n := range nodes {
		v, err := r.value(n, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
	}
	return items, nil
}

func (r *yamlReader) members(nodes []*yaml.Node, depth int) ([]Value, error) {
	var items []Value
	for i := 0; i+1 < len(nodes); i += 2 {
		name, err := memberName(nodes[i])
		if err != nil {
			return nil, err
		}
		v, err := r.value(nodes[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		v.Key = name
		items = append(items, v)
	}
	return items, nil
}

// memberName is the text of a key, whatever else it could be taken for.
func memberName(key *yaml.Node) (string, error) {
	named := key
	if key.Kind == yaml.AliasNode {
		named = key.Alias
	}
	switch {
	case named.Kind != yaml.ScalarNode:
		return "", refuseNode(key, "a key that is not a text", false)
	case named.ShortTag() == "!!merge":
		return "", refuseNode(key, `merge keys ("<<") are not taken; write the members out`, false)
	case tagged(named) && named.ShortTag() != "!!str":
		return "", refuseNode(key, "a key with a tag", false)
	}
	return named.Value, nil
}

func tagged(n *yaml.Node) bool { return n.Style&yaml.TaggedStyle != 0 }

// kindTag refuses a tag that is not the one that node has without any.
func kindTag(node *yaml.Node, tag string) error {
	if tagged(node) && node.ShortTag() != tag {
		return refuseNode(node, "the tag "+strconv.Quote(Shorten(node.Tag))+" is not taken here", false)
	}
	return nil
}

func refuseNode(n *yaml.Node, problem string, tooLarge bool) error {
	return &SyntaxError{Line: n.Line, Column: n.Column, Problem: problem, TooLarge: tooLarge}
}

package schema

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// ReadYAML reads one YAML document. YAML is easy to write by hand, but some of
// its features are ambiguous. ReadYAML either refuses an ambiguous value or
// reads it as text, so that no value gets a meaning that its author did not
// intend.
//
// ReadYAML reads a plain scalar as null, true, false or a decimal number if the
// core schema of YAML 1.2 does so. It reads any other plain scalar as text, for
// example "yes", "no", "on", "off", "12:30" or a date. Numbers in other bases
// or with leading zeros are also text, because in a job, 0xff is usually a mask
// and 007 is usually a name. (With the tag !!int, 0xff is a number.)
//
// ReadYAML accepts the tags of JSON's types and refuses all others. It replaces
// aliases with copies of their anchors' values, within limits. It refuses merge
// keys ("<<"), keys that are not scalars, and a second document.
//
// The parser comes from a library. It builds the whole tree before any limit
// can apply, and two bytes of text can cost 500 bytes of memory. For each
// directive, the parser searches all directives, which takes quadratic time in
// total. Therefore ReadYAML first counts the directives and the characters that
// separate values.
//
// An error is a *SyntaxError, or ctx's error if ctx ended before the text was
// parsed.
func ReadYAML(ctx context.Context, text string, lim Limits) (v *Value, err error) {
	text = strings.TrimPrefix(text, "\uFEFF")
	if _, err := scanYAML(text, lim); err != nil {
		return nil, err
	}
	tree, err := parseYAML(ctx, acceptYAML12(text))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
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
	maxDirective  = 100 // in bytes; the parser copies a %TAG directive's prefix into every tag that uses it

	// An alias takes a few bytes, whatever the size of its value. These limits
	// apply to all aliases of a document together. They limit the number of
	// values and the number of bytes of text that the aliases may add to the
	// document.
	maxAliasedValues = 10_000
	maxAliasedText   = 1 << 20
)

var (
	aliasHint = fmt.Sprintf("aliases may add at most %d values and %d bytes of text to a document; write copies instead of aliases",
		maxAliasedValues, maxAliasedText)
	directiveHint = fmt.Sprintf("a document may have at most %d directives of at most %d bytes", maxDirectives, maxDirective)
)

// yamlValue is how many bytes of memory the parser and ReadYAML take at most for
// one value.
const yamlValue = 500

// YAMLMemory returns how many bytes of memory ReadYAML takes at most for the
// values of a text, in addition to the text itself.
func YAMLMemory(text string, lim Limits) int64 {
	marks, err := scanYAML(text, lim)
	if err != nil {
		return 0 // ReadYAML refuses the text before it builds a value
	}
	return int64(marks) * yamlValue
}

// scanYAML counts the characters that separate values. It returns an error for a text that would be too expensive to parse, or
// that the parser would misread.
func scanYAML(text string, lim Limits) (marks int, err error) {
	directives := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ',', '[', '{', ':':
			marks++
		case '-', '?':
			if i+1 == len(text) || strings.IndexByte(" \t\r\n", text[i+1]) >= 0 {
				marks++
			}
		case '%':
			if i > 0 && text[i-1] != '\n' && text[i-1] != '\r' {
				continue
			}
			directives++
			line := text[i:min(i+maxDirective+1, len(text))]
			if directives > maxDirectives || len(line) > maxDirective && !strings.ContainsAny(line, "\r\n") {
				return marks, tooLarge(syntaxErrorAt(text, i, "too many directives, or too long a directive"), directiveHint)
			}
		}
		if marks > lim.Values/2 {
			return marks, tooLarge(syntaxErrorAt(text, i, "too many values"), valuesHint(lim))
		}
	}
	if !utf8.ValidString(text) {
		return marks, syntaxErrorAt(text, invalidUTF8(text), "not UTF-8")
	}
	return marks, nil
}

func invalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return i
		}
	}
	return len(s)
}

// syntaxErrorAt returns the error for a problem at the byte with index i.
func syntaxErrorAt(text string, i int, problem string) *SyntaxError {
	before := text[:i]
	lineStart := strings.LastIndexByte(before, '\n') + 1
	return &SyntaxError{
		Line:   strings.Count(before, "\n") + 1,
		Column: utf8.RuneCountInString(before[lineStart:]) + 1, Problem: problem}
}

// tooLarge marks e as an error about a document that exceeds a limit. The
// argument hint names the limit.
func tooLarge(e *SyntaxError, hint string) *SyntaxError {
	e.TooLarge, e.Hint = true, hint
	return e
}

// parseYAML parses text, which must contain exactly one document.
func parseYAML(ctx context.Context, text string) (tree *yaml.Node, err error) {
	source := &pieceReader{ctx: ctx, text: text}
	defer func() {
		if p := recover(); p != nil { // a bug in the parser must not end the process
			tree, err = nil, source.syntaxError(fmt.Errorf("the parser failed"))
		}
	}()
	d := yaml.NewDecoder(source)
	var doc, second yaml.Node
	switch err := d.Decode(&doc); {
	case err == io.EOF:
		return nil, syntaxErrorAt(text, len(text), "a value is missing")
	case err != nil:
		return nil, source.syntaxError(err)
	case len(doc.Content) != 1:
		return nil, syntaxErrorAt(text, len(text), "a value is missing")
	}
	switch err := d.Decode(&second); {
	case err == nil:
		return nil, &SyntaxError{Line: second.Line, Column: second.Column, Problem: "a second document follows"}
	case err != io.EOF:
		return nil, source.syntaxError(err)
	}
	return doc.Content[0], nil
}

// A pieceReader gives the parser a text in small pieces. If the parser fails,
// the amount of text that it has read shows approximately where the error is.
// The parser itself reports at most a line number, and that number can be
// wrong.
type pieceReader struct {
	ctx       context.Context
	text      string
	pos       int
	nextCheck int // byte at which ctx is checked next
}

// Read returns the next few bytes. If ctx has ended, Read fails: the client is
// gone, and parsing the rest of a text of 50 MB would take seconds.
func (s *pieceReader) Read(p []byte) (int, error) {
	if s.pos == len(s.text) {
		return 0, io.EOF
	}
	if s.pos >= s.nextCheck {
		if err := s.ctx.Err(); err != nil {
			return 0, err
		}
		s.nextCheck = s.pos + 16<<10
	}
	n := copy(p[:min(len(p), 4)], s.text[s.pos:])
	s.pos += n
	return n, nil
}

// syntaxError converts an error from the parser to a SyntaxError. It removes
// the parser's name from the message.
func (s *pieceReader) syntaxError(err error) *SyntaxError {
	problem := strings.TrimPrefix(err.Error(), "yaml: ")
	e := syntaxErrorAt(s.text, s.pos, "")
	if rest, ok := strings.CutPrefix(problem, "line "); ok {
		if number, message, ok := strings.Cut(rest, ": "); ok {
			problem = message
			if line, err := strconv.Atoi(number); err == nil && line < e.Line {
				e.Line, e.Column = line, lineLength(s.text, line)+1
			}
		}
	}
	e.Problem = problem
	return e
}

// lineLength returns the number of characters in the line.
func lineLength(text string, line int) int {
	for range line - 1 {
		_, text, _ = strings.Cut(text, "\n")
	}
	first, _, _ := strings.Cut(text, "\n")
	return utf8.RuneCountInString(first)
}

// yamlReader converts a tree into Values.
type yamlReader struct {
	lim          Limits
	numValues    int        // values so far
	alias        *yaml.Node // the outermost alias that is being copied; nil if none is
	copiedValues int        // values copied so far
	copiedText   int        // bytes of text copied so far
}

func (r *yamlReader) value(node *yaml.Node, depth int) (v Value, err error) {
	v.Line, v.Column = int32(node.Line), int32(node.Column)
	if r.numValues++; r.numValues > r.lim.Values {
		return v, tooLarge(nodeError(node, "too many values"), valuesHint(r.lim))
	}
	if depth > r.lim.Depth {
		err := nodeError(node, "nested too deeply")
		err.Hint = depthHint(r.lim)
		return v, err
	}
	if r.alias != nil {
		if err := r.countCopied(1, len(node.Value)); err != nil {
			return v, err
		}
	}
	switch node.Kind {
	case yaml.AliasNode:
		return r.copyAlias(node, depth)
	case yaml.SequenceNode:
		v.Kind = Array
		if err := checkTag(node, "!!seq"); err != nil {
			return v, err
		}
		v.Items, err = r.elements(node.Content, depth)
	case yaml.MappingNode:
		v.Kind = Map
		if err := checkTag(node, "!!map"); err != nil {
			return v, err
		}
		v.Items, err = r.members(node.Content, depth)
	case yaml.ScalarNode:
		err = r.scalar(node, &v)
	default:
		err = nodeError(node, "not a value")
	}
	return v, err
}

// copyAlias returns a copy of the value that an alias refers to. The copy has
// the alias's position, but shares its strings with the original. If the value
// contains the alias itself, copyAlias fails at the depth limit.
func (r *yamlReader) copyAlias(alias *yaml.Node, depth int) (Value, error) {
	if r.alias == nil {
		r.alias = alias
		defer func() { r.alias = nil }()
	}
	v, err := r.value(alias.Alias, depth+1)
	v.Line, v.Column = int32(alias.Line), int32(alias.Column)
	return v, err
}

// countCopied counts the values and bytes of text that an alias adds to the
// document. It returns an error if all aliases together add too much.
func (r *yamlReader) countCopied(values, bytes int) error {
	r.copiedValues += values
	r.copiedText += bytes
	if r.copiedValues > maxAliasedValues || r.copiedText > maxAliasedText {
		return tooLarge(nodeError(r.alias, "aliases add too many values or too much text"), aliasHint)
	}
	return nil
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
		name, err := r.memberName(nodes[i])
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

// memberName returns the text of a key, even if the key looks like a number or
// a value of another type.
func (r *yamlReader) memberName(key *yaml.Node) (string, error) {
	named := key
	if key.Kind == yaml.AliasNode {
		named = key.Alias
		if r.alias == nil {
			r.alias = key
			defer func() { r.alias = nil }()
		}
	}
	if r.alias != nil {
		if err := r.countCopied(0, len(named.Value)); err != nil {
			return "", err
		}
	}
	switch {
	case named.Kind != yaml.ScalarNode:
		return "", nodeError(key, "a key that is not a text")
	case named.ShortTag() == "!!merge":
		return "", nodeError(key, `merge keys ("<<") are not supported; write the members out`)
	case isTagged(named) && named.ShortTag() != "!!str":
		return "", nodeError(key, "a key with a tag")
	}
	return named.Value, nil
}

func isTagged(n *yaml.Node) bool { return n.Style&yaml.TaggedStyle != 0 }

// checkTag returns an error if the node has an explicit tag that differs from
// the tag argument. The caller passes the default tag for nodes of this kind.
func checkTag(node *yaml.Node, tag string) error {
	if isTagged(node) && node.ShortTag() != tag {
		return nodeError(node, "the tag "+strconv.Quote(Shorten(node.Tag))+" is not supported here")
	}
	return nil
}

func nodeError(n *yaml.Node, problem string) *SyntaxError {
	return &SyntaxError{Line: n.Line, Column: n.Column, Problem: problem}
}

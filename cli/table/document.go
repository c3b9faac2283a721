package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// A Document writes a list of objects from an answer as one JSON or YAML
// document. The document is an object whose only member is the list. The layout
// of the listed objects may change, but not their content. Characters that
// could control a terminal are escaped.
type Document struct {
	w           io.Writer
	name        string
	yaml        bool
	hasElements bool
}

// NewDocument returns a Document whose list has the given name.
func NewDocument(w io.Writer, name string, inYAML bool) *Document {
	return &Document{w: w, name: name, yaml: inYAML}
}

// Add writes one element of the list.
func (d *Document) Add(element json.RawMessage) error {
	if d.yaml {
		return d.addYAML(element)
	}
	var b bytes.Buffer
	if !d.hasElements {
		fmt.Fprintf(&b, "{%q: [\n", d.name)
	} else {
		b.WriteString(",\n")
	}
	d.hasElements = true
	if err := json.Indent(&b, element, "", "  "); err != nil {
		return err
	}
	_, err := d.w.Write(EscapeJSON(b.Bytes()))
	return err
}

// Close writes the end of the document.
func (d *Document) Close() error {
	end := "\n]}\n"
	switch {
	case d.yaml && d.hasElements:
		return nil
	case d.yaml:
		end = d.name + ": []\n"
	case !d.hasElements:
		end = fmt.Sprintf("{%q: []}\n", d.name)
	}
	_, err := io.WriteString(d.w, end)
	return err
}

func (d *Document) addYAML(element json.RawMessage) error {
	text, err := YAML(slices.Concat([]byte("["), element, []byte("]")))
	if err != nil {
		return err
	}
	if !d.hasElements {
		text = append([]byte(d.name+":\n"), text...)
	}
	d.hasElements = true
	_, err = d.w.Write(text)
	return err
}

// EscapeJSON escapes all unprintable characters in a JSON text. JSON itself
// requires this only for characters up to U+001F.
func EscapeJSON(text []byte) []byte {
	if utf8.Valid(text) && bytes.IndexFunc(text, isUnprintable) < 0 {
		return text
	}
	var b bytes.Buffer
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case !isUnprintable(r) && (r != utf8.RuneError || n > 1):
			b.Write(text[:n])
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return b.Bytes()
}

// isUnprintable reports whether r is neither a newline nor a printable
// character.
func isUnprintable(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }

// YAML returns a JSON value as YAML.
func YAML(value json.RawMessage) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	n, err := decodeNode(d)
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(n)
	return escapeYAML(text), err
}

// decodeNode converts a JSON value to YAML. It keeps the order of the members
// of objects.
func decodeNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.MappingNode}
		if v == '[' {
			n.Kind = yaml.SequenceNode
		}
		for d.More() {
			member, err := decodeNode(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, member)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		_, err = d.Token()
		return n, err
	case string:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
		if strings.ContainsFunc(v, func(r rune) bool { return isUnprintable(r) || r == '\n' }) {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n, nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(string(v), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: string(v)}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(v)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

// escapeYAML escapes the unprintable characters in a YAML text. These
// characters occur only in quoted scalars, because decodeNode quotes strings
// that contain them.
func escapeYAML(text []byte) []byte {
	if bytes.IndexFunc(text, isUnprintable) < 0 {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case !isUnprintable(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

package schema

import (
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// scalar parses a scalar into v. If the scalar has a tag, the tag determines
// the type of v. Otherwise the scalar's style and text determine it.
func (r *yamlReader) scalar(node *yaml.Node, v *Value) error {
	v.Kind, v.Text = plainKind(node.Value), node.Value
	quoted := node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if quoted {
		v.Kind = Text
	}
	if isTagged(node) {
		if !v.convertTo(node.ShortTag()) {
			return nodeError(node, "not a value of the tag "+strconv.Quote(Shorten(node.Tag))+", or a tag that is not supported")
		}
	}
	switch v.Kind {
	case Null:
		v.Text = ""
	case Bool:
		v.Text = strings.ToLower(v.Text)
	}
	return nil
}

// convertTo converts v to the type named by tag. It returns false if v's text
// is not a value of this type, or if the tag is not supported.
func (v *Value) convertTo(tag string) bool {
	plain := plainKind(v.Text)
	switch tag {
	case "!!str", "!":
		v.Kind = Text
	case "!!null":
		v.Kind = Null
		return plain == Null
	case "!!bool":
		v.Kind = Bool
		return plain == Bool
	case "!!float":
		v.Kind = Number
		return plain == Number
	case "!!int":
		v.Kind = Number
		if plain == Number {
			return !strings.ContainsAny(v.Text, ".eE")
		}
		return v.parseOtherBase()
	default:
		return false
	}
	return true
}

// parseOtherBase converts v's text from a hexadecimal or octal number to a
// decimal one. As in the core schema, a hexadecimal number begins with 0x, and
// an octal number with 0o. For any other text, parseOtherBase returns false,
// and the caller must not use v.
func (v *Value) parseOtherBase() bool {
	base, digits := 16, ""
	switch {
	case strings.HasPrefix(v.Text, "0x"):
		digits = v.Text[2:]
	case strings.HasPrefix(v.Text, "0o"):
		base, digits = 8, v.Text[2:]
	}
	n, err := strconv.ParseUint(digits, base, 64)
	v.Text = strconv.FormatUint(n, 10)
	return err == nil
}

// plainKind returns the kind of a scalar that has neither quotes nor a tag.
func plainKind(s string) Kind {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return Null
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return Bool
	}
	if isDecimal(s) {
		return Number
	}
	return Text
}

// isDecimal reports whether s is a decimal number in the core schema. It
// returns false for numbers with leading zeros.
func isDecimal(s string) bool {
	s = trimSign(s)
	whole, rest := cutDigits(s)
	if len(whole) > 1 && whole[0] == '0' {
		return false
	}
	fraction := ""
	if after, ok := strings.CutPrefix(rest, "."); ok {
		fraction, rest = cutDigits(after)
	}
	if whole == "" && fraction == "" {
		return false
	}
	if rest == "" {
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	exponent, rest := cutDigits(trimSign(rest[1:]))
	return exponent != "" && rest == ""
}

// trimSign returns s without its sign. It does not copy s, which may be as long
// as the whole body of a request.
func trimSign(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

func cutDigits(s string) (head, rest string) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return s[:i], s[i:]
}

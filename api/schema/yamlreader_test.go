package schema

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// ignorePositions makes cmp ignore the positions of Values.
var ignorePositions = cmpopts.IgnoreFields(Value{}, "Line", "Column")

func TestReadYAMLScalars(t *testing.T) {
	tests := []struct {
		text string
		kind Kind
		want string
	}{
		{"12", Number, "12"}, {"-12", Number, "-12"}, {"+12", Number, "+12"}, {"0", Number, "0"},
		{"9007199254740993", Number, "9007199254740993"}, {"18446744073709551616", Number, "18446744073709551616"},
		{"1.5", Number, "1.5"}, {".5", Number, ".5"}, {"5.", Number, "5."}, {"1e3", Number, "1e3"}, {"1.5E-3", Number, "1.5E-3"},
		{"007", Text, "007"}, {"0xff", Text, "0xff"}, {"0o17", Text, "0o17"}, {"1_000", Text, "1_000"}, {"12:30", Text, "12:30"},
		{".inf", Text, ".inf"}, {".nan", Text, ".nan"}, {"1e", Text, "1e"}, {"+", Text, "+"}, {".", Text, "."}, {"1.2.3", Text, "1.2.3"}, {"--1", Text, "--1"},
		{"2024-01-01", Text, "2024-01-01"}, {"2024-01-01T00:00:00Z", Text, "2024-01-01T00:00:00Z"},
		{"true", Bool, "true"}, {"False", Bool, "false"}, {"TRUE", Bool, "true"},
		{"yes", Text, "yes"}, {"NO", Text, "NO"}, {"on", Text, "on"}, {"Off", Text, "Off"}, {"y", Text, "y"},
		{"null", Null, ""}, {"~", Null, ""}, {"nUll", Text, "nUll"},
		{`"12"`, Text, "12"}, {"'true'", Text, "true"}, {"|\n  12\n", Text, "12\n"}, {">-\n  a\n  b\n", Text, "a b"}, {`"a\0b\u00e4"`, Text, "a\x00bä"},
		{"!!str 12", Text, "12"}, {"!!str", Text, ""}, {`!!int "12"`, Number, "12"}, {"!!int 0xFF", Number, "255"}, {"!!int 0o17", Number, "15"},
		{"!!float 12", Number, "12"}, {`!!bool "true"`, Bool, "true"}, {`!!null ""`, Null, ""}, {"!<tag:yaml.org,2002:str> 1", Text, "1"},
		{"# a comment\nx # another", Text, "x"}, {"--- x", Text, "x"}, {"%YAML 1.1\n---\nx\n...\n", Text, "x"}, {"\uFEFFx", Text, "x"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			got, err := ReadYAML(t.Context(), tt.text, DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(Value{Kind: tt.kind, Text: tt.want}, *got, ignorePositions); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReadYAMLStructures(t *testing.T) {
	text := func(line, column int32, key, s string) Value {
		return Value{Kind: Text, Line: line, Column: column, Key: key, Text: s}
	}
	tests := []struct {
		name, text string
		want       Value
	}{
		{"places count characters", "ä: é\nb:\n- c\n- [d, {e: f}]\n", Value{Kind: Map, Line: 1, Column: 1, Items: []Value{
			text(1, 4, "ä", "é"),
			{Kind: Array, Key: "b", Line: 3, Column: 1, Items: []Value{
				text(3, 3, "", "c"),
				{Kind: Array, Line: 4, Column: 3, Items: []Value{
					text(4, 4, "", "d"),
					{Kind: Map, Line: 4, Column: 7, Items: []Value{text(4, 11, "e", "f")}},
				}},
			}},
		}}},
		{"names given twice are both kept", "a: x\na: y", Value{Kind: Map, Line: 1, Column: 1, Items: []Value{text(1, 4, "a", "x"), text(2, 4, "a", "y")}}},
		{"keys are text", "1: a\ntrue: b\n~: c\n\"<<\": d", Value{Kind: Map, Line: 1, Column: 1, Items: []Value{
			text(1, 4, "1", "a"), text(2, 7, "true", "b"), text(3, 4, "~", "c"), text(4, 7, "<<", "d")}}},
		{"aliases are copies", "a: &x [b]\nc: *x", Value{Kind: Map, Line: 1, Column: 1, Items: []Value{
			{Kind: Array, Key: "a", Line: 1, Column: 4, Items: []Value{text(1, 8, "", "b")}},
			{Kind: Array, Key: "c", Line: 2, Column: 4, Items: []Value{text(1, 8, "", "b")}}}}},
		{"JSON is YAML", `{"a": ["b", {}]}`, Value{Kind: Map, Line: 1, Column: 1, Items: []Value{
			{Kind: Array, Key: "a", Line: 1, Column: 7, Items: []Value{text(1, 8, "", "b"), {Kind: Map, Line: 1, Column: 13}}}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadYAML(t.Context(), tt.text, DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, *got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReadYAMLRefuses(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'i'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	tests := []struct {
		name, text string
		line       int
		want       string
		tooLarge   bool
	}{
		{"nothing", "", 1, "a value is missing", false},
		{"only a comment", "# x\n", 2, "a value is missing", false},
		{"two documents", "a\n---\nb\n", 2, "second document", false},
		{"open bracket", "a: [b,\n", 1, "did not find expected", false},
		{"tab for indentation", "a:\n\tb: c\n", 2, "", false},
		{"indentation too deep by one", "a: b\n c: d\n", 2, "not allowed", false},
		{"undefined alias", "a: *b\n", 0, "unknown anchor", false},
		{"alias of itself", "a: &a [*a]\n", 0, "", false},
		{"nested aliases", bomb, 5, "aliases add too many values", true},
		{"aliases of a long scalar", "a: &x " + strings.Repeat("y", 1<<19) + "\nb: [*x, *x, *x]\n", 2, "too much text", true},
		{"aliases of a long quoted scalar", "a: &x \"" + strings.Repeat("y", 1<<19) + "\"\nb:\n- *x\n- *x\n- *x\n", 5, "too much text", true},
		{"aliases of a list of long scalars", "a: &x [" + strings.Repeat("y", 1<<20) + "y]\nb: *x\n", 2, "too much text", true},
		{"aliases of a map with a long key", "a: &x\n  ? " + strings.Repeat("y", 1<<20) + "y\n  : b\nc: *x\n", 4, "too much text", true},
		{"aliases as keys", "a: &x " + strings.Repeat("y", 1<<19) + "\nb:\n  ? *x\n  ? *x\n  ? *x\n", 5, "too much text", true},
		{"merge key", "a: &a {b: c}\nd:\n  <<: *a\n", 3, "merge keys", false},
		{"key that is a list", "? [a]\n: b\n", 1, "a key", false},
		{"key with a tag", "!!int 1: b\n", 1, "a key", false},
		{"local tag", "a: !mine b\n", 1, "tag", false},
		{"tag of a programming language", "a: !!python/object:os.system [b]\n", 1, "tag", false},
		{"binary", "a: !!binary aGk=\n", 1, "tag", false},
		{"timestamp", "a: !!timestamp 2024-01-01\n", 1, "tag", false},
		{"a word for a number", "a: !!int many\n", 1, "tag", false},
		{"a fraction for an integer", "a: !!int 1.5\n", 1, "tag", false},
		{"leading zero for an integer", "a: !!int 010\n", 1, "tag", false},
		{"map tag on a list", "a: !!map [b]\n", 1, "tag", false},
		{"Latin-1", "a: \xe4\n", 1, "not UTF-8", false},
		{"UTF-16", "\xff\xfea\x00", 1, "not UTF-8", false},
		{"control character", "a: \x01\n", 1, "control", false},
		{"too deep", strings.Repeat("[", 100) + strings.Repeat("]", 100), 1, "nested too deeply", false},
		{"too deep to parse", strings.Repeat("[", 20_000), 1, "", false},
		{"too deep in block style", strings.Repeat("- ", 100), 1, "nested too deeply", false},
		{"too many", "[" + strings.Repeat("0,", 300_000), 1, "too many values", true},
		{"directives", strings.Repeat("%TAG !a! tag:x\n", 20) + "--- a", 9, "too many", true},
		{"a long directive", "%TAG !a! tag:" + strings.Repeat("x", maxDirective) + "\n--- !a!b c", 1, "too long a directive", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := ReadYAML(t.Context(), tt.text, DefaultLimits)
			if err == nil {
				t.Fatalf("read as %v", v)
			}
			e, ok := err.(*SyntaxError)
			if !ok || v != nil {
				t.Fatalf("%v, %T", v, err)
			}
			if tt.line > 0 && e.Line != tt.line || e.Line < 1 || e.Column < 1 || e.TooLarge != tt.tooLarge || !strings.Contains(e.Problem, tt.want) {
				t.Errorf("%v (too large: %v), want line %d: %s", e, e.TooLarge, tt.line, tt.want)
			}
			if e.TooLarge != (e.Hint != "") && e.Problem != "nested too deeply" {
				t.Errorf("%v: hint %q", e, e.Hint)
			}
			if strings.Contains(e.Problem, "yaml") {
				t.Errorf("%q names the parser", e.Problem)
			}
		})
	}
}

// TestReadYAMLWithinAliasLimits checks that aliases are accepted up to the
// limit, and that copies share the text of the original.
func TestReadYAMLWithinAliasLimits(t *testing.T) {
	long := strings.Repeat("y", maxAliasedText/2)
	v, err := ReadYAML(t.Context(), "a: &x "+long+"\nb: [*x, *x]\n", DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range v.Items[1].Items {
		if unsafe.StringData(item.Text) != unsafe.StringData(v.Items[0].Text) || len(item.Text) != len(long) {
			t.Error("the text was copied")
		}
	}
}

// TestReadYAMLStops checks that ReadYAML returns the context's error soon after
// the context has ended, and does not read the rest of the text.
func TestReadYAMLStops(t *testing.T) {
	text := "a: " + strings.Repeat("x", 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := ReadYAML(ctx, text, DefaultLimits); v != nil || err != context.Canceled {
		t.Errorf("%v, %v", v, err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	source := &pieceReader{ctx: ctx, text: text}
	buffer := make([]byte, 4096)
	for source.pos < 100<<10 {
		if _, err := source.Read(buffer); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if _, err := io.Copy(io.Discard, source); err != context.Canceled || source.pos > 120<<10 {
		t.Errorf("%v after %d bytes", err, source.pos)
	}
}

// TestReadYAMLCost measures how much memory ReadYAML allocates for hostile
// texts, in bytes per byte of text. This ratio must not grow with the length of
// the text. (BenchmarkHostileYAML measures the time.)
func TestReadYAMLCost(t *testing.T) {
	for name, text := range hostileYAML {
		t.Run(name, func(t *testing.T) {
			small, large := perByte(text(64<<10)), perByte(text(512<<10))
			if large > 2*small+8 {
				t.Errorf("%.0f bytes for each byte of 64 KiB, %.0f of 512 KiB", small, large)
			}
			if total := large * 512; total > 400<<10 {
				t.Errorf("%.0f KiB for 512 KiB of text", total)
			}
		})
	}
}

func perByte(text string) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = ReadYAML(context.Background(), text, DefaultLimits)
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / float64(len(text))
}

// hostileYAML contains functions that return a text of about n bytes. Other
// YAML readers have failed on texts of these kinds.
var hostileYAML = map[string]func(n int) string{
	"brackets":     repeat("["),
	"braces":       repeat("{"),
	"open members": repeat("{a: "),
	"dashes":       repeat("- "),
	"empty items":  repeat("-\n"),
	"questions":    repeat("? "),
	"colons":       repeat(":"),
	"keys":         repeat("a: b\n"),
	"commas":       func(n int) string { return "[" + strings.Repeat("0,", n/2) + "0]" },
	"pairs":        func(n int) string { return "{" + strings.Repeat("a,", n/2) + "a}" },
	"comments":     repeat("# x\n\n"),
	"comment each": repeat("- a # b\n# c\n"),
	"directives":   repeat("%TAG !a! tag:x\n"),
	"documents":    repeat("--- a\n"),
	"a long word":  repeat("x"),
	"digits":       repeat("9"),
	"words":        repeat("x y\n"),
	"blank lines":  func(n int) string { return "x" + strings.Repeat("\n", n) + "y" },
	"quoted":       func(n int) string { return `"` + strings.Repeat(`x\n `, n/4) + `"` },
	"literal":      func(n int) string { return "|\n" + strings.Repeat("  x: y\n", n/7) },
	"anchors":      numbered("a%d: &a%[1]d x\n"),
	"aliases":      func(n int) string { return "a: &a [b, c]\nd:\n" + strings.Repeat("- *a\n", n/5) },
	"members":      numbered("k%d: 1\n"),
	"long aliases": func(n int) string {
		return "a: &a " + strings.Repeat("x", n/2) + "\nd:\n" + strings.Repeat("- *a\n", min(n/10, maxAliasedValues-1))
	},
	"long digits": func(n int) string {
		return "a: &a " + strings.Repeat("9", n/2) + "\nd:\n" + strings.Repeat("- *a\n", min(n/10, maxAliasedValues-1))
	},
	"alias keys": func(n int) string {
		return "a: &a " + strings.Repeat("x", n/2) + "\nd:\n" + strings.Repeat(" ? *a\n", n/12)
	},
	"tag prefix": func(n int) string {
		return "%TAG !a! tag:" + strings.Repeat("x", n/2) + "\n---\n" + strings.Repeat("- !a!b c\n", n/18)
	},
	"indentation": func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String()
	},
}

func repeat(s string) func(int) string {
	return func(n int) string { return strings.Repeat(s, n/len(s)) }
}

func numbered(format string) func(int) string {
	return func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
}

// TestReadYAMLAgreesWithJSON checks that a JSON text has the same meaning when
// it is read as YAML.
func TestReadYAMLAgreesWithJSON(t *testing.T) {
	texts := []string{`{"job":{"name":"a","tasks":4,"environment":["A=b"],"x":null,"y":-1.5e+3,"z":true},"script":"#!/bin/sh\n\u00e4"}`}
	files, _ := filepath.Glob("../../handlers/testdata/golden/*.txt")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_, answer, _ := strings.Cut(string(b), "\n== ") // of the newest version
		_, answer, _ = strings.Cut(answer, "\n")
		answer, _, _ = strings.Cut(answer, "\n== ")
		texts = append(texts, answer)
	}
	for _, text := range texts {
		want, err := ReadJSON(text, DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadYAML(t.Context(), text, DefaultLimits)
		if err != nil {
			t.Fatalf("%v in %s", err, Shorten(text))
		}
		if !equalValues(want, got) {
			t.Error(cmp.Diff(want, got, ignorePositions, cmpopts.EquateEmpty()))
		}
	}
}

// equalValues reports whether a and b are equal apart from their positions. It
// gives the same result as cmp.Equal with the options ignorePositions and
// EquateEmpty, but cmp.Equal would need seconds for all golden files.
func equalValues(a, b *Value) bool {
	x, y := *a, *b
	x.Line, x.Column, x.Items = y.Line, y.Column, nil
	y.Items = nil
	return reflect.DeepEqual(x, y) && slices.EqualFunc(a.Items, b.Items, func(v, w Value) bool { return equalValues(&v, &w) })
}

// FuzzReadYAML checks that ReadYAML either reads a text within the limits, or
// returns an error with a position. It writes each accepted value as YAML
// again, and checks that ReadYAML can read this YAML.
func FuzzReadYAML(f *testing.F) {
	for _, seed := range []string{
		"job:\n  name: a\n  tasks: 4\n  environment: [A=b]\nscript: |\n  #!/bin/sh\n", "a: &a [*a]", "- - - ?", "{a: b, ? c}", "<<: {}", "!!int 0x1f",
		"\"\\x41\"", "%YAML 1.1\n--- >+\n a\n\n", "a\n---\nb", "? [a]\n: b", "\uFEFF'it''s'", "# only", "a: *b", "&a x: *a",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := ReadYAML(t.Context(), text, Limits{Depth: 20, Values: 2000})
		if err != nil {
			if e, ok := err.(*SyntaxError); !ok || v != nil || e.Line < 1 || e.Column < 0 {
				t.Fatalf("%v with %#v", v, err)
			}
			return
		}
		for _, layout := range []Layout{Compact, Pretty, NoTag, Pretty | NoTag} {
			rewritten := yamlOf(t, layout, func(e Encoder) { encode(e, v) })
			back, err := ReadYAML(t.Context(), rewritten, Limits{Depth: math.MaxInt, Values: math.MaxInt})
			if err != nil {
				t.Fatalf("%v in %q", err, rewritten)
			}
			if d := cmp.Diff(v, back, ignorePositions, cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("%s in %q", d, rewritten)
			}
		}
	})
}

// encode writes v. It converts numbers to texts, because an Encoder can't
// reproduce the digits that a number has in the document.
func encode(e Encoder, v *Value) {
	switch v.Kind {
	case Null:
		e.Null()
	case Bool:
		e.Bool(v.Text == "true")
	case Number, Text:
		v.Kind = Text
		e.String(v.Text)
	case Array:
		e.BeginArray()
		for i := range v.Items {
			encode(e, &v.Items[i])
		}
		e.EndArray()
	case Map:
		e.BeginObject()
		for i := range v.Items {
			e.Key(v.Items[i].Key)
			encode(e, &v.Items[i])
		}
		e.EndObject()
	}
}

func BenchmarkHostileYAML(b *testing.B) {
	for name, text := range hostileYAML {
		for _, size := range []int{64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				text := text(size)
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					_, _ = ReadYAML(b.Context(), text, DefaultLimits)
				}
			})
		}
	}
}

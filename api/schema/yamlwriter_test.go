package schema

import (
	"bytes"
	"math"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// yamlOf returns the YAML that f writes.
func yamlOf(t *testing.T, layout Layout, f func(Encoder)) string {
	t.Helper()
	var b bytes.Buffer
	y := NewYAMLWriter(&b, layout)
	f(y)
	if err := y.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sample writes values of all kinds, in all positions that a value can have.
func sample(e Encoder) {
	e.BeginObject()
	e.Key("nodes")
	e.BeginArray()
	e.BeginObject()
	e.Key("name")
	e.String("n1")
	e.Key("state")
	e.BeginArray()
	e.String("IDLE")
	e.String("yes")
	e.EndArray()
	e.Key("energy")
	e.BeginObject()
	e.EndObject()
	e.EndObject()
	e.BeginArray()
	e.BeginArray()
	e.Int(-1)
	e.EndArray()
	e.BeginArray()
	e.EndArray()
	e.EndArray()
	e.Null()
	e.EndArray()
	e.Key("200")
	e.Float(2)
	e.Key("meta")
	e.BeginObject()
	e.Key("ok")
	e.Bool(true)
	e.Key("n")
	e.Uint(math.MaxUint64)
	e.EndObject()
	e.EndObject()
}

func TestYAMLLayouts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		layout Layout
		want   string
	}{
		{"pretty,no_tag", Pretty | NoTag, `nodes:
  - name: n1
    state:
      - IDLE
      - "yes"
    energy: {}
  - - - -1
    - []
  - null
"200": 2.0
meta:
  ok: true
  "n": 18446744073709551615
`},
		{"compact", Compact, `!!map {nodes: !!seq [!!map {name: !!str n1, state: !!seq [!!str IDLE, !!str "yes"], energy: !!map {}}, !!seq [!!seq [!!int -1], !!seq []], !!null null], "200": !!float 2.0, meta: !!map {ok: !!bool true, "n": !!int 18446744073709551615}}
`},
		{"compact,no_tag", NoTag, `{nodes: [{name: n1, state: [IDLE, "yes"], energy: {}}, [[-1], []], null], "200": 2.0, meta: {ok: true, "n": 18446744073709551615}}
`},
		{"pretty", Pretty, `!!map
nodes: !!seq
  - !!map
    name: !!str n1
    state: !!seq
      - !!str IDLE
      - !!str "yes"
    energy: !!map {}
  - !!seq
    - !!seq
      - !!int -1
    - !!seq []
  - !!null null
"200": !!float 2.0
meta: !!map
  ok: !!bool true
  "n": !!int 18446744073709551615
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, yamlOf(t, tt.layout, sample)); d != "" {
				t.Error(d)
			}
		})
	}
}

// texts contains strings for tests of quoting. If many of them were not quoted,
// some YAML readers would misinterpret them or fail to read them.
var texts = []string{"", " ", "a ", " a", "a  b", "yes", "No", "ON", "y", "n", "null", "~", "true", "1", "1.5", "1e3", "0x1f", "0o7", "007", "1_000", "12:30:45", "2024-01-01", ".inf", ".nan",
	"<<", "=", "-", "- a", "?", ": ", "a: b", "a:", "a #b", "#a", "&a", "*a", "!a", "|", ">", "%a", "@a", "`a", "[a", "{a", "a,b", "a]", "'", `"`, `\`, "---", "...", "a\nb", "\n", "a\tb", "\t",
	"a\rb", "\x00", "\x1b[0m", "\x7f", "\u0085", "\u00a0", "\u2028", "\u2029", "\uFEFF", "\uFFFE", "\uFFFD", "ä 中文", "𝄞", "\U000e0001", "plain", "a-b", "a b c", "/home/x", "10.0.0.1", "n[1-2]",
	"A=b", "a@b", "Tue 5", "None", "nUll", strings.Repeat("x ", 600) + "x"}

func TestYAMLTextsComeBack(t *testing.T) {
	for _, layout := range []Layout{Compact, Pretty, NoTag, Pretty | NoTag} {
		text := yamlOf(t, layout, listOf(texts))
		back, err := ReadYAML(t.Context(), text, DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range back.Items {
			if v.Kind != Text || v.Text != texts[i] {
				t.Errorf("%q came back as %v %q", texts[i], v.Kind, v.Text)
			}
		}
		var decoded []any
		if err := yaml.Unmarshal([]byte(text), &decoded); err != nil {
			t.Fatal(err)
		}
		for i, v := range decoded {
			if v != texts[i] {
				t.Errorf("%q is %T %v to another reader", texts[i], v, v)
			}
		}
	}
}

func listOf(texts []string) func(Encoder) {
	return func(e Encoder) {
		e.BeginArray()
		for _, s := range texts {
			e.String(s)
		}
		e.EndArray()
	}
}

// TestYAMLForOthers checks that Python's YAML 1.1 reader gets the same values
// from our YAML as from our JSON.
func TestYAMLForOthers(t *testing.T) {
	if err := exec.Command("python3", "-c", "import yaml").Run(); err != nil {
		t.Skip("needs python3 with yaml")
	}
	values := func(e Encoder) {
		e.BeginArray()
		for _, s := range texts {
			e.String(s)
		}
		sample(e)
		for _, f := range []float64{0, -1, 0.1, 1e300, -1e-9, 5e-324, 1e15, 123456789.125} {
			e.Float(f)
		}
		e.Int(math.MinInt64)
		e.EndArray()
	}
	for _, layout := range []Layout{Compact, Pretty, NoTag, Pretty | NoTag} {
		input := written(t, values) + "\n" + yamlOf(t, layout, values)
		c := exec.Command("python3", "-c", `
import json, sys, yaml
head, _, rest = sys.stdin.buffer.read().decode().partition("\n")
want, got = json.loads(head), yaml.safe_load(rest)
for w, g in zip(want, got, strict=True):
    if w != g or type(w) != type(g): print(repr(w), "is", repr(g))`)
		c.Stdin = strings.NewReader(input)
		if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("layout %d: %v\n%s", layout, err, out)
		}
	}
}

func TestYAMLWriterWritesInPieces(t *testing.T) {
	var p pieces
	y := NewYAMLWriter(&p, Pretty|NoTag)
	y.BeginArray()
	for range 200 {
		y.String(strings.Repeat("x", 1021))
	}
	if len(p.sizes) != 3 || y.Capacity() > 2*pieceSize {
		t.Errorf("200 KiB in writes of %v, a buffer of %d", p.sizes, y.Capacity())
	}
}

func TestYAMLNotUTF8(t *testing.T) {
	got := yamlOf(t, Pretty|NoTag, func(e Encoder) { e.String("h\xe4ld\xff") })
	if want := "\"h\uFFFDld\uFFFD\"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzYAMLWriterString(f *testing.F) {
	for _, s := range texts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := strings.Map(func(r rune) rune { return r }, s) // one U+FFFD for each byte that is not UTF-8
		for _, layout := range []Layout{Compact, Pretty, NoTag, Pretty | NoTag} {
			key := want
			if len(key) > 200 { // a key may have at most 1024 characters, including escapes
				key = "long"
			}
			text := yamlOf(t, layout, func(e Encoder) {
				e.BeginObject()
				e.Key(key)
				e.String(s)
				e.EndObject()
			})
			var back map[string]any
			if err := yaml.Unmarshal([]byte(text), &back); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if back[key] != want {
				t.Errorf("%q came back as %q", s, back)
			}
		}
	})
}

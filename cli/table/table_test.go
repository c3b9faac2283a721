package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

func sample() *Table {
	t := New(Column{Heading: "ID"}, Column{Heading: "NAME", Shrink: 4}, Column{Heading: "CPUS", Right: true}, Column{Heading: "NODES", Shrink: 6})
	t.Add(Cell{Text: "1"}, Cell{Text: "a name\x1b[2J\n"}, Cell{Text: "4"}, Cell{Text: "node[1-400],other[7-9]"})
	t.Add(Cell{Text: "12"}, Cell{Text: ""}, Cell{Text: "128"}, Cell{Text: "日本語", Color: Red})
	return t
}

// TestTable checks alignment, shrinking and escaping.
func TestTable(t *testing.T) {
	for _, tt := range []struct {
		name  string
		style Style
		want  string
	}{
		{"no limit", Style{}, `ID  NAME             CPUS  NODES
1   a_name\x1b[2J\n     4  node[1-400],other[7-9]
12  -                 128  日本語
`},
		{"narrow", Style{Width: 34}, `ID  NAME         CPUS  NODES
1   a_name\x1b…     4  node[1-400…
12  -             128  日本語
`},
		{"narrower than the columns may be", Style{Width: 17}, `ID  NAME  CPUS  …
1   a_n…     4  …
12  -      128  …
`},
		{"colored", Style{Color: true}, "\x1b[1mID\x1b[0m  \x1b[1mNAME\x1b[0m             \x1b[1mCPUS\x1b[0m  \x1b[1mNODES\x1b[0m\n" +
			"1   a_name\\x1b[2J\\n     4  node[1-400],other[7-9]\n12  -                 128  \x1b[31m日本語\x1b[0m\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := sample().Write(&b, tt.style); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, b.String()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	for maxWidth := 1; maxWidth < 60; maxWidth++ {
		var b bytes.Buffer
		sample().Write(&b, Style{Width: maxWidth})
		for line := range strings.Lines(b.String()) {
			if n := textWidth(strings.TrimRight(line, "\n")); n > maxWidth {
				t.Errorf("width %d: %d cells in %q", maxWidth, n, line)
			}
		}
	}
}

// TestPriorities checks which columns become narrower or are left out first.
func TestPriorities(t *testing.T) {
	list := New(Column{Heading: "ID"}, Column{Heading: "LONGNAME", Shrink: 4, Rank: 1}, Column{Heading: "CPUS", Drop: 2}, Column{Heading: "NODES", Drop: 1},
		Column{Heading: "REASON", Shrink: 6, Rank: 2})
	list.Add(Cell{Text: "1"}, Cell{Text: "a-long-name"}, Cell{Text: "4"}, Cell{Text: "2"}, Cell{Text: "a-long-reason"})
	for width, want := range map[int]string{
		0:  "1  a-long-name  4  2  a-long-reason\n",
		35: "1  a-long-name  4  2  a-long-reason\n",
		30: "1  a-lon…  4  2  a-long-reason\n",
		28: "1  a-l…  4  2  a-long-reason\n",
		24: "1  a-l…  4  2  a-long-r…\n",
		21: "1  a-l…  4  2  a-lon…\n",
		20: "1  a-l…  4  a-long-…\n",
		18: "1  a-l…  4  a-lon…\n",
		17: "1  a-l…  a-long-…\n",
		12: "1  a-l…  a-…\n",
	} {
		var b bytes.Buffer
		list.NoHeader = true
		list.Write(&b, Style{Width: width})
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("width %d: -want +got\n%s", width, diff)
		}
	}
}

// TestWhole checks that a whole table is wider than a narrow terminal.
func TestWhole(t *testing.T) {
	var want, got bytes.Buffer
	whole := sample()
	whole.Whole = true
	if err := errors.Join(sample().Write(&want, Style{}), whole.Write(&got, Style{Width: 20})); err != nil || got.String() != want.String() {
		t.Errorf("%v\n%s", err, got.String())
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		in       string
		maxWidth int
		want     string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"日本", 4, "日本"}, {"日本", 3, "日…"}, {"日本", 2, "…"}, {"a", 0, ""}, {"e\u0301f", 2, "e\u0301f"}} {
		if got := Cut(tt.in, tt.maxWidth); got != tt.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.in, tt.maxWidth, got, tt.want)
		}
	}
}

// TestTerminal checks that tables have no colors and no maximum width if they
// are not printed on a terminal.
func TestTerminal(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, w := range []Terminal{TerminalOf(f), TerminalOf(new(bytes.Buffer))} {
		if w.IsTerminal() || w.Style() != (Style{}) {
			t.Errorf("%+v", w.Style())
		}
	}
}

// The constant hostile is a JSON object that contains various characters that
// must not be printed on a terminal.
const hostile = `{"z": "a\u001b[2J\u009b1m` + "\u009b\u202e\x7f\U000e0001" + `", "a": {"b": [1, -2.5, 1e3, true, null], "c": "yes", "d": "12", "e": "", "f": "x: y # z"}, "empty": {}, "none": []}`

// TestDocument checks that a document has the same content as the objects that
// were added, and that all its characters are printable.
func TestDocument(t *testing.T) {
	for _, inYAML := range []bool{false, true} {
		for n := range 3 {
			var b bytes.Buffer
			d := NewDocument(&b, "jobs", inYAML)
			for range n {
				if err := d.Add(json.RawMessage(hostile)); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if i := strings.IndexFunc(b.String(), isUnprintable); i >= 0 {
				t.Errorf("%q is not printable", b.String()[i:i+4])
			}
			var got, want any
			read := json.Unmarshal
			if inYAML {
				read = yaml.Unmarshal
			}
			text := `{"jobs": [` + strings.TrimSuffix(strings.Repeat(hostile+",", n), ",") + `]}`
			if err := read(b.Bytes(), &got); err != nil {
				t.Fatalf("%v\n%s", err, b.Bytes())
			}
			if err := json.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(plainJSON(t, want), plainJSON(t, got)); diff != "" {
				t.Errorf("YAML %t, %d elements: -want +got\n%s\n%s", inYAML, n, diff, b.Bytes())
			}
		}
	}
}

// plainJSON returns v as JSON. Equal numbers have the same text, even if their
// Go types differ.
func plainJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// FuzzEscapeJSON checks that escaping changes no value, and that the result
// contains only printable characters.
func FuzzEscapeJSON(f *testing.F) {
	for _, s := range []string{hostile, `"\u00e9` + "é\u0085" + `"`, "\"\xff\"", `{}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want, got any
		if json.Unmarshal(text, &want) != nil {
			return
		}
		var b bytes.Buffer
		if err := json.Compact(&b, text); err != nil {
			t.Fatal(err)
		}
		escaped := EscapeJSON(b.Bytes())
		if bytes.ContainsFunc(escaped, isUnprintable) {
			t.Fatalf("%q", escaped)
		}
		if err := json.Unmarshal(escaped, &got); err != nil || !cmp.Equal(want, got) {
			t.Fatalf("%q became %q: %v", text, escaped, err)
		}
		in, err := YAML(b.Bytes())
		if err != nil || bytes.ContainsFunc(in, isUnprintable) {
			t.Fatalf("%q: %v", in, err)
		}
	})
}

// TestEscaper checks that a text is escaped in the same way however it is cut into
// parts.
func TestEscaper(t *testing.T) {
	const in = "plain ü\n\x1b[2J\ttab\r\n日本\u202e\x00\xff\xc3(\xe6\x97"
	const want = "plain ü\n\\x1b[2J\ttab\r\n日本\\u202e\\x00\\xff\\xc3(\\xe6\\x97"
	for size := 1; size <= len(in); size++ {
		var b strings.Builder
		w := &Escaper{W: &b}
		for rest := in; rest != ""; {
			n := min(size, len(rest))
			if written, err := w.Write([]byte(rest[:n])); written != n || err != nil {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil || b.String() != want {
			t.Errorf("in parts of %d bytes: %q", size, b.String())
		}
	}
}

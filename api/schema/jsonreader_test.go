package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadJSONValues(t *testing.T) {
	tests := []struct {
		name, text string
		want       Value
	}{
		{"number", " -1.5e+3", Value{Kind: Number, Text: "-1.5e+3", Line: 1, Column: 2}},
		{"word", "\n\ttrue ", Value{Kind: Bool, Text: "true", Line: 2, Column: 2}},
		{"escapes", `"a\"\\\/\b\f\n\r\tä\u00e4\ud834\udd1e"`, Value{Kind: Text, Text: "a\"\\/\b\f\n\r\tää𝄞", Line: 1, Column: 1}},
		{"byte order mark", "\uFEFFnull", Value{Kind: Null, Line: 1, Column: 1}},
		{"places count characters", `{"ä":[1, "é", 2]}`, Value{Kind: Map, Line: 1, Column: 1, Items: []Value{
			{Kind: Array, Key: "ä", Line: 1, Column: 6, Items: []Value{
				{Kind: Number, Text: "1", Line: 1, Column: 7},
				{Kind: Text, Text: "é", Line: 1, Column: 10},
				{Kind: Number, Text: "2", Line: 1, Column: 15},
			}},
		}}},
		{"names given twice are both kept", `{"a":1,"a":2}`, Value{Kind: Map, Line: 1, Column: 1, Items: []Value{
			{Kind: Number, Key: "a", Text: "1", Line: 1, Column: 6},
			{Kind: Number, Key: "a", Text: "2", Line: 1, Column: 12},
		}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadJSON(tt.text, DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, *got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReadJSONRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing", "", "line 1, column 1: a value is missing"},
		{"two documents", "{} {}", "line 1, column 4: unexpected text after the document"},
		{"place on a later line", "{\n  \"a\": tru\n}", "line 2, column 8: not a value"},
		{"trailing comma", "[1,]", "line 1, column 4: not a value"},
		{"leading zero", "[01]", `line 1, column 3: "," or "]" is missing`},
		{"single quotes", "{'a':1}", "line 1, column 2: a name in quotes is missing"},
		{"NUL byte", "[\"a\x00\"]", "line 1, column 4: control character in a string"},
		{"half a surrogate pair", `["\ud834"]`, "line 1, column 3: half a surrogate pair"},
		{"Latin-1", "[\"\xe4\"]", "line 1, column 3: not UTF-8"},
		{"string without an end", `["abc`, "line 1, column 6: the string does not end"},
		{"too deep", strings.Repeat("[", 6), "line 1, column 6: nested too deeply"},
		{"too many", "[1,2,3,4,5,6,7,8]", "line 1, column 16: too many values"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadJSON(tt.text, Limits{Depth: 4, Values: 8})
			if err == nil {
				t.Fatal("accepted")
			}
			if d := cmp.Diff(tt.want, err.Error()); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestReadJSONLoose reads texts that only a loose reader accepts, and some that
// it refuses, too.
func TestReadJSONLoose(t *testing.T) {
	loose := Limits{Depth: 4, Values: 20, Loose: true}
	for _, tt := range []struct {
		text, strict string // the same values in strict JSON, at the same positions
		last         string // position of the last value in text
	}{
		{`{"a": 1, }`, `{"a": 1  }`, "1:7"},
		{"[1, [2,], {\"a\":3,\n},\n]", "[1, [2 ], {\"a\":3 \n} \n]", "1:11"},
		{"[\"a\tb\", 1]", `["a\tb", 1]`, "1:9"},
		{"{\"a\": \"x\n\r\ny\",\n \"b\": 2}", `{"a": "x\n\r\ny", "b": 2}`, "4:7"},
		{"[\"\\n\n\", 3]", `["\n\n", 3]`, "2:4"},
		{"{\"a\nb\": 1}", `{"a\nb": 1}`, "2:5"},
	} {
		got, err := ReadJSON(tt.text, loose)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		want, err := ReadJSON(tt.strict, DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		if !equalValues(want, got) {
			t.Errorf("%q: %s", tt.text, cmp.Diff(want, got, ignorePositions))
		}
		last := got.Items[len(got.Items)-1]
		if at := fmt.Sprintf("%d:%d", last.Line, last.Column); at != tt.last {
			t.Errorf("%q: the last value is at %s, want %s", tt.text, at, tt.last)
		}
		if _, err := ReadJSON(tt.text, DefaultLimits); err == nil {
			t.Errorf("%q: the strict reader accepts it", tt.text)
		}
	}
	for _, text := range []string{"[,]", "[1,,]", "[,1]", "{,}", `{"a":1,,}`, `{"a":1,`, "1,", "[1],", "[\"\x00\"]", "[\"\x1b\"]", "/**/ []", "[] // x", "['a']"} {
		if _, err := ReadJSON(text, loose); err == nil {
			t.Errorf("%q: accepted", text)
		}
	}
	_, err := ReadJSON("{\"script\": \"a\nb\n\",\n x}", loose)
	if err == nil || err.Error() != "line 4, column 2: a name in quotes is missing" {
		t.Errorf("the error after a text of several lines is: %v", err)
	}
}

// TestReadJSONCorpus reads a public corpus of JSON texts (nst/JSONTestSuite).
// ReadJSON must accept the files y_* and refuse the files n_*. It may accept or
// refuse the files i_*.
func TestReadJSONCorpus(t *testing.T) {
	dir := os.Getenv("JSON_CORPUS")
	if dir == "" {
		dir = "../../../shared/vectors/json-parsing/test_parsing" // beside the repository
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	if len(files) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no JSON corpus in %s (set JSON_CORPUS)", dir)
		}
		t.Skipf("no JSON corpus in %s (set JSON_CORPUS)", dir)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = ReadJSON(string(text), DefaultLimits)
			switch name := filepath.Base(file); {
			case name[0] == 'y' && err != nil:
				t.Errorf("refused: %v", err)
			case name[0] == 'n' && err == nil:
				t.Error("accepted")
			}
		})
	}
}

// FuzzReadJSON checks that the standard library accepts every text that
// ReadJSON accepts, and reads the same strings and numbers. A loose reader must
// read the same values, and accept only texts that become JSON without the
// commas before closing brackets, and with escapes for tabs and line breaks.
func FuzzReadJSON(f *testing.F) {
	for _, seed := range []string{
		`{"job":{"name":"a","tasks":4,"environment":["A=b"]},"script":"#!/bin/sh\n"}`,
		`[[],{},"",0,-0.1e-9,true,false,null]`, `"\ud834\udd1e\u00e4"`, "[[[[", `{"a":1,"a":2}`, "\uFEFF1", "\"\xff\"",
		"{\"a\n\":[1,\t],\n}", "[\"\\\n\",,]", "[\",]\t\"\n,\r]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lim := Limits{Depth: 50, Values: 10_000}
		v, err := ReadJSON(text, lim)
		lim.Loose = true
		loose, looseErr := ReadJSON(text, lim)
		if looseErr == nil {
			lim.Loose = false
			same, err := ReadJSON(tightened(text), lim)
			if err != nil || !equalValues(same, loose) {
				t.Fatalf("the loose reader accepted %q, but %q: %v", text, tightened(text), err)
			}
		}
		if err != nil {
			if v != nil {
				t.Error("a value and an error")
			}
			return
		}
		if looseErr != nil || !reflect.DeepEqual(v, loose) {
			t.Fatalf("the loose reader read %+v (%v), not %+v", loose, looseErr, v)
		}
		if !json.Valid([]byte(strings.TrimPrefix(text, "\uFEFF"))) {
			t.Fatalf("accepted a text that is not JSON: %q", text)
		}
		d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(text, "\uFEFF")))
		d.UseNumber()
		compareTokens(t, d, v)
	})
}

var (
	jsonParts = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|[^"]+`) // strings, and what is between them
	lastComma = regexp.MustCompile(`,([ \t\r\n]*[\]}])`)
	inStrings = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`)
)

// tightened returns a loose text as strict JSON.
func tightened(text string) string {
	return jsonParts.ReplaceAllStringFunc(text, func(part string) string {
		if part[0] == '"' {
			return inStrings.Replace(part)
		}
		return lastComma.ReplaceAllString(part, "$1")
	})
}

func compareTokens(t *testing.T, d *json.Decoder, v *Value) {
	t.Helper()
	token, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch v.Kind {
	case Array, Map:
		for i := range v.Items {
			if v.Kind == Map {
				if key, _ := d.Token(); key != v.Items[i].Key {
					t.Fatalf("name %q, want %q", v.Items[i].Key, key)
				}
			}
			compareTokens(t, d, &v.Items[i])
		}
		if _, err := d.Token(); err != nil { // the closing bracket
			t.Fatal(err)
		}
	case Text:
		if token != v.Text {
			t.Fatalf("string %q, want %q", v.Text, token)
		}
	case Number:
		if token.(json.Number).String() != v.Text {
			t.Fatalf("number %q, want %q", v.Text, token)
		}
	}
}

func BenchmarkReadJSON(b *testing.B) {
	for _, size := range []int{1_000, 100_000} {
		text := "[" + strings.Repeat("0,", size) + "0]"
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := ReadJSON(text, DefaultLimits); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestCountValues checks that the number of values is known before they are
// built. Commas and brackets in texts must not count.
func TestCountValues(t *testing.T) {
	for text, want := range map[string]int{
		`1`: 1, `[]`: 1, `{}`: 1, `[ ]`: 1, `[1]`: 2, `[1,1,1]`: 4, `{"a":1,"b":[1,{}]}`: 5, `[[],[],[[]]]`: 5,
		`"a,b[c{d"`: 1, `["\",\\",",[{"]`: 3, `{"a,b":"\\\\\",[,"}`: 2,
	} {
		var count func(Value) int
		count = func(v Value) int {
			n := 1
			for _, item := range v.Items {
				n += count(item)
			}
			return n
		}
		v, err := ReadJSON(text, DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := countValues(text, 100)
		if built := count(*v); got != want || built != want {
			t.Errorf("%s: counted %d, built %d, want %d", text, got, built, want)
		}
	}
	if n := JSONMemory(strings.Repeat("[1,", 1_000_000), DefaultLimits); n != 0 {
		t.Errorf("a text that is refused takes %d bytes", n)
	}
}

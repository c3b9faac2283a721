package schema

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// thing is the model of the object in these tests. Its table has a field of
// every kind.
type thing struct {
	Name    string
	Port    uint16
	Offset  int64
	Load    float64
	Big     bool
	Parts   []string
	State   uint32
	Inner   inner
	Started int
	Numbers Stream[int]
}

type inner struct{ ID uint64 }

var innerType = Object("inner", func() Fields[inner] {
	return Fields[inner]{
		F("id", Int64, func(i *inner) *uint64 { return &i.ID }, "Its number")}
})

// colours is a set of four words: two colours, which are values of the low four
// bits, and two flags.
var colours = Words("",
	Part("RED", uint32(0xf), 0), Part("BLUE", uint32(0xf), 1), Bit("DARK", uint32(0x10)), Bit("NEON", uint32(0x20), Since(42)))

var thingType = Object("thing", func() Fields[thing] {
	return Fields[thing]{
		F("name", String, func(o *thing) *string { return &o.Name }, "Its name", Required(0)),
		F("port", Int32, func(o *thing) *uint16 { return &o.Port }, "Where it listens", Until(42)),
		Show("port", String, func(o *thing) string { return "port" }, "The same as text", Since(42), Deprecated(43)),
		F("offset", Int64, func(o *thing) *int64 { return &o.Offset }, "Signed", Unit("s")),
		F("load", Float, func(o *thing) *float64 { return &o.Load }, "A fraction"),
		F("big", Boolean, func(o *thing) *bool { return &o.Big }, "Whether it is big"),
		F("parts", List(String), func(o *thing) *[]string { return &o.Parts }, "Its parts"),
		F("state", colours.Type, func(o *thing) *uint32 { return &o.State }, "Its colours"),
		F("inner", innerType.Type, func(o *thing) *inner { return &o.Inner }, "Another table"),
		Group("group", "The same object again", []Field[thing]{
			F("schedd_start_time", Int64, func(o *thing) *int { return &o.Started }, "Spelled twice", InSlurm("slurmd_start_time")),
		}),
		Set("even", Int32, func(o *thing, n int64) error {
			if n%2 != 0 {
				return errors.New("must be even")
			}
			o.Offset = n
			return nil
		}, "Sets the offset"),
		F("numbers", StreamOf(Int32[int]), func(o *thing) *Stream[int] { return &o.Numbers }, "Streamed", Extension),
	}
})

func TestRender(t *testing.T) {
	o := thing{Name: "a", Port: 7, Offset: -1, Load: .5, Big: true, Parts: []string{"x", "y"}, State: 0x31, Inner: inner{9}, Started: 3,
		Numbers: func(each func(*int) error) error {
			for i := range 3 {
				if err := each(&i); err != nil {
					return err
				}
			}
			return nil
		}}
	tests := []struct {
		name string
		view View
		want string
	}{
		{"old", View{Version: 41, Spelling: Sched}, `{"name":"a","port":7,"offset":-1,"load":0.5,"big":true,"parts":["x","y"],"state":["BLUE","DARK"],` +
			`"inner":{"id":9},"group":{"schedd_start_time":3},"numbers":[0,1,2]}`},
		{"new, other spelling", View{Version: 42, Spelling: Slurm}, `{"name":"a","port":"port","offset":-1,"load":0.5,"big":true,"parts":["x","y"],"state":["BLUE","DARK","NEON"],` +
			`"inner":{"id":9},"group":{"slurmd_start_time":3},"numbers":[0,1,2]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := written(t, func(e Encoder) { thingType.Renderer(tt.view)(e, &o) })
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParse(t *testing.T) {
	tests := []struct {
		name, text string
		version    Version
		want       thing
		warnings   []Note
		errors     []Note
	}{
		{name: "all", version: 42, text: `{"name":"a","offset":-5,"load":2,"big":false,"parts":["x"],"state":["blue","NEON"],"inner":{"id":1},"group":{"schedd_start_time":4}}`,
			want: thing{Name: "a", Offset: -5, Load: 2, Parts: []string{"x"}, State: 0x21, Inner: inner{1}, Started: 4}},
		{name: "null counts as absent", version: 42, text: `{"name":"a","offset":null}`, want: thing{Name: "a"}},
		{name: "null in a required field", version: 42, text: `{"name":null}`,
			errors: []Note{{Source: "#/name", Text: "must not be null", Line: 1, Column: 9}}},
		{name: "accepted with a warning", version: 42, text: `{"name":5,"offset":"6","big":1,"parts":"x","state":"RED,DARK","colour":"?"}`,
			want: thing{Name: "5", Offset: 6, Big: true, Parts: []string{"x"}, State: 0x10},
			warnings: []Note{
				{Source: "#/name", Text: "expected string, got number", Line: 1, Column: 9},
				{Source: "#/offset", Text: "expected integer, got string", Line: 1, Column: 20},
				{Source: "#/big", Text: "expected boolean, got number", Line: 1, Column: 30},
				{Source: "#/parts/", Text: "expected array, got string", Line: 1, Column: 40},
				{Source: "#/state/", Text: "expected array, got string", Line: 1, Column: 52},
				{Source: "#/colour", Text: "unknown field, ignored", Unknown: true, Line: 1, Column: 72},
			}},
		{name: "whole number with a fraction", version: 42, text: `{"name":"a","offset":1.5e1}`, want: thing{Name: "a", Offset: 15}},
		{name: "can't be understood", version: 41, text: `{"port":70000,"offset":"many","load":"x","big":"maybe","parts":{},"state":["GREEN"],"inner":[],"even":3,"numbers":[]}`,
			errors: []Note{
				{Source: "#/port", Text: "70000 is out of range, 0 to 65535", Line: 1, Column: 9},
				{Source: "#/offset", Text: `expected integer, got string "many"`, Line: 1, Column: 24},
				{Source: "#/load", Text: "expected number, got string \"x\"", Line: 1, Column: 38},
				{Source: "#/big", Text: `expected true or false, got string "maybe"`, Line: 1, Column: 48},
				{Source: "#/parts", Text: "expected array, got object", Line: 1, Column: 64},
				{Source: "#/state", Text: `unknown word "GREEN"; expected one of RED, BLUE, DARK`, Line: 1, Column: 75},
				{Source: "#/inner", Text: "expected object, got array", Line: 1, Column: 93},
				{Source: "#/even", Text: "must be even", Line: 1, Column: 103},
				{Source: "#/numbers", Text: "can't be set", Line: 1, Column: 115},
				{Source: "#/name", Missing: true, Text: "required, but missing", Line: 1, Column: 1},
			}},
		{name: "fractions and half words are not integers", version: 42, text: `{"name":"a","offset":1.5,"even":"4x"}`, want: thing{Name: "a"},
			errors: []Note{
				{Source: "#/offset", Text: "expected integer, got 1.5", Line: 1, Column: 22},
				{Source: "#/even", Text: `expected integer, got string "4x"`, Line: 1, Column: 33},
			}},
		{name: "given twice", version: 42, text: `{"name":"a","name":"b"}`, want: thing{Name: "a"},
			errors: []Note{{Source: "#/name", Text: "set twice", Line: 1, Column: 20}}},
		{name: "NUL", version: 42, text: `{"name":"root\u0000x","parts":["ok","a\u0000"],"a\u0000/~":1}`, want: thing{Parts: nil},
			warnings: []Note{{Source: "#/a\x00~1~0", Text: "unknown field, ignored", Unknown: true, Line: 1, Column: 60}},
			errors: []Note{
				{Source: "#/name", Text: "contains a NUL", Line: 1, Column: 9},
				{Source: "#/parts/1", Text: "contains a NUL", Line: 1, Column: 37},
			}},
		{name: "not an object", version: 42, text: `[]`, errors: []Note{{Source: "#", Text: "expected object, got array", Line: 1, Column: 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := ReadJSON(tt.text, DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			var got thing
			var r Report
			ok := thingType.Parser(View{Version: tt.version})(&r, doc, &got)
			if d := cmp.Diff(tt.warnings, r.Warnings); d != "" {
				t.Errorf("warnings: %s", d)
			}
			if d := cmp.Diff(tt.errors, r.Errors); d != "" {
				t.Errorf("errors: %s", d)
			}
			if ok != (len(tt.errors) == 0) || ok != r.OK() {
				t.Errorf("ok is %v", ok)
			}
			if tt.name == "can't be understood" {
				return // after an error, its contents are undefined
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReportIsBounded(t *testing.T) {
	var r Report
	for range 1000 {
		r.Warn(&Value{}, "odd")
	}
	if len(r.Warnings) != maxNotes+1 {
		t.Errorf("%d warnings", len(r.Warnings))
	}
}

func TestShape(t *testing.T) {
	s := thingType.Shape(View{Version: 43})
	var got []string
	for _, p := range s.Fields {
		line := p.Name + " " + p.Shape.Kind
		if p.Required {
			line += " required"
		}
		if p.Deprecated {
			line += " deprecated"
		}
		if p.Undocumented {
			line += " ours"
		}
		if p.Unit != "" {
			line += " in " + p.Unit
		}
		got = append(got, line)
	}
	want := []string{"name string required", "port string deprecated", "offset integer in s", "load number", "big boolean", "parts array",
		"state array", "inner object", "group object", "even integer", "numbers array ours"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestStreamFailure(t *testing.T) {
	gone := errors.New("controller gone")
	o := thing{Numbers: func(each func(*int) error) error { return gone }}
	j := NewJSONWriter(nil, Compact)
	thingType.Renderer(View{Version: 43})(j, &o)
	if j.Err() != gone {
		t.Errorf("the body ended with %v", j.Err())
	}
}

// FuzzParse checks that every document is either refused with an error, or
// results in an object that can be written and parsed again.
func FuzzParse(f *testing.F) {
	f.Add(`{"name":"a","offset":"6","big":1,"parts":"x","state":"RED,DARK","colour":"?"}`)
	f.Add(`{"name":5,"port":65535,"inner":{"id":9223372036854775807}}`)
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := ReadJSON(text, Limits{Depth: 20, Values: 1000})
		if err != nil {
			return
		}
		var o, reparsed thing
		var r Report
		if !thingType.Parser(View{Version: 41})(&r, doc, &o) {
			if r.OK() {
				t.Fatal("refused without a reason")
			}
			return
		}
		o.Numbers = nil
		rendered := written(t, func(e Encoder) { thingType.Renderer(View{Version: 41})(e, &o) })
		doc, err = ReadJSON(rendered, DefaultLimits)
		if err != nil {
			t.Fatalf("%s: %v", rendered, err)
		}
		doc.Items = doc.Items[:len(doc.Items)-1] // without the stream
		var r2 Report
		if !thingType.Parser(View{Version: 41})(&r2, doc, &reparsed) {
			t.Fatalf("%s: %+v", rendered, r2.Errors)
		}
	})
}

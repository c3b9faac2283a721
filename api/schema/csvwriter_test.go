package schema_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"schedrestd/api/schema"
)

// TestCSVWriter checks the columns and the cells of a table.
func TestCSVWriter(t *testing.T) {
	text, number := &schema.Shape{Kind: "string"}, &schema.Shape{Kind: "integer"}
	record := &schema.Shape{Kind: "object", Fields: []schema.Property{
		{Name: "name", Shape: text}, {Name: "list", Shape: &schema.Shape{Kind: "array", Items: text}},
		{Name: "time", Shape: &schema.Shape{Kind: "object", Fields: []schema.Property{{Name: "start", Shape: number}, {Name: "end", Shape: number}}}},
		{Name: "uses", Shape: &schema.Shape{Kind: "array", Items: &schema.Shape{Kind: "object", Fields: []schema.Property{{Name: "name", Shape: text}, {Name: "count", Shape: number}}}}},
		{Name: "factor", Shape: &schema.Shape{Kind: "number"}}, {Name: "on", Shape: &schema.Shape{Kind: "boolean"}},
	}}
	only, err := schema.Select(record, []string{"name", "time.end"})
	if err != nil {
		t.Fatal(err)
	}
	write := func(e schema.Encoder, names ...string) {
		e.BeginObject()
		e.Key("records")
		e.BeginArray()
		for _, name := range names {
			e.BeginObject()
			e.Key("name")
			e.String(name)
			e.Key("list")
			e.BeginArray()
			e.String("a")
			e.String("b")
			e.EndArray()
			e.Key("time")
			e.BeginObject()
			e.Key("start")
			e.Int(-1)
			e.Key("end")
			e.Uint(math.MaxUint64)
			e.EndObject()
			e.Key("uses")
			e.BeginArray()
			for _, use := range []string{"cpu", "mem"} {
				e.BeginObject()
				e.Key("name")
				e.String(use)
				e.Key("count")
				e.Int(5)
				e.EndObject()
			}
			e.EndArray()
			e.Key("factor")
			e.Float(math.NaN())
			e.Key("on")
			e.Bool(true)
			e.EndObject()
		}
		e.EndArray()
		e.Key("others") // not in the table
		e.BeginArray()
		e.BeginObject()
		e.Key("name")
		e.String("other")
		e.EndObject()
		e.EndArray()
		e.EndObject()
	}
	for _, tt := range []struct {
		name  string
		view  schema.View
		names []string
		want  string
	}{
		{"no records", schema.View{}, nil, "name,list,time.start,time.end,uses,factor,on\n"},
		{"records", schema.View{}, []string{"x", ""}, "name,list,time.start,time.end,uses,factor,on\n" + `x,"a,b",-1,18446744073709551615,"cpu,5,mem,5",0,true` + "\n" + `,"a,b",-1,18446744073709551615,"cpu,5,mem,5",0,true` + "\n"},
		{"selected fields", schema.View{Only: only}, []string{"x"}, "name,time.end\nx,18446744073709551615\n"},
		{"special characters", schema.View{Only: only}, []string{"a,b", "a\"b", "a\r\nb", "ü\xff"},
			"name,time.end\n\"a,b\",18446744073709551615\n\"a\"\"b\",18446744073709551615\n\"a\r\nb\",18446744073709551615\nü\ufffd,18446744073709551615\n"},
		{"formulas", schema.View{Only: only}, []string{"=1", "+1", "-1", "@x", "\tx", "1=1"},
			"name,time.end\n'=1,18446744073709551615\n'+1,18446744073709551615\n'-1,18446744073709551615\n'@x,18446744073709551615\n'\tx,18446744073709551615\n1=1,18446744073709551615\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			w := schema.NewCSVWriter(&out, record, tt.view)
			write(w, tt.names...)
			if err := w.Flush(); err != nil || out.String() != tt.want {
				t.Errorf("got %q, %v\nwant %q", out.String(), err, tt.want)
			}
		})
	}
	var out strings.Builder
	w := schema.NewCSVWriter(&out, record, schema.View{})
	w.Fail(errors.New("broken"))
	if write(w, "x"); w.Flush() == nil || out.Len() > 0 {
		t.Errorf("after an error: %q", out.String())
	}
}

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api/schema"
)

type inner struct {
	Text  string
	Count uint32
}

type outer struct {
	Name  string
	Words []string
	Inner inner
	Rows  []inner
	Set   wrap
	None  wrap
	All   wrap
	Last  string
}

type wrap struct {
	Set, Infinite bool
	Number        uint32
}

var innerTable = schema.Object("inner", func() schema.Fields[inner] {
	return schema.Fields[inner]{
		schema.F("text", schema.String, func(i *inner) *string { return &i.Text }, ""),
		schema.F("count", schema.Int32, func(i *inner) *uint32 { return &i.Count }, ""),
	}
})

var wrapTable = schema.Object("wrap", func() schema.Fields[wrap] {
	return schema.Fields[wrap]{
		schema.F("set", schema.Boolean, func(w *wrap) *bool { return &w.Set }, ""),
		schema.F("infinite", schema.Boolean, func(w *wrap) *bool { return &w.Infinite }, ""),
		schema.F("number", schema.Int32, func(w *wrap) *uint32 { return &w.Number }, ""),
	}
})

var outerTable = schema.Object("outer", func() schema.Fields[outer] {
	return schema.Fields[outer]{
		schema.F("name", schema.String, func(o *outer) *string { return &o.Name }, ""),
		schema.F("words", schema.List(schema.String), func(o *outer) *[]string { return &o.Words }, ""),
		schema.F("inner", innerTable.Type, func(o *outer) *inner { return &o.Inner }, ""),
		schema.F("rows", schema.List(innerTable.Type), func(o *outer) *[]inner { return &o.Rows }, ""),
		schema.F("set", wrapTable.Type, func(o *outer) *wrap { return &o.Set }, ""),
		schema.F("none", wrapTable.Type, func(o *outer) *wrap { return &o.None }, ""),
		schema.F("all", wrapTable.Type, func(o *outer) *wrap { return &o.All }, ""),
		schema.F("last", schema.String, func(o *outer) *string { return &o.Last }, ""),
	}
})

func TestRecord(t *testing.T) {
	got, err := recordOf(outerTable)(&outer{
		Name: "x\n\x1b[2J", Words: []string{"a", "b"}, Inner: inner{"t", 1}, Rows: []inner{{"u", 2}, {"v", 3}},
		Set: wrap{Set: true, Number: 4}, All: wrap{Infinite: true}, Last: "z",
	})
	want := record{{"name", `x\n\x1b[2J`}, {"words", "a,b"}, {"inner.text", "t"}, {"inner.count", "1"},
		{"rows", "u,2,v,3"}, {"set", "4"}, {"none", ""}, {"all", "unlimited"}, {"last", "z"}}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(field{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

package variant

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
)

var (
	text    = &schema.Shape{Kind: "string"}
	number  = &schema.Shape{Kind: "integer"}
	wrapped = &schema.Shape{Name: "uint32_no_val_struct", Kind: "object", Fields: []schema.Property{
		{Name: "set", Shape: &schema.Shape{Kind: "boolean"}}, {Name: "infinite", Shape: &schema.Shape{Kind: "boolean"}}, {Name: "number", Shape: number},
	}}
	body = &schema.Shape{Kind: "object", Fields: []schema.Property{
		{Name: "meta", Shape: text},
		{Name: "things", Shape: &schema.Shape{Kind: "array", Items: &schema.Shape{Kind: "object", Fields: []schema.Property{
			{Name: "name", Shape: text},
			{Name: "limits", Shape: &schema.Shape{Kind: "object", Fields: []schema.Property{{Name: "count", Shape: wrapped}}}},
			{Name: "flags", Shape: &schema.Shape{Kind: "array", Items: &schema.Shape{Kind: "string", Enum: []string{"UP", "DOWN"}}}},
			{Name: "tres", Shape: &schema.Shape{Kind: "array", Items: &schema.Shape{Kind: "object", Fields: []schema.Property{{Name: "type", Shape: text}}}}},
		}}}},
	}}
	hints = []Hint{
		{Field: regexp.MustCompile(`name$`), Known: []string{`"one"`, `"two"`}, Unknown: `"none"`},
		{Field: regexp.MustCompile(`tres$`), Element: `{"type": "cpu", "count": 3}`},
	}
)

func find(t *testing.T, cases []Case, field, form string) Case {
	t.Helper()
	i := slices.IndexFunc(cases, func(c Case) bool { return c.Field == field && c.Form == form })
	if i < 0 {
		t.Fatalf("no case %s of %s in %v", form, field, cases)
	}
	return cases[i]
}

func TestCases(t *testing.T) {
	cases := Cases(body, hints)
	for _, tt := range []struct{ field, form, value string }{
		{"things", "empty list", `[]`},
		{"things", "null", `null`},
		{"things[].name", "text", `"one"`},
		{"things[].name", "another text", `"two"`},
		{"things[].name", "unknown reference", `"none"`},
		{"things[].name", "known and unknown reference", `"one,none"`},
		{"things[].name", "empty text", `""`},
		{"things[].limits", "wrong type, word", `"word"`},
		{"things[].limits.count", "number", `12`},
		{"things[].limits.count", "text number", `"12"`},
		{"things[].limits.count", "word infinite", `"infinite"`},
		{"things[].limits.count", "{set true, infinite true, number n}", `{"set": true, "infinite": true, "number": 12}`},
		{"things[].limits.count", "{number n}", `{"number": 12}`},
		{"things[].limits.count", "{set false}", `{"set": false}`},
		{"things[].flags", "list of DOWN", `["DOWN"]`},
		{"things[].flags", "list of two", `["UP", "DOWN"]`},
		{"things[].flags", "lower case", `["up"]`},
		{"things[].flags", "unknown word", `["NOSUCHWORD"]`},
		{"things[].tres", "list of one", `[{"type": "cpu", "count": 3}]`},
		{"things[].limits.count", "empty object", `{}`},
		{"things[].limits.count", "wrong type, list", `[12]`},
		{"things[].tres[].type", "boolean", `true`},
	} {
		if c := find(t, cases, tt.field, tt.form); c.Value != tt.value {
			t.Errorf("%s, %s: %s, want %s", tt.field, tt.form, c.Value, tt.value)
		}
	}
	if slices.ContainsFunc(cases, func(c Case) bool { return c.Field == "meta" }) {
		t.Error("meta is part of answers only")
	}
	if slices.ContainsFunc(cases, func(c Case) bool { return c.Field == "things[].limits.count.set" }) {
		t.Error("the members of a wrapped number are no fields of their own")
	}
}

// TestCasesOfAllBodies makes all cases of all bodies, which must be JSON. No
// field may have the same form twice.
func TestCasesOfAllBodies(t *testing.T) {
	count := 0
	for _, e := range api.Endpoints {
		if e.Request == nil {
			continue
		}
		for v := api.V40; v <= api.V45; v++ {
			if !e.In(v) {
				continue
			}
			seen := map[[2]string]bool{}
			for _, c := range Cases(e.Request.Shape(schema.View{Version: v, Spelling: schema.Slurm}), nil) {
				count++
				if !json.Valid([]byte(c.Value)) {
					t.Fatalf("%s: %v is not JSON", e.Path, c)
				}
				if key := [2]string{c.Field, c.Form}; seen[key] {
					t.Errorf("%s in %v: the form exists twice: %v", e.Path, v, c)
				} else {
					seen[key] = true
				}
				if _, err := Body(`{}`, nil, c); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if count < 10000 {
		t.Errorf("only %d cases", count)
	}
}

func TestBody(t *testing.T) {
	cases := Cases(body, hints)
	for _, tt := range []struct {
		name, base string
		cases      []Case
		want       string
	}{
		{"nothing", `{"things": [{"name": "x"}]}`, nil, `{"things":[{"name":"x"}]}`},
		{"a field of an element", `{"things": [{"name": "x"}]}`, []Case{find(t, cases, "things[].limits.count", "number")}, `{"things":[{"limits":{"count":12},"name":"x"}]}`},
		{"the list", `{"things": [{"name": "x"}]}`, []Case{find(t, cases, "things", "null")}, `{"things":null}`},
		{"a new list", `{}`, []Case{find(t, cases, "things[].name", "zero")}, `{"things":[{"name":0}]}`},
		{"a field of an element that a hint gives", `{}`, []Case{find(t, cases, "things[].tres[].type", "null")}, `{"things":[{"tres":[{"count":3,"type":null}]}]}`},
		{"two fields", `{}`, []Case{find(t, cases, "things[].name", "text"), find(t, cases, "things[].flags", "list of UP")}, `{"things":[{"flags":["UP"],"name":"one"}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := Body(tt.base, hints, tt.cases...); err != nil || got != tt.want {
				t.Errorf("%s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestPairs(t *testing.T) {
	cases := Cases(body, hints)
	pairs := Pairs(cases, rand.New(rand.NewPCG(1, 2)))
	count := map[string]int{}
	for _, p := range pairs {
		if contains(p[0].Field, p[1].Field) || contains(p[1].Field, p[0].Field) {
			t.Errorf("%v and %v are not two fields", p[0], p[1])
		}
		count[p[0].Field]++
	}
	for _, field := range []string{"things[].name", "things[].limits.count", "things[].flags", "things[].tres[].type"} {
		if count[field] != 1 {
			t.Errorf("%s has %d pairs of its own", field, count[field])
		}
	}
	again := Pairs(cases, rand.New(rand.NewPCG(1, 2)))
	if !slices.Equal(pairs, again) {
		t.Error("the same seed gives other pairs")
	}
}

func TestFieldsWith(t *testing.T) {
	got, err := FieldsWith(`{"things": [{"name": "xNAMEy", "count": 1, "of": {"word": "other"}}], "list": ["NAME"], "n": null, "user": ""}`, "NAME")
	slices.Sort(got)
	if want := []string{"list", "things", "things[].name", "user"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

package api

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// TestWrapperIsOneInAllLayouts checks that the optimized code for compact JSON
// writes the same wrapper as the general code does.
func TestWrapperIsOneInAllLayouts(t *testing.T) {
	render := number[uint32]().Renderer(schema.View{Version: V43})
	for _, o := range []model.Opt[uint32]{{}, model.Some[uint32](7), model.Some[uint32](0), model.Infinite[uint32](), {Number: 9}, {Number: 9, Set: true, Infinite: true}} {
		var text [2]bytes.Buffer
		for i, layout := range []schema.Layout{schema.Compact, schema.Pretty} {
			j := schema.NewJSONWriter(&text[i], layout)
			j.BeginArray()
			render(j, &o)
			render(j, &o)
			j.EndArray()
			if err := j.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text[1].Bytes()); err != nil || compact.String() != text[0].String() {
			t.Errorf("%+v: got %s in the layout Compact, but %s in Pretty (%v)", o, &text[0], &compact, err)
		}
	}
}

// TestNumbers checks the forms in which a client may send a number that can be
// unset or infinite.
func TestNumbers(t *testing.T) {
	seven, infinite, unset := model.Some[uint32](7), model.Infinite[uint32](), model.Opt[uint32]{}
	large := model.Some[uint32](3_000_000_000)
	for _, tt := range []struct {
		body string
		want *model.Opt[uint32] // nil for an error
		// limit is the result of limitNumber, if that differs.
		limit *model.Opt[uint32]
	}{
		{body: `7`, want: &seven},
		{body: `"7"`, want: &seven},
		{body: `-1`, want: &infinite},
		{body: `"-1"`, want: &infinite},
		{body: `"infinite"`, want: &infinite},
		{body: `"Infinite"`, want: &infinite},
		{body: `{"set": true, "infinite": false, "number": 7}`, want: &seven},
		{body: `{"set": true, "number": "7"}`, want: &seven},
		{body: `{"number": 7}`, want: &seven},
		{body: `{"infinite": false, "number": 7}`, want: &seven},
		{body: `{"set": true, "number": -1}`, want: &infinite},
		{body: `{"set": false, "infinite": true, "number": 0}`, want: &infinite},
		{body: `{"infinite": true}`, want: &infinite},
		{body: `{"set": false, "number": 7}`, want: &unset},
		{body: `{"infinite": false}`, want: &unset},
		{body: `{}`, want: &unset},
		{body: `{"set": true}`},
		{body: `{"set": true, "infinite": false}`},
		{body: `{"set": true, "number": null}`},
		{body: `{"set": true, "number": -2}`},
		{body: `-2`},
		{body: `"many"`},
		{body: `""`},
		{body: `true`},
		{body: `[]`},
		{body: `3000000000`, want: &large, limit: nil},
		{body: `4294967294`},
	} {
		for name, typ := range map[string]schema.Type[model.Opt[uint32]]{"number": number[uint32](), "limitNumber": limitNumber()} {
			want := tt.want
			if want == &large && name == "limitNumber" {
				want = tt.limit
			}
			var got model.Opt[uint32]
			ok := parseValue(t, typ, tt.body, &got)
			if ok != (want != nil) || ok && got != *want {
				t.Errorf("%s %s: %+v, %v; want %+v", name, tt.body, got, ok, want)
			}
		}
	}
}

// TestFactors checks the forms in which a client may send a floating-point
// number. A wrapper without a number must not change the value.
func TestFactors(t *testing.T) {
	const before = 2.5
	refused := math.NaN()
	for body, want := range map[string]float64{
		`1.5`: 1.5, `2`: 2, `"1.5"`: 1.5, `0`: 0, `"infinite"`: model.FloatInfinite,
		`{"set": true, "number": 1.5}`: 1.5, `{"number": 1.5}`: 1.5, `{"infinite": true}`: model.FloatInfinite,
		`{}`: before, `{"infinite": false}`: before, `{"set": false}`: before, `{"set": false, "number": 3}`: before,
		`{"set": true}`: refused, `{"set": true, "number": null}`: refused, `-0.5`: refused, `"NaN"`: refused, `"word"`: refused, `[]`: refused, `1e400`: refused,
	} {
		got := before
		if ok := parseValue(t, factor(), body, &got); ok != !math.IsNaN(want) || ok && got != want {
			t.Errorf("%s: %v, %v; want %v", body, got, ok, want)
		}
	}
}

// parseValue parses a JSON text, and reports whether there was no error.
func parseValue[T any](t *testing.T, typ schema.Type[T], body string, into *T) bool {
	t.Helper()
	doc, err := schema.ReadJSON(body, schema.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	var r schema.Report
	ok := typ.Parser(schema.View{Version: V45})(&r, doc, into)
	return ok && r.OK()
}

package api

import (
	"bytes"
	"encoding/json"
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

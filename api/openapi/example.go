package openapi

import (
	"strconv"

	"schedrestd/api/schema"
)

// example writes an example, which the tables contain as JSON.
func (d *writer) example(text string) {
	v, err := schema.ReadJSON(text, schema.DefaultLimits)
	if err != nil {
		d.Fail(err)
		return
	}
	d.value(v)
}

func (d *writer) value(v *schema.Value) {
	switch v.Kind {
	case schema.Map:
		d.BeginObject()
		for i := range v.Items {
			d.Key(v.Items[i].Key)
			d.value(&v.Items[i])
		}
		d.EndObject()
	case schema.Array:
		d.BeginArray()
		for i := range v.Items {
			d.value(&v.Items[i])
		}
		d.EndArray()
	case schema.Text:
		d.String(v.Text)
	case schema.Bool:
		d.Bool(v.Text == "true")
	case schema.Number:
		n, err := strconv.ParseInt(v.Text, 10, 64)
		if err != nil {
			d.Fail(err)
		}
		d.Int(n)
	default:
		d.Null()
	}
}

package rest

import (
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
)

// bodyShape returns the shape of the request's body, which describes the fields
// that a body may have. It keeps the shape for later requests. Creating the
// shape of a large body, such as a submission, takes as long as parsing the
// body.
func (q *request) bodyShape() *schema.Shape {
	key := routeView{q.route.Endpoint, q.view}
	if shape, ok := q.server.shapes.Load(key); ok {
		return shape.(*schema.Shape)
	}
	shape := q.route.Request.Shape(q.view)
	q.server.shapes.Store(key, shape)
	return shape
}

// routeView identifies an operation in one version and one spelling of its path
// (sched or slurm).
type routeView struct {
	endpoint *api.Endpoint
	view     schema.View
}

// bodyFields lists the fields that a body sets, such as "job/time_limit". It
// lists each field once, even if several records in a list set it. It omits the
// values, because they may be secret. It also omits fields that are not in the
// body's table.
func bodyFields(shape *schema.Shape, doc *schema.Value) []string {
	var list []string
	walkFields(shape, doc, "", &list)
	return list
}

func walkFields(shape *schema.Shape, doc *schema.Value, at string, list *[]string) {
	// If a list is empty, the field itself is listed, because an empty list
	// removes the existing elements.
	if shape.Kind == "array" && doc.Kind == schema.Array && isRecord(shape.Items) && len(doc.Items) > 0 {
		for i := range doc.Items {
			walkFields(shape.Items, &doc.Items[i], at, list)
		}
		return
	}
	if !isRecord(shape) || doc.Kind != schema.Map {
		if name := strings.TrimPrefix(at, "/"); name != "" && len(*list) < maxFields && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
		return
	}
	for i := range doc.Items {
		m := &doc.Items[i]
		k := slices.IndexFunc(shape.Fields, func(p schema.Property) bool { return p.Name == m.Key })
		if k >= 0 && m.Kind != schema.Null && !shape.Fields[k].Ignored {
			walkFields(shape.Fields[k].Shape, m, at+"/"+m.Key, list)
		}
	}
}

// maxFields is the maximum number of names that bodyFields collects. A line of
// the audit log has space for fewer names.
const maxFields = 100

// isRecord reports whether a shape has fields. It returns false for the object
// that wraps a number that may be unset.
func isRecord(s *schema.Shape) bool {
	return s != nil && s.Kind == "object" && !strings.Contains(s.Name, "_no_val")
}

package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// variables returns the type of an array of strings of the form NAME=value. An
// empty string is omitted with a warning: slurmctld drops a message that has an
// empty variable.
func variables() schema.Type[[]string] {
	array := stringArray()
	parse := array.Parser(schema.View{})
	return schema.Simple(array.Shape(schema.View{}), array.Renderer(schema.View{}),
		func(r *schema.Report, doc *schema.Value, into *[]string) bool {
			if !parse(r, doc, into) {
				return false
			}
			before := len(*into)
			if *into = slices.DeleteFunc(*into, func(s string) bool { return s == "" }); len(*into) < before {
				r.Warn(doc, "empty variables are omitted")
			}
			return true
		})
}

// environment returns the type of a job's environment: an array of strings of
// the form NAME=value. Many clients send an object with names and values
// instead. The parser accepts such an object, but adds a warning. As in slurmrestd,
// a variable that is null exists, and is empty.
func environment() schema.Type[[]string] {
	array := variables()
	parse := array.Parser(schema.View{})
	return schema.Simple(array.Shape(schema.View{}), array.Renderer(schema.View{}),
		func(r *schema.Report, doc *schema.Value, into *[]string) bool {
			if doc.Kind != schema.Map {
				return parse(r, doc, into)
			}
			r.WarnKind(doc, schema.Array)
			ok := true
			for i := range doc.Items {
				m := &doc.Items[i]
				r.In(m.Key, func() {
					var value string
					switch {
					case strings.ContainsAny(m.Key, "=\x00") || m.Key == "":
						ok = r.Error(m, "not a valid variable name")
					case m.Kind == schema.Null:
						r.Warn(m, "expected string, got null")
						*into = append(*into, m.Key+"=")
					case schema.ParseText(r, m, &value):
						*into = append(*into, m.Key+"="+value)
					default:
						ok = false
					}
				})
			}
			return ok
		})
}

// deriveEnvironment adds the variables to the environment that the commands and
// daemons of Slurm read in the job instead of the fields in the RPC: the resource
// limits and the distribution of tasks. They replace variables of the same name,
// as in slurmrestd. If the fields contradict each other, it returns an error and
// the name of the field.
func deriveEnvironment(d *model.JobDesc) (field string, err error) {
	if d.PlaneSize.Set && !d.Distribution.Set {
		d.Distribution = model.Some(planeLayout)
	}
	layout := d.Distribution.Number & layoutBits
	switch {
	case !d.Distribution.Set:
	case layout == planeLayout && !d.PlaneSize.Set:
		return "distribution", errors.New("plane has no size: expected plane=4, or distribution_plane_size")
	case layout != planeLayout && d.PlaneSize.Set:
		return "distribution_plane_size", fmt.Errorf("can't be combined with the distribution %s", layoutName(d.Distribution.Number))
	case layout == arbitraryLayout && d.ReqNodes.Empty():
		return "distribution", errors.New("arbitrary needs required_nodes, which has a node for each task")
	}
	if d.Distribution.Set {
		d.Derived = append(d.Derived, "SLURM_DISTRIBUTION="+layoutName(d.Distribution.Number))
	}
	if d.PlaneSize.Set {
		d.Derived = append(d.Derived, fmt.Sprintf("SLURM_DIST_PLANESIZE=%d", d.PlaneSize.Number))
	}
	if layout == arbitraryLayout {
		d.Derived = append(d.Derived, "SLURM_ARBITRARY_NODELIST="+d.ReqNodes.String())
	}
	for _, variable := range d.Derived {
		d.Environment = setVariable(d.Environment, variable)
	}
	d.Derived = nil
	return "", nil
}

// setVariable adds a variable, of the form NAME=value, to an environment. If it
// has one of that name, setVariable replaces the first of these.
func setVariable(environment []string, variable string) []string {
	name := variable[:strings.Index(variable, "=")+1]
	for i, v := range environment {
		if strings.HasPrefix(v, name) {
			environment[i] = variable
			return environment
		}
	}
	return append(environment, variable)
}

// nodeList returns the type of a list of node names. The model stores such a
// list as one string.
func nodeList() schema.Type[string] {
	array := csvString()
	parse := array.Parser(schema.View{})
	render := array.Renderer(schema.View{})
	return schema.Simple(array.Shape(schema.View{}),
		func(e schema.Encoder, s *string) {
			names := commaList(*s)
			render(e, &names)
		},
		func(r *schema.Report, doc *schema.Value, into *string) bool {
			var names []string
			ok := parse(r, doc, &names)
			*into = strings.Join(names, ",")
			return ok
		})
}

// powerFlags is the type of a list of flags that no longer exist.
var powerFlags = schema.NamedUntil(V41, "power_flags", anyArray)

// anyArray returns the type of an array whose contents are ignored. It is shown
// as an empty array.
func anyArray() schema.Type[struct{}] {
	return schema.Simple(&schema.Shape{Kind: "array"}, func(e schema.Encoder, _ *struct{}) {
		e.BeginArray()
		e.EndArray()
	}, func(r *schema.Report, doc *schema.Value, _ *struct{}) bool {
		return doc.Kind == schema.Array || r.Error(doc, "expected array, got %s", doc.Kind)
	})
}

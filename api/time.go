package api

import (
	"math"
	"time"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// Slurm's special values for a time that is not set, and for an infinite time.
const (
	timeNotSet   model.Time = math.MaxUint32 - 1
	timeInfinite model.Time = math.MaxUint32
)

// UnixTime is the unit of a point in time.
const UnixTime = "seconds since 1970"

// moment returns the type of a time that is shown as seconds since 1970 in a
// wrapper. The wrapper also says whether the time is set, and whether it is
// infinite.
func moment() schema.Type[model.Time] {
	return wrapped[model.Time]{shaped[model.Time]{schema.Simple(nil, nil, parseTime), wrapper[uint64]{}.Shape}, func(v schema.View) func(schema.Encoder, *model.Time) {
		render := wrapperRenderer(v)
		return func(e schema.Encoder, t *model.Time) {
			o := model.Some(uint64(max(*t, 0)))
			switch *t {
			case timeNotSet, -2:
				o = model.Opt[uint64]{}
			case timeInfinite, -1:
				o = model.Infinite[uint64]()
			}
			render(e, o.Set, o.Infinite, o.Number)
		}
	}}
}

// secondsInput returns the type of a time that is shown as seconds since 1970,
// without a wrapper. In a request, the time may have any form that moment
// accepts.
func secondsInput() schema.Type[model.Time] {
	plain := seconds()
	return schema.Simple(plain.Shape(schema.View{}), plain.Renderer(schema.View{}), parseTime)
}

// parseTime parses a time: a wrapper, a number of seconds since 1970, or a text
// that Slurm's commands accept. An empty text means that the time is not set.
func parseTime(r *schema.Report, doc *schema.Value, into *model.Time) bool {
	if doc.Kind == schema.Text {
		if doc.Text == "" {
			*into = 0
			return true
		}
		at, err := parseTimeText(doc.Text, time.Now())
		if err != nil {
			return r.Error(doc, "%v", err)
		}
		*into = at
		return true
	}
	var o model.Opt[uint64]
	if !parseMoment(r, doc, &o) {
		return false
	}
	*into = model.Time(o.Or(0))
	if o.Infinite {
		*into = timeInfinite
	}
	return true
}

var parseMoment = wrapper[uint64]{}.Parser(schema.View{Version: V43})

// seconds returns the type of a time that is shown as seconds since 1970,
// without a wrapper.
func seconds() schema.Type[model.Time] { return schema.Int64[model.Time]() }

// finite returns a type like typ, but an infinite time in a request is ignored
// with a warning, as "never" would be: a controller would take the number for
// "infinite" as a date.
func finite(typ func() schema.Type[model.Time]) func() schema.Type[model.Time] {
	return func() schema.Type[model.Time] { return finiteType{typ()} }
}

type finiteType struct{ schema.Type[model.Time] }

func (t finiteType) Parser(v schema.View) func(*schema.Report, *schema.Value, *model.Time) bool {
	parse := t.Type.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *model.Time) bool {
		if !parse(r, doc, into) {
			return false
		}
		if *into == timeInfinite {
			r.Warn(doc, "infinite, ignored")
			return false
		}
		return true
	}
}

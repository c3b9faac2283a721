package api

import (
	"math"
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// ShareRow is the share and usage of an association. TRES contains the names of
// the trackable resources whose amounts are in the lists of Share.
type ShareRow struct {
	*model.Share
	TRES []string
}

// Share declares the fields for an association's share and usage.
var Share = schema.Object("assoc_shares_obj_wrap", func() schema.Fields[ShareRow] {
	return schema.Fields[ShareRow]{
		schema.F("id", schema.Int32, func(s *ShareRow) *uint32 { return &s.AssocID }, "Number of the association", schema.Bare),
		schema.F("cluster", schema.String, func(s *ShareRow) *string { return &s.Cluster }, "Cluster of the association"),
		schema.F("name", schema.String, func(s *ShareRow) *string { return &s.Name }, "Name of the account or user"),
		schema.F("parent", schema.String, func(s *ShareRow) *string { return &s.Parent }, "Parent account"),
		schema.F("partition", schema.String, func(s *ShareRow) *string { return &s.Partition }, "Partition of the association; empty for all"),
		schema.F("shares_normalized", double, func(s *ShareRow) *float64 { return &s.SharesNormalized }, "Share, as a fraction of the total", schema.Bare),
		schema.F("shares", number, func(s *ShareRow) *model.Opt[uint32] { return &s.Shares }, "Number of shares; not set if inherited from the parent", schema.Count),
		schema.Group("tres", "Limits and usage of each trackable resource", schema.Fields[ShareRow]{
			schema.Show("run_seconds", tresNumbers, func(s *ShareRow) []tresNumber { return tresList[tresNumber](s.TRES, s.TRESRunSeconds) }, "Resource seconds that running jobs may still use"),
			schema.Show("group_minutes", tresNumbers, func(s *ShareRow) []tresNumber { return tresList[tresNumber](s.TRES, s.TRESGroupMinutes) }, "Limits, in resource minutes"),
			schema.Show("usage", schema.Named("shares_float128_tres_list", schema.List(tresFloatType.Type)), func(s *ShareRow) []tresFloat { return tresList[tresFloat](s.TRES, s.TRESUsage) }, "Usage, in resource seconds"),
		}),
		share("effective_usage", func(s *ShareRow) *float64 { return &s.EffectiveUsage }, "Effective usage, including that of siblings, as a fraction of the total"),
		schema.F("usage_normalized", double, func(s *ShareRow) *float64 { return &s.UsageNormalized }, "Usage, as a fraction of the total", schema.Bare),
		schema.F("usage", schema.Int64, func(s *ShareRow) *uint64 { return &s.Usage }, "Usage: weighted resources times seconds", schema.Bare),
		schema.Group("fairshare", "Fair share", schema.Fields[ShareRow]{
			share("factor", func(s *ShareRow) *float64 { return &s.Factor }, "Contribution to the priority of jobs, 0 to 1"),
			share("level", func(s *ShareRow) *float64 { return &s.Level }, "Ratio of share to usage: above 1 if less than the share was used; infinite if nothing was used"),
		}),
		schema.Show("type", shareKinds.Type, shareKind, "Kind of association: USER, or ASSOCIATION for an account"),
	}
})

// share returns a field for a floating-point number.
func share(name string, at func(*ShareRow) *float64, doc string) schema.Field[ShareRow] {
	return schema.F(name, shareFloat, at, doc, schema.Bare)
}

// shareFloat returns the type of a floating-point number that has a wrapper
// from v0.0.42 on.
func shareFloat() schema.Type[float64] { return shareFloatType{double()} }

type shareFloatType struct{ schema.Type[float64] }

func (f shareFloatType) Shape(v schema.View) *schema.Shape {
	if v.Version < V42 {
		return schema.Float().Shape(v)
	}
	return f.Type.Shape(v)
}

// Renderer returns a function that writes a number. From v0.0.42 on, the
// function writes a wrapper, as the type double does. In earlier versions it
// writes infinity as the largest unsigned 64-bit integer, and NaN as Slurm's
// number for "not set".
func (f shareFloatType) Renderer(v schema.View) func(schema.Encoder, *float64) {
	if v.Version >= V42 {
		return f.Type.Renderer(v)
	}
	return func(e schema.Encoder, n *float64) {
		switch {
		case math.IsInf(*n, 0):
			e.Float(math.MaxUint64)
		case math.IsNaN(*n):
			e.Float(model.FloatNotSet)
		default:
			e.Float(*n)
		}
	}
}

var shareKinds = schema.Words("assoc_shares_obj_wrap_type",
	schema.Part("USER", ^uint8(0), 1),
	schema.Part("ASSOCIATION", ^uint8(0), 0),
)

func shareKind(s *ShareRow) uint8 {
	if s.User {
		return 1
	}
	return 0
}

// tresNumber is the name of a trackable resource and an amount of it. In a
// tresFloat, the amount may be fractional.
type (
	tresNumber = named[model.Opt[uint64]]
	tresFloat  = named[float64]
)

type named[T any] struct {
	name  string
	value T
}

// tresList combines the names of resources with their amounts. If an error in
// the controller makes one list longer than the other, the extra elements are
// ignored.
func tresList[N ~struct {
	name  string
	value T
}, T any](names []string, values []T) []N {
	list := make([]N, min(len(names), len(values)))
	for i := range list {
		list[i] = N{names[i], values[i]}
	}
	return list
}

var (
	tresAmount = schema.Object("shares_uint64_tres", func() schema.Fields[tresNumber] {
		return schema.Fields[tresNumber]{
			schema.F("name", schema.String, func(n *tresNumber) *string { return &n.name }, "Name of the resource"),
			schema.F("value", number, func(n *tresNumber) *model.Opt[uint64] { return &n.value }, "The amount", schema.Bare),
		}
	})
	tresNumbers = schema.Named("shares_uint64_tres_list", schema.List(tresAmount.Type))

	tresFloatType = schema.Object("shares_float128_tres", func() schema.Fields[tresFloat] {
		return schema.Fields[tresFloat]{
			schema.F("name", schema.String, func(n *tresFloat) *string { return &n.name }, "Name of the resource"),
			schema.F("value", unsized, func(n *tresFloat) *float64 { return &n.value }, "The amount", schema.Bare),
		}
	})
)

// unsized returns a type for floating-point numbers. In the OpenAPI documents,
// this type has no format, whereas schema.Float has the format double.
func unsized() schema.Type[float64] {
	return shaped[float64]{schema.Float(), func(schema.View) *schema.Shape { return &schema.Shape{Kind: "number"} }}
}

// SharesAnswer is an answer with shares. Total is valid only after all shares
// have been read from the stream.
type SharesAnswer struct {
	Shares schema.Stream[ShareRow]
	Total  uint64
	Envelope
}

// sharesList declares the object with the content of a SharesAnswer.
var sharesList = schema.Object("shares_resp_msg", func() schema.Fields[SharesAnswer] {
	return schema.Fields[SharesAnswer]{
		schema.F("shares", schema.Named("assoc_shares_obj_list", schema.StreamOf(Share.Type)), func(a *SharesAnswer) *schema.Stream[ShareRow] { return &a.Shares }, "Share of each association"),
		schema.F("total_shares", schema.Int64, func(a *SharesAnswer) *uint64 { return &a.Total }, "Total number of shares", schema.Count),
	}
})

// Shares declares the fields of a SharesAnswer.
var Shares = enveloped("openapi_shares_resp", func(a *SharesAnswer) *Envelope { return &a.Envelope },
	schema.F("shares", sharesList.Type, func(a *SharesAnswer) *SharesAnswer { return a }, "The shares", schema.Required(0)),
)

type SharesParams struct {
	Accounts, Users []string // none means all
}

var sharesParams = schema.Object("", func() schema.Fields[SharesParams] {
	return schema.Fields[SharesParams]{
		schema.F("accounts", csvList, func(p *SharesParams) *[]string { return &p.Accounts }, "Accounts to show, separated by commas; default: all"),
		schema.F("users", csvList, func(p *SharesParams) *[]string { return &p.Users }, "Users to show, by name or id, separated by commas; default: all"),
	}
})

var GetShares = declare(scope.ComputeRead, sharesParams, Endpoint{
	Method: http.MethodGet, Path: "shares", ID: "get_shares",
	Doc: "Show fair shares", Answer: Shares,
	Description: "Returns, for each association of an account or user, its share of the cluster, its usage, and the resulting fair-share factor of its jobs. The list is empty if the cluster does not use fair share.",
	AnswerDoc:   "The shares",
})

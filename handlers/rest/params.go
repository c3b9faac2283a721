package rest

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
	"schedrestd/internal/typo"
)

const (
	maxURI    = 8 << 10 // maximum length of a request's path and query, in bytes
	maxParams = 100
)

// readParams parses a request's path and query into *P, and adds warnings to
// the call's warnings. For an invalid value in the query the error is
// errs.Invalid. For an invalid value in the path it is errs.NotFound, because
// no object can have that name.
func readParams[P any](c *Call, table *schema.ObjectType[P]) (*P, error) {
	if err := c.useBodyAsQuery(); err != nil {
		return nil, err
	}
	doc, err := c.paramsAsDocument()
	if err != nil {
		return nil, err
	}
	if err := c.selectFields(doc); err != nil {
		return nil, err
	}
	if err := c.readWait(doc); err != nil {
		return nil, err
	}
	if err := c.readPage(doc); err != nil {
		return nil, err
	}
	c.selective = len(doc.Items) > len(c.params)
	var report schema.Report
	params := new(P)
	table.Parser(c.view)(&report, doc, params)
	fast := c.fast && c.r.Method != http.MethodDelete // without an invalid signal, the job would be killed
	for _, n := range report.Warnings {
		source := c.paramSource(n)
		name := strings.TrimPrefix(source, InQuery)
		if fast && !c.seemsDryRun(name) {
			continue
		}
		if n.Unknown {
			if c.follows || c.seemsDryRun(name) || c.needsParameter(name) && !c.Lenient(api.UnknownParameter) {
				n.Text = strings.Replace(n.Text, "unknown field, ignored", "unknown parameter", 1) + "; " + c.paramsHint()
				report.Errors = append(report.Errors, n)
				continue
			}
			n.Text = strings.Replace(n.Text, "field", "parameter", 1)
		}
		c.warnings = append(c.warnings, api.Warning{Description: n.Text, Source: source})
	}
	if fast {
		report.Errors = slices.DeleteFunc(report.Errors, func(n schema.Note) bool {
			source := c.paramSource(n)
			return !strings.HasPrefix(source, InPath) && !c.seemsDryRun(strings.TrimPrefix(source, InQuery))
		})
	}
	for i, n := range report.Errors {
		report.Errors[i].Source = c.paramSource(n)
		if strings.HasPrefix(report.Errors[i].Source, InPath) {
			return nil, errs.New(errs.NotFound, "%s", n.Text).WithSource(report.Errors[i].Source)
		}
	}
	if !report.OK() {
		return nil, &notesError{"parameters", report.Errors}
	}
	return params, nil
}

// selectFields removes the parameter with the fields to show from the other
// parameters, and makes the answer show only these fields.
func (q *request) selectFields(doc *schema.Value) error {
	at := slices.IndexFunc(doc.Items, func(v schema.Value) bool { return v.Key == api.FieldsParameter.Name })
	if at < 0 || !q.route.HasFields() {
		return nil
	}
	names := []string{doc.Items[at].Text}
	for i := range doc.Items[at].Items {
		names = append(names, doc.Items[at].Items[i].Text)
	}
	doc.Items = slices.Delete(doc.Items, at, at+1)
	names = slices.DeleteFunc(strings.Split(strings.Join(names, ","), ","), func(s string) bool { return s == "" })
	source := InQuery + api.FieldsParameter.Name
	if len(names) == 0 {
		return errs.New(errs.Invalid, "no field is named").WithSource(source).WithHint("omit the parameter to get all fields")
	}
	only, err := q.route.Answer.Select(q.view, names)
	if err != nil {
		return errs.New(errs.Invalid, "%s", err).WithSource(source)
	}
	q.only = only
	return nil
}

// ShowByDefault makes the records of the answer show only the named fields, unless
// the client has selected fields.
func (q *request) ShowByDefault(fields ...string) error {
	if q.only != nil {
		return nil
	}
	only, err := q.route.Answer.Select(q.view, fields)
	q.only = only
	return err
}

// Shows reports whether the answer shows a field, whose place in the answer is
// given by the names of the objects that contain it, and its own name.
func (q *request) Shows(path ...string) bool {
	view := q.view
	view.Only = q.only
	for _, name := range path {
		if !view.Shows(name) {
			return false
		}
		view = view.In(name)
	}
	return true
}

// needsParameter reports whether the request is refused because the operation does not
// know a parameter. Otherwise a DELETE would remove or kill more than the client means,
// a list would have more entries, a wait would end at once, or a job would be submitted
// that the client only wants to check. A stream of events, which can contain no warning,
// needs all its parameters.
func (q *request) needsParameter(name string) bool {
	return q.r.Method == http.MethodDelete || api.IsFilter(name) || name == api.UntilParameter.Name || q.submits() && q.view.Spelling == schema.Sched
}

// submits reports whether the request is a submission, which can be a dry run.
func (q *request) submits() bool {
	return q.route != nil && q.route.Endpoint == api.PostJobSubmit.Endpoint
}

// seemsDryRun reports whether a parameter of a submission, or a field of its body, may be
// meant to keep the job from being submitted.
func (q *request) seemsDryRun(name string) bool {
	if !q.submits() {
		return false
	}
	name = noSeparators.Replace(strings.ToLower(name))
	for _, meant := range []string{noSeparators.Replace(api.DryRun), "testonly"} { // the second is sbatch's option
		if strings.Contains(name, meant) || typo.Nearest(name, []string{meant}) != "" {
			return true
		}
	}
	return false
}

var noSeparators = strings.NewReplacer("-", "", "_", "")

// removesRecords reports whether the request removes accounting records. Its
// parameters are then conditions. If the gateway ignored a condition that is
// misspelt, empty or invalid, it would remove more than the request says.
func (q *request) removesRecords() bool {
	return q.r.Method == http.MethodDelete && q.route.Accounting
}

// isEmpty reports whether no value contains a name.
func isEmpty(values []string) bool {
	return !slices.ContainsFunc(values, func(s string) bool { return strings.Trim(s, ", ") != "" })
}

// paramsHint returns a hint with the names of the operation's query parameters.
func (q *request) paramsHint() string {
	var names []string
	for _, p := range q.route.Parameters(q.view) {
		if !q.route.InPath(p.Name) {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return "this operation takes no parameters"
	}
	return "this operation takes " + strings.Join(names, ", ")
}

// pointerUnescaper decodes the escapes in a JSON pointer (RFC 6901, 4).
var pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")

// paramSource returns the name of the parameter that caused the note n, with
// its prefix.
func (q *request) paramSource(n schema.Note) string {
	name := pointerUnescaper.Replace(strings.TrimPrefix(n.Source, "#/"))
	if q.route.InPath(name) {
		return InPath + name
	}
	return InQuery + name
}

// paramsAsDocument returns the parameters as an object, which a table can
// parse. A parameter that is sent several times becomes an array. Tables accept
// arrays only for parameters that are lists.
//
// A query parameter is ignored with a warning if it has the name of a parameter
// in the path, so that it can't replace the value in the path.
func (c *Call) paramsAsDocument() (*schema.Value, error) {
	doc := &schema.Value{Kind: schema.Map}
	add := func(name, value string, bare bool) {
		doc.Items = append(doc.Items, schema.Value{Kind: schema.Text, Key: name, Text: value, Untyped: true, Bare: bare})
	}
	for _, name := range slices.Sorted(maps.Keys(c.params)) {
		add(name, c.params[name], false)
	}
	if c.r.URL.RawQuery == "" {
		return doc, nil
	}
	if strings.Count(c.r.URL.RawQuery, "&") >= maxParams {
		return nil, errs.New(errs.URITooLong, "the query has more than %d parameters", maxParams)
	}
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, errs.New(errs.Malformed, "the query is malformed: %s", schema.Shorten(err.Error())).WithSource("query")
	}
	bare := bareParameters(c.r.URL.RawQuery)
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if c.route.InPath(name) && c.fast {
			continue
		}
		if c.route.InPath(name) {
			c.Warn(InQuery+name, "ignored in the query: it is part of the path")
			continue
		}
		if c.removesRecords() && isEmpty(query[name]) {
			return nil, errs.New(errs.Invalid, "the parameter is empty").WithSource(InQuery + name).
				WithHint("omit it to remove records whatever their value")
		}
		if len(query[name]) == 1 {
			add(name, query[name][0], bare[name])
			continue
		}
		values := schema.Value{Kind: schema.Array, Key: name, Untyped: true}
		for _, value := range query[name] {
			values.Items = append(values.Items, schema.Value{Kind: schema.Text, Text: value, Untyped: true})
		}
		doc.Items = append(doc.Items, values)
	}
	return doc, nil
}

// bareParameters returns the names of the parameters that have no "=".
func bareParameters(query string) (names map[string]bool) {
	for parameter := range strings.SplitSeq(query, "&") {
		if parameter == "" || strings.Contains(parameter, "=") {
			continue
		}
		if name, err := url.QueryUnescape(parameter); err == nil {
			if names == nil {
				names = map[string]bool{}
			}
			names[name] = true
		}
	}
	return names
}

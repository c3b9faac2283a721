package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
)

// router finds the route for a request. A path begins with a segment and the
// version of the API, as in /sched/v0.0.42/nodes. The segment (sched, scheddb,
// slurm, slurmdb or util) determines the daemon and the spelling.
type router struct {
	routes           []pattern
	unserved         []pattern // operations of slurmrestd that this gateway does not support yet
	segments         map[string]segment
	unservedSegments map[string]string // maps segments of the unserved spelling to the corresponding served segments
	pages            map[string]Page
	parsers          []feature.Parser
	versions         map[string]feature.Parser // parsers by their names
	spelling         schema.Spelling           // spelling of errors for paths that do not determine one
}

// pattern is a route whose path is split at the slashes.
type pattern struct {
	Route
	parts []string
}

// segment is the first part of a path.
type segment struct {
	spelling   schema.Spelling
	accounting bool
	util       bool
}

func newRouter(routes []Route, pages map[string]Page, names api.Names, parsers []feature.Parser) *router {
	rt := &router{segments: map[string]segment{}, unservedSegments: map[string]string{}, pages: pages, parsers: parsers, versions: map[string]feature.Parser{}}
	for _, p := range parsers {
		rt.versions[p.Name()] = p
	}
	spellings := names.Spellings()
	if len(spellings) > 0 {
		rt.spelling = spellings[0]
	}
	for _, r := range routes {
		rt.routes = append(rt.routes, newPattern(r))
		if r.Util && len(spellings) > 0 { // a util path is the same in both spellings, and its clients expect Slurm's answers
			spelling := spellings[len(spellings)-1]
			rt.segments[r.Segment(spelling)] = segment{spelling: spelling, util: true}
			continue
		}
		for _, s := range []schema.Spelling{schema.Sched, schema.Slurm} {
			if slices.Contains(spellings, s) {
				rt.segments[r.Segment(s)] = segment{spelling: s, accounting: r.Accounting}
			} else {
				rt.unservedSegments[r.Segment(s)] = r.Segment(rt.spelling)
			}
		}
	}
	for i := range api.Unserved {
		rt.unserved = append(rt.unserved, newPattern(Route{Endpoint: &api.Unserved[i]}))
	}
	return rt
}

func newPattern(r Route) pattern {
	return pattern{r, strings.Split(strings.TrimSuffix(r.Path, "/"), "/")}
}

// match is the result of the search for a request's route.
type match struct {
	route     *Route // nil if err is set
	page      *Page  // set instead of a route
	view      schema.View
	fast      bool // ignore values that can't be understood (+fast)
	latest    bool // the path names no version, but "latest"
	versioned bool // the path names a served version, or "latest"
	params    map[string]string
	allow     []string // methods that the path supports
	err       error
}

// find finds the route for a request. It ignores empty parts and "." in the
// path, so that duplicate and trailing slashes make no difference. It refuses a
// path with "..", which may be an attempt to bypass a filter in front of the
// gateway.
func (rt *router) find(r *http.Request) match {
	latest := feature.LatestOf(rt.parsers)
	m := match{view: schema.View{Version: schema.Version(latest.Version), Spelling: rt.spelling}}
	if r.URL.Path == "*" && r.Method == http.MethodOptions {
		rt.matchServer(&m)
		return m
	}
	parts, err := pathParts(r.URL.EscapedPath())
	if err != nil {
		m.err = err
		return m
	}
	if p, ok := rt.pages[strings.Join(parts, "/")]; ok && (!p.OnlyHTML || acceptsHTML(r.Header)) {
		m.matchPage(&p, r)
		return m
	}
	var seg segment
	known := len(parts) > 0
	if known {
		seg, known = rt.segments[parts[0]]
	}
	if !known {
		m.err = rt.pathNotFound(r, parts)
		return m
	}
	m.view.Spelling = seg.spelling
	if len(parts) < 2 || !rt.matchVersion(parts[1], &m) {
		m.err = errs.New(errs.NotFound, "unsupported API version; supported: %s", rt.servedVersions())
		return m
	}
	rt.match(r, seg, parts[2:], &m)
	return m
}

// matchVersion sets m.view.Version, m.fast and m.versioned. It returns false if part, the
// second part of the path, is not the name of a served version. The name "latest"
// stands for the newest one that is not a preview.
func (rt *router) matchVersion(part string, m *match) bool {
	if part == feature.Latest {
		m.latest = true
		part = feature.LatestOf(rt.parsers).Name()
	}
	parser, ok := rt.versions[part]
	if ok {
		m.view.Version, m.fast = schema.Version(parser.Version), parser.Flags.Has(feature.Fast)
		m.versioned = true
	}
	return ok
}

func (rt *router) servedVersions() string {
	var names []string
	for _, p := range rt.parsers {
		names = append(names, p.Name())
	}
	return strings.Join(names, ", ")
}

// match sets the route for parts, the rest of a path. Literal parts take
// precedence over parameters. So the path job/submit never means a job with the
// id "submit".
func (rt *router) match(r *http.Request, seg segment, parts []string, m *match) {
	for _, literal := range []bool{true, false} {
		for i := range rt.routes {
			p := &rt.routes[i]
			params, ok := p.fits(seg, m.view.Version, parts)
			if !ok || literal != (params == nil) {
				continue
			}
			m.allow = append(m.allow, p.Method)
			if p.Method == r.Method || p.Method == http.MethodGet && r.Method == http.MethodHead && !p.ChangingGET {
				m.route, m.params = &p.Route, params
			}
		}
		if m.route == nil && rt.isUnserved(r.Method, seg, m.view.Version, parts, literal) {
			m.err = errs.New(errs.Unsupported, "%s: not supported yet by this gateway", requestLine(r))
			m.allow = nil
			return
		}
		if len(m.allow) > 0 {
			break
		}
	}
	if len(m.allow) == 0 {
		m.err = rt.pathNotFound(r, parts)
		return
	}
	if slices.Contains(m.allow, http.MethodGet) {
		m.allow = append(m.allow, http.MethodHead)
	}
	m.allow = append(m.allow, http.MethodOptions)
	if m.route == nil {
		m.err = m.methodNotAllowed(r)
	}
}

// isUnserved reports whether a method and path belong to an operation that
// slurmrestd has and this gateway lacks.
func (rt *router) isUnserved(method string, seg segment, v schema.Version, parts []string, literal bool) bool {
	return slices.ContainsFunc(rt.unserved, func(p pattern) bool {
		params, ok := p.fits(seg, v, parts)
		return ok && p.Method == method && literal == (params == nil)
	})
}

// matchPage sets m to the page p.
func (m *match) matchPage(p *Page, r *http.Request) {
	m.page, m.allow = p, []string{http.MethodGet, http.MethodHead, http.MethodOptions}
	if !slices.Contains(m.allow, r.Method) {
		m.err = m.methodNotAllowed(r)
	}
}

// requestLine returns the text that identifies a request in errors: its method
// and path, as in "GET /sched/v0.0.42/nodes".
func requestLine(r *http.Request) string {
	return schema.Shorten(r.Method) + " " + schema.Shorten(r.URL.EscapedPath())
}

// pathNotFound returns the error for a path that does not exist. The error has
// a hint if the path exists in the other spelling (slurm or sched).
func (rt *router) pathNotFound(r *http.Request, parts []string) error {
	e := errs.New(errs.NotFound, "%s: no such path", requestLine(r))
	if len(parts) > 0 && rt.unservedSegments[parts[0]] != "" {
		return e.WithHint("this gateway serves /%s/; with SCHEDRESTD_NAMES=both it serves /%s/ as well",
			rt.unservedSegments[parts[0]], parts[0])
	}
	return e.WithHint("GET /openapi lists the paths")
}

// methodNotAllowed returns the error for a path that exists but does not
// support the request's method.
func (m *match) methodNotAllowed(r *http.Request) error {
	return errs.New(errs.MethodNotAllowed, "%s: the path does not have this method", requestLine(r)).
		WithHint("supported methods: %s", strings.Join(m.allow, ", "))
}

// fits reports whether parts, the rest of a path, match the pattern in version
// v. If the pattern has no parameters, params is nil.
func (p *pattern) fits(seg segment, v schema.Version, parts []string) (params map[string]string, ok bool) {
	if len(parts) != len(p.parts) || p.Accounting != seg.accounting || p.Util != seg.util || !p.InView(schema.View{Version: v, Spelling: seg.spelling}) {
		return nil, false
	}
	for i, want := range p.parts {
		if strings.HasPrefix(want, "{") {
			if params == nil {
				params = map[string]string{}
			}
			params[strings.Trim(want, "{}")] = parts[i]
		} else if want != parts[i] {
			return nil, false
		}
	}
	return params, true
}

// pathParts splits a path at its slashes and then decodes the parts. So "%2F"
// does not separate parts.
func pathParts(escaped string) ([]string, error) {
	var parts []string
	for piece := range strings.SplitSeq(escaped, "/") {
		part, err := url.PathUnescape(piece)
		switch {
		case err != nil || strings.IndexByte(part, 0) >= 0:
			return nil, errs.New(errs.Malformed, "the path is malformed")
		case part == "..":
			return nil, errs.New(errs.Malformed, "the path contains \"..\"")
		case part != "" && part != ".":
			parts = append(parts, part)
		}
	}
	return parts, nil
}

// matchServer sets m for a request with the target "*", which is valid only
// with the method OPTIONS. The target stands for the whole server (RFC 9110,
// 9.3.7). The answer lists the methods that any path supports.
func (rt *router) matchServer(m *match) {
	m.allow = []string{http.MethodGet, http.MethodHead}
	for _, p := range rt.routes {
		if !slices.Contains(m.allow, p.Method) {
			m.allow = append(m.allow, p.Method)
		}
	}
	m.allow = append(m.allow, http.MethodOptions)
}

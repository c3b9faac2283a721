package handlers

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/errs"
	"schedrestd/plugin"
)

// router finds the route of a request. A path is /segment/version/…: the segment says
// which daemon and which spelling, the version is the API's.
type router struct {
	routes   []pattern
	segments map[string]segment
	pages    map[string]page
	parsers  []plugin.Parser
	names    schema.Spelling // for errors about paths that say nothing of it
}

// pattern is a route with its path cut at the slashes.
type pattern struct {
	route
	parts []string
}

// segment is the first part of a path.
type segment struct {
	names      schema.Spelling
	accounting bool
}

func newRouter(routes []route, pages map[string]page, cfg Config) *router {
	rt := &router{segments: map[string]segment{}, pages: pages, parsers: cfg.Parsers}
	for _, r := range routes {
		rt.routes = append(rt.routes, pattern{r, strings.Split(strings.TrimSuffix(r.Path, "/"), "/")})
		for _, s := range cfg.Names.Spellings() {
			rt.segments[r.Segment(s)] = segment{s, r.Accounting}
		}
	}
	if list := cfg.Names.Spellings(); len(list) > 0 {
		rt.names = list[0]
	}
	return rt
}

// match is what a request's path came to.
type match struct {
	route  *route // nil when err is not
	page   *page  // instead of a route
	view   schema.View
	fast   bool // what can't be understood is passed over (+fast)
	params map[string]string
	allow  []string // methods that the path has
	err    error
}

// find matches a request. Empty parts and "." count as nothing, so that a slash too many or at
// the end makes no difference. ".." is refused: whoever sends one means to reach past a
// filter in front of us.
func (rt *router) find(r *http.Request) match {
	newest := rt.parsers[len(rt.parsers)-1]
	m := match{view: schema.View{Version: schema.Version(newest.Version), Names: rt.names}}
	if r.URL.Path == "*" && r.Method == http.MethodOptions {
		rt.matchServer(&m)
		return m
	}
	parts, err := pathParts(r.URL.EscapedPath())
	if err != nil {
		m.err = err
		return m
	}
	if p, ok := rt.pages[strings.Join(parts, "/")]; ok {
		m.matchPage(&p, r.Method)
		return m
	}
	var seg segment
	known := len(parts) > 0
	if known {
		seg, known = rt.segments[parts[0]]
	}
	if !known {
		m.err = errs.New(errs.NotFound, "no such path")
		return m
	}
	m.view.Names = seg.names
	if len(parts) < 2 || !rt.version(parts[1], &m) {
		m.err = errs.New(errs.NotFound, "no such API version; served are %s", rt.served())
		return m
	}
	rt.match(r.Method, seg, parts[2:], &m)
	return m
}

// version finds the served version that a path names.
func (rt *router) version(part string, m *match) bool {
	for _, served := range rt.parsers {
		if part == served.Name() {
			m.view.Version, m.fast = schema.Version(served.Version), served.Flags.Has(plugin.Fast)
			return true
		}
	}
	return false
}

func (rt *router) served() string {
	var names []string
	for _, p := range rt.parsers {
		names = append(names, p.Name())
	}
	return strings.Join(names, ", ")
}

// match looks for the routes of the rest of a path: those that name it word by word, else those
// with a part that the client chooses. So job/submit is never the job "submit".
func (rt *router) match(method string, seg segment, parts []string, m *match) {
	for _, literal := range []bool{true, false} {
		for i := range rt.routes {
			p := &rt.routes[i]
			if p.Accounting != seg.accounting || !p.In(m.view.Version) {
				continue
			}
			params, ok := p.fits(parts)
			if !ok || literal != (params == nil) {
				continue
			}
			m.allow = append(m.allow, p.Method)
			if p.Method == method || p.Method == http.MethodGet && method == http.MethodHead {
				m.route, m.params = &p.route, params
			}
		}
		if len(m.allow) > 0 {
			break
		}
	}
	if len(m.allow) == 0 {
		m.err = errs.New(errs.NotFound, "no such path")
		return
	}
	if slices.Contains(m.allow, http.MethodGet) {
		m.allow = append(m.allow, http.MethodHead)
	}
	m.allow = append(m.allow, http.MethodOptions)
	if m.route == nil {
		m.err = errs.New(errs.MethodNotAllowed, "this path does not have that method")
	}
}

// matchPage is match for a page.
func (m *match) matchPage(p *page, method string) {
	m.page, m.allow = p, []string{http.MethodGet, http.MethodHead, http.MethodOptions}
	if !slices.Contains(m.allow, method) {
		m.err = errs.New(errs.MethodNotAllowed, "this path does not have that method")
	}
}

// fits compares p with the rest of a path; params are nil when every part is literal.
func (p *pattern) fits(parts []string) (params map[string]string, ok bool) {
	if len(parts) != len(p.parts) {
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

// pathParts cuts a path at its slashes, before decoding: "%2F" is no slash.
func pathParts(escaped string) ([]string, error) {
	var parts []string
	for piece := range strings.SplitSeq(escaped, "/") {
		part, err := url.PathUnescape(piece)
		switch {
		case err != nil || strings.IndexByte(part, 0) >= 0:
			return nil, errs.New(errs.Malformed, "the path can't be read")
		case part == "..":
			return nil, errs.New(errs.Malformed, "the path has a part \"..\"")
		case part != "" && part != ".":
			parts = append(parts, part)
		}
	}
	return parts, nil
}

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"schedrestd/api"
	"schedrestd/api/openapi"
	"schedrestd/api/schema"
	"schedrestd/internal/feature"
)

// APIVersions has the names of all API versions, oldest first.
var APIVersions = func() (list []string) {
	for _, p := range feature.Parsers {
		list = append(list, p.Name())
	}
	return list
}()

// documentKey selects an OpenAPI document: by the API version, and by the names
// in its paths.
type documentKey struct {
	version string
	names   api.Names
}

// documents contains functions that return OpenAPI documents. The documents are
// generated here, because fetching them would send the gateway requests that
// are not part of the test. Each is generated only if a test needs it, because
// that takes long.
var documents = func() map[documentKey]func() (*document, error) {
	list := map[documentKey]func() (*document, error){}
	for _, p := range feature.AllParsers() {
		for _, names := range []api.Names{api.NamesSched, api.NamesSlurm} {
			list[documentKey{p.Name(), names}] = sync.OnceValues(func() (*document, error) { return newDocument(p, names) })
		}
	}
	return list
}()

// document is an OpenAPI document. It is parsed path by path, because parsing
// all of it takes half a second of processor time, and most tests need few
// paths.
type document struct {
	members    map[string]json.RawMessage
	paths      map[string]json.RawMessage // without slashes at the end, which have no meaning in a request
	components map[string]map[string]json.RawMessage

	mu      sync.Mutex
	routers map[string]routers.Router // by the paths of the part
}

func newDocument(version feature.Parser, names api.Names) (*document, error) {
	written, err := openapi.New(openapi.Options{Parsers: []feature.Parser{version}, Names: names,
		Content: feature.AllContent, Auth: feature.JWT, Served: true})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	out := schema.NewJSONWriter(&b, schema.Compact)
	written.Write(out)
	if err := out.Flush(); err != nil {
		return nil, err
	}
	d := &document{paths: map[string]json.RawMessage{}, routers: map[string]routers.Router{}}
	var paths map[string]json.RawMessage
	err = json.Unmarshal(b.Bytes(), &d.members)
	err = errors.Join(err, json.Unmarshal(d.members["paths"], &paths), json.Unmarshal(d.members["components"], &d.components))
	for path, item := range paths {
		d.paths[strings.TrimSuffix(path, "/")] = item
	}
	return d, err
}

// router returns a router that finds the operation of requests for path. It
// returns nil if the document does not contain the path.
func (d *document) router(path string) (routers.Router, error) {
	var matching []string
	for template := range d.paths {
		if matches(template, path) {
			matching = append(matching, template)
		}
	}
	if len(matching) == 0 {
		return nil, nil
	}
	slices.Sort(matching)
	d.mu.Lock()
	defer d.mu.Unlock()
	key := strings.Join(matching, " ")
	r := d.routers[key]
	if r == nil {
		text, err := d.part(matching)
		if err != nil {
			return nil, err
		}
		doc, err := openapi3.NewLoader().LoadFromData(text)
		if err != nil {
			return nil, err
		}
		if r, err = gorillamux.NewRouter(doc); err != nil {
			return nil, err
		}
		d.routers[key] = r
	}
	return r, nil
}

// matches reports whether path is one of the paths that template, such as
// /sched/v0.0.43/job/{job_id}, describes.
func matches(template, path string) bool {
	return slices.EqualFunc(strings.Split(template, "/"), strings.Split(path, "/"), func(want, got string) bool {
		return want == got || strings.HasPrefix(want, "{")
	})
}

// reference is a reference to a component: its kind and its name.
var reference = regexp.MustCompile(`"#/components/(\w+)/([^"]+)"`)

// part returns the document with these paths only, and with the components to
// which they refer.
func (d *document) part(paths []string) ([]byte, error) {
	members, part := maps.Clone(d.members), map[string]json.RawMessage{}
	components := map[string]map[string]json.RawMessage{"securitySchemes": d.components["securitySchemes"]} // these are used without references
	var add func(text []byte)
	add = func(text []byte) {
		for _, m := range reference.FindAllSubmatch(text, -1) {
			kind, name := string(m[1]), string(m[2])
			if components[kind] == nil {
				components[kind] = map[string]json.RawMessage{}
			}
			if _, ok := components[kind][name]; !ok {
				components[kind][name] = d.components[kind][name]
				add(d.components[kind][name])
			}
		}
	}
	for _, p := range paths {
		part[p] = d.paths[p]
		add(d.paths[p])
	}
	var err error
	if members["paths"], err = json.Marshal(part); err == nil {
		members["components"], err = json.Marshal(components)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(members)
}

// answerCounts counts the answers to each request. It is safe for concurrent
// use.
type answerCounts struct {
	mu     sync.Mutex
	counts map[string]int
}

var checkedAnswers = answerCounts{counts: map[string]int{}}

// add counts an answer to a request, and reports whether to check the answer:
// the first ten with each status. Tests that wait for an event, or send many
// requests, would otherwise spend most of their time on checking alike answers.
func (c *answerCounts) add(request string, a Answer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fmt.Sprint(request, a.Status)
	c.counts[key]++
	return c.counts[key] <= 10
}

// pathVersion is the API version in a path.
var pathVersion = regexp.MustCompile(`^/\w+/(v[0-9.]+)/`)

// checkDocumented fails the test unless the answer to req matches the OpenAPI
// document. If the document does not contain the request's path,
// checkDocumented accepts any answer.
func checkDocumented(t *testing.T, req *http.Request, a Answer) {
	key := documentKey{Version, api.NamesSched} // for paths without a version
	if m := pathVersion.FindStringSubmatch(req.URL.Path); m != nil {
		key.version = m[1]
	}
	if strings.HasPrefix(req.URL.Path, "/slurm") {
		key.names = api.NamesSlurm
	}
	find := documents[key]
	if find == nil || !checkedAnswers.add(req.Method+" "+req.URL.Path, a) {
		return
	}
	target := *req.URL
	target.Path = strings.TrimSuffix(target.Path, "/")
	req = req.Clone(req.Context())
	req.URL = &target
	var router routers.Router
	d, err := find()
	if err == nil {
		router, err = d.router(target.Path)
	}
	if err != nil {
		t.Error(err)
	}
	if router == nil {
		return
	}
	route, params, err := router.FindRoute(req)
	if err != nil || a.Text == "" {
		return
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, Route: route, PathParams: params},
		Status:                 a.Status, Header: a.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	input.SetBodyBytes([]byte(a.Text))
	if err := openapi3filter.ValidateResponse(context.Background(), input); err != nil {
		t.Errorf("%s %s, status %d: not as documented: %v", req.Method, req.URL.Path, a.Status, err)
	}
}

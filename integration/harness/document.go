package harness

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"schedrestd/api"
	"schedrestd/api/openapi"
	"schedrestd/api/schema"
	"schedrestd/internal/feature"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
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

// documentRouters contains functions that return a router. The router finds a
// request's operation in an OpenAPI document. The documents are generated here,
// because fetching them would send the gateway requests that are not part of
// the test. Each is loaded only if a test needs it, because that takes long.
var documentRouters = func() map[documentKey]func() (routers.Router, error) {
	all := map[documentKey]func() (routers.Router, error){}
	for _, p := range feature.AllParsers() {
		for _, names := range []api.Names{api.NamesSched, api.NamesSlurm} {
			all[documentKey{p.Name(), names}] = sync.OnceValues(func() (routers.Router, error) { return newDocumentRouter(p, names) })
		}
	}
	return all
}()

func newDocumentRouter(version feature.Parser, names api.Names) (routers.Router, error) {
	d, err := openapi.New(openapi.Options{Parsers: []feature.Parser{version}, Names: names,
		Content: feature.AllContent, Auth: feature.JWT, Served: true})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	out := schema.NewJSONWriter(&b, schema.Compact)
	d.Write(out)
	if err := out.Flush(); err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(b.Bytes())
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
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
	newRouter := documentRouters[key]
	if newRouter == nil || !checkedAnswers.add(req.Method+" "+req.URL.Path, a) {
		return
	}
	router, err := newRouter()
	if err != nil {
		t.Error(err)
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

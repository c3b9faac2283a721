package harness

import (
	"bytes"
	"context"
	"net/http"
	"regexp"
	"schedrestd/api"
	"schedrestd/api/openapi"
	"schedrestd/api/schema"
	"schedrestd/internal/feature"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// documentRouters maps each API version to a function. The function returns a
// router that finds a request's operation in the OpenAPI document of that
// version. The documents are generated here, because fetching them would send
// the gateway requests that are not part of the test.
var documentRouters = func() map[string]func() (routers.Router, error) {
	byVersion := map[string]func() (routers.Router, error){}
	for _, p := range feature.AllParsers() {
		byVersion[p.Name()] = sync.OnceValues(func() (routers.Router, error) { return newDocumentRouter(p) })
	}
	return byVersion
}()

func newDocumentRouter(version feature.Parser) (routers.Router, error) {
	d, err := openapi.New(openapi.Options{Parsers: []feature.Parser{version}, Names: api.NamesBoth,
		Content: feature.AllContent, Auth: feature.JWT, YAML: true})
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

// pathVersion is the API version in a path.
var pathVersion = regexp.MustCompile(`^/\w+/(v[0-9.]+)/`)

// checkDocumented fails the test unless the answer to req matches the OpenAPI
// document. If the document does not contain the request's path,
// checkDocumented accepts any answer.
func checkDocumented(t *testing.T, req *http.Request, a Answer) {
	version := Version // for paths without a version
	if m := pathVersion.FindStringSubmatch(req.URL.Path); m != nil {
		version = m[1]
	}
	newRouter := documentRouters[version]
	if newRouter == nil {
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

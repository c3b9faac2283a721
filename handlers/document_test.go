package handlers

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"schedrestd/api"
	"schedrestd/api/openapi"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/internal/feature"
)

// documents contains functions that return parsed documents, because parsing
// takes a long time. The key is the options from which a document was
// generated.
var documents sync.Map

// documentOf returns the validated OpenAPI document of h for one API version.
// It is much smaller than the document of all versions. Package openapi tests
// that both have the same content.
func documentOf(t *testing.T, h *handler, v schema.Version) *openapi3.T {
	t.Helper()
	o := h.documentOptions()
	o.Parsers = slices.DeleteFunc(slices.Clone(o.Parsers), func(p feature.Parser) bool { return schema.Version(p.Version) != v })
	load, _ := documents.LoadOrStore(fmt.Sprint(o), sync.OnceValues(func() (*openapi3.T, error) { return loadDocument(o) }))
	doc, err := load.(func() (*openapi3.T, error))()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// loadDocument generates, parses and validates a document.
func loadDocument(o openapi.Options) (*openapi3.T, error) {
	written, err := openapi.New(o)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	out := schema.NewJSONWriter(&b, schema.Compact)
	written.Write(out)
	if err := out.Flush(); err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(b.Bytes())
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background())
}

// checkDocumented fails the test unless the answer w to the request r agrees
// with the OpenAPI document of s.
func checkDocumented(t *testing.T, s testServer, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	endpoint, page, view := s.Find(r)
	body := w.Body.Bytes()
	if page != "" || len(body) == 0 || len(s.Names.Spellings()) == 0 {
		return
	}
	if w.Header().Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	} else if w.Header().Get("Content-Encoding") != "" {
		return // other codings have a test of their own
	}
	doc := documentOf(t, s.handler, view.Version)
	header := w.Header().Clone()
	if media := header.Get("Content-Type"); media == rest.MediaXYAML || media == rest.MediaTextYAML { // served, but not documented
		header.Set("Content-Type", rest.MediaYAML)
	}
	if endpoint == nil {
		checkEnvelope(t, doc, view, header.Get("Content-Type"), body)
		return
	}
	path := endpoint.URL(view)
	item := doc.Paths.Value(path)
	if item == nil || item.GetOperation(endpoint.Method) == nil {
		t.Errorf("the document does not have %s %s", endpoint.Method, path)
		return
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: r,
			Route:   &routers.Route{Spec: doc, Path: path, PathItem: item, Method: endpoint.Method, Operation: item.GetOperation(endpoint.Method)},
		},
		Status: w.Code, Header: header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	input.SetBodyBytes(body)
	answer := checkedAnswer{doc, r.Method, path, w.Code, fmt.Sprint(w.Header()["Content-Type"]), sha256.Sum256(body)}
	if _, known := checkedAnswers.Load(answer); known {
		return
	}
	if err := openapi3filter.ValidateResponse(context.Background(), input); err != nil {
		t.Errorf("%s %s, status %d: not as documented: %v", endpoint.Method, path, w.Code, err)
		return
	}
	checkedAnswers.Store(answer, true)
}

// checkedAnswer contains everything about an answer that checkDocumented
// compares with the document.
type checkedAnswer struct {
	doc          *openapi3.T
	method, path string
	status       int
	media        string
	body         [sha256.Size]byte
}

// checkedAnswers contains the answers that agreed with the document. Many tests
// get identical answers, and these are checked only once.
var checkedAnswers sync.Map

// checkEnvelope checks the body of the answer to a request that matches no
// operation. The body must be the common envelope that the document describes.
func checkEnvelope(t *testing.T, doc *openapi3.T, v schema.View, media string, body []byte) {
	t.Helper()
	var value any
	err := json.Unmarshal(body, &value)
	if strings.HasSuffix(media, "yaml") {
		err = yaml.Unmarshal(body, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	name := api.SchemaName("openapi_resp", v)
	if doc.Components.Schemas["sched_"+name] != nil && v.Spelling == schema.Sched {
		name = "sched_" + name
	}
	if err := doc.Components.Schemas[name].Value.VisitJSON(value); err != nil {
		t.Errorf("not as documented: %v", err)
	}
}

// TestDocument requests the OpenAPI document from the paths where tools expect
// it. The gateway must serve the document to every client and in the requested
// format. The content must be the same in both formats.
func TestDocument(t *testing.T) {
	tests := []struct {
		name, path, accept string
		status             int
		media              string
	}{
		{"anything", "/openapi", "", 200, "application/json"},
		{"slash at the end", "/openapi/", "*/*", 200, "application/json"},
		{"JSON", "/openapi", "application/json", 200, "application/json"},
		{"YAML", "/openapi", "application/yaml", 200, "application/yaml"},
		{"old name of YAML", "/openapi/v3", "application/x-yaml", 200, "application/x-yaml"},
		{"YAML as text", "/openapi.yaml", "text/yaml", 200, "text/yaml"},
		{"v3", "/openapi/v3/", "application/yaml;q=0.2, application/json;q=0.8", 200, "application/json"},
		{"path says JSON", "/openapi.json", "*/*", 200, "application/json"},
		{"path says YAML", "/openapi.yaml", "*/*", 200, "application/yaml"},
		{"neither", "/openapi", "text/html", 406, "application/json"},
		{"other version", "/openapi/v2", "", 404, "application/json"},
	}
	texts := map[string][]byte{} // the answers with status 200, by name
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			r := newRequest(http.MethodGet, tt.path, "")
			if tt.accept != "" {
				r.Header.Set("Accept", tt.accept)
			}
			w := serve(t, config(f), r)
			if w.Code != tt.status || w.Header().Get("Content-Type") != tt.media {
				t.Fatalf("status %d, %s: %.200s", w.Code, w.Header().Get("Content-Type"), w.Body)
			}
			if f.calls != nil {
				t.Errorf("a daemon was asked: %v", f.calls)
			}
			if w.Code == http.StatusOK {
				texts[tt.name] = w.Body.Bytes()
			} else {
				parseYAML(t, w.Body.Bytes())
			}
		})
	}
	for name, text := range texts {
		if !bytes.Equal(text, texts["JSON"]) && !bytes.Equal(text, texts["YAML"]) {
			t.Errorf("%s is another text", name)
		}
	}
	if d := cmp.Diff(parseYAML(t, texts["JSON"]), parseYAML(t, texts["YAML"])); d != "" {
		t.Errorf("YAML is another document than JSON: %.2000s", d)
	}
}

// TestDocumentOfOneVersion checks that a path with a version and a spelling leads
// to a document about only these, with the paths that slurmrestd's document has,
// and that the operations' paths still do.
func TestDocumentOfOneVersion(t *testing.T) {
	for _, tt := range []struct {
		path   string
		names  api.Names
		status int
		want   string // expression for the paths of the document
		has    []string
	}{
		{"/slurm/v0.0.42/openapi/v3", api.NamesBoth, 200, `^/(slurm|slurmdb|util)/v0\.0\.42/`, []string{"/slurm/v0.0.42/jobs/", "/slurm/v0.0.42/shares", "/slurmdb/v0.0.42/qos/", "/slurmdb/v0.0.42/qos/{qos}"}},
		{"/slurm/v0.0.45/openapi.json", api.NamesBoth, 200, `^/(slurm|slurmdb|util)/v0\.0\.45/`, []string{"/slurm/v0.0.45/conf", "/util/v0.0.45/hostnames"}},
		{"/sched/v0.0.42/openapi", api.NamesBoth, 200, `^/(sched|scheddb|util)/v0\.0\.42/`, []string{"/sched/v0.0.42/jobs/"}},
		{"/slurm/v0.0.42/openapi.json", api.NamesSched, 404, "", nil},
		{"/slurm/v0.0.39/openapi.json", api.NamesBoth, 404, "", nil},
		{"/slurmdb/v0.0.42/openapi.json", api.NamesBoth, 404, "", nil},
	} {
		t.Run(tt.path, func(t *testing.T) {
			cfg := config(demo())
			cfg.Names = tt.names
			w := serve(t, cfg, newRequest(http.MethodGet, tt.path, ""))
			if w.Code != tt.status {
				t.Fatalf("status %d: %.200s", w.Code, w.Body)
			}
			if tt.want == "" {
				return
			}
			var document struct{ Paths map[string]any }
			if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
				t.Fatal(err)
			}
			for path := range document.Paths {
				if !regexp.MustCompile(tt.want).MatchString(path) {
					t.Errorf("the document has %s", path)
				}
			}
			for _, path := range tt.has {
				if document.Paths[path] == nil {
					t.Errorf("the document lacks %s", path)
				}
			}
		})
	}
}

// parseYAML returns the value of a text in YAML or JSON. JSON is valid YAML.
func parseYAML(t *testing.T, text []byte) (value any) {
	t.Helper()
	if err := yaml.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// TestDocumentTellsWhatIsServed checks that the document omits everything that
// the configuration disables.
func TestDocumentTellsWhatIsServed(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*Config)
		missing string
	}{
		{"spelling", func(c *Config) { c.Names = api.NamesSched }, "/slurm/v0.0.42/ping"},
		{"accounting", func(c *Config) { c.Accounting = nil }, "/scheddb/v0.0.42/diag"},
		{"way to authenticate", func(c *Config) { c.Auth.JWT, c.Auth.Local = false, true }, "X-SCHED-USER-TOKEN"},
		{"status", func(c *Config) { c.Statuses = []string{"200"} }, `"default":{"description":"An error occurred`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config(demo())
			before := serve(t, cfg, newRequest(http.MethodGet, "/openapi", "")).Body.String()
			tt.change(&cfg)
			after := serve(t, cfg, newRequest(http.MethodGet, "/openapi", "")).Body.String()
			if !strings.Contains(before, tt.missing) || strings.Contains(after, tt.missing) {
				t.Errorf("%q: before %v, after %v", tt.missing, strings.Contains(before, tt.missing), strings.Contains(after, tt.missing))
			}
		})
	}
}

func BenchmarkDocument(b *testing.B) {
	h := New(config(demo()))
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), newRequest(http.MethodGet, "/openapi", ""))
	}
}

// TestRefusalsAreDocumented checks that the document has the statuses with which
// package rest refuses requests (serve compares the answer with the document).
func TestRefusalsAreDocumented(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		change       func(*http.Request)
		status       int
	}{
		{"GET", "ping", func(r *http.Request) { r.Header.Set("Accept", "text/html") }, 406},
		{"DELETE", "job/12", func(r *http.Request) { r.Header.Set("If-Match", `"x"`) }, 412},
		{"POST", "job/submit", func(r *http.Request) { r.Body, r.ContentLength = untouched{t}, 50<<20+1 }, 413},
		{"GET", "jobs?" + strings.Repeat("&", maxParams), func(*http.Request) {}, 414},
		{"POST", "job/submit", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
	} {
		r := request(tt.method, "/sched/v0.0.45/"+tt.path, "")
		tt.change(r)
		if w := serve(t, config(demo()), r); w.Code != tt.status {
			t.Errorf("%s: status %d, want %d: %s", tt.path, w.Code, tt.status, w.Body)
		}
	}
}

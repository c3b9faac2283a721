package handlers

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
)

// changeCount returns the number of changes that f has committed.
func (f *fake) changeCount() int {
	n := len(f.submitted) + len(f.nodeUpdates) + len(f.reservationUpdates) + len(f.partitionUpdates) + len(f.killRequests) + len(f.cancelled)
	for _, committed := range f.recorded.committed {
		if committed {
			n++
		}
	}
	for _, call := range f.calls {
		if strings.HasPrefix(call, "requeue ") || strings.HasPrefix(call, "create node") || strings.HasPrefix(call, "delete ") || call == "reconfigure" {
			n++
		}
	}
	return n
}

// bodyEndpoint is an endpoint that accepts a body, with an example of such a
// body.
type bodyEndpoint struct {
	*api.Endpoint
	version schema.Version
	url     string
	body    string

	daemon *fake       // has made no change yet
	server *testServer // uses the field daemon; nil before the first request, and after a request that may have changed something
}

// withBodies returns the endpoints that accept a body, in each version that has
// them.
func withBodies(t *testing.T) (list []*bodyEndpoint) {
	t.Helper()
	for _, v := range api.Versions {
		for _, e := range api.Endpoints {
			if e.Request == nil || !e.In(v) {
				continue
			}
			view := schema.View{Version: v, Spelling: schema.Slurm}
			b := &bodyEndpoint{Endpoint: e, version: v, url: placeholders.Replace(e.URL(view))}
			for _, g := range goldens {
				if g.body != "" && g.method == e.Method && strings.EqualFold(strings.Trim(strings.NewReplacer("/sched/", "/slurm/", "/scheddb/", "/slurmdb/").Replace(g.path(v)), "/"), strings.Trim(b.url, "/")) {
					if b.body = firstElements(g.body); !b.refuses(t, b.body) {
						break
					}
					b.body = ""
				}
			}
			list = append(list, b)
		}
	}
	return list
}

// firstElements shortens each list at the top level of a body to its first
// element. With several records in a list, a request could be refused for one
// record and still change the others.
func firstElements(body string) string {
	var doc map[string]any
	if json.Unmarshal([]byte(body), &doc) != nil {
		return ""
	}
	for name, value := range doc {
		if list, ok := value.([]any); ok && len(list) > 1 {
			doc[name] = list[:1]
		}
	}
	text, _ := json.Marshal(doc)
	return string(text)
}

// refuses sends a body, and reports whether it was refused. The test fails if
// there was an internal error, or if a refused body changed anything.
func (b *bodyEndpoint) refuses(t *testing.T, body string) bool {
	t.Helper()
	if b.server == nil {
		b.daemon = demo()
		s := newTestServer(config(b.daemon))
		b.server = &s
	}
	w, r := httptest.NewRecorder(), request(b.Method, b.url, body)
	b.server.ServeHTTP(w, r)
	checkDocumented(t, *b.server, r, w)
	refused, changes := w.Code >= http.StatusBadRequest, b.daemon.changeCount()
	if w.Code >= 500 && w.Code != http.StatusNotImplemented || refused && changes > 0 {
		t.Errorf("%s %s %.300s: status %d, %d changes: %.300s", b.Method, b.url, body, w.Code, changes, w.Body)
	}
	if !refused || changes > 0 {
		b.server = nil
	}
	return refused
}

// TestWrongTypes sends values of the wrong type in each field of each body. It
// tests a field in the first version that has it, and again in each version
// that changes its type.
func TestWrongTypes(t *testing.T) {
	t.Parallel()
	fields, refused, bodies, withoutBody := 0, 0, 0, 0
	known := make(map[field]*schema.Shape)
	for _, b := range withBodies(t) {
		if b.body == "" {
			withoutBody++
		}
		for _, path := range b.newPaths(known) {
			fields++
			for _, value := range []any{true, -1.5, 1e30, "\x00~?", "", []any{}, []any{[]any{nil}}, map[string]any{}, map[string]any{"set": "no", "number": []any{}}} {
				var doc any
				if b.body == "" || json.Unmarshal([]byte(b.body), &doc) != nil {
					doc = map[string]any{}
				}
				text, err := json.Marshal(setPath(doc, path, value))
				if err != nil {
					t.Fatal(err)
				}
				bodies++
				if b.refuses(t, string(text)) {
					refused++
				}
			}
		}
	}
	t.Logf("%d fields, %d bodies, %d of them refused; %d endpoints without a body to begin with", fields, bodies, refused, withoutBody)
	if fields < 1000 || refused < bodies/2 {
		t.Error("too few fields, or too few refusals")
	}
}

// newPaths returns the paths of fields that are new, or whose type has changed
// since the earlier versions. The map known contains the fields of the earlier
// versions. newPaths also enters the returned fields in this map.
func (b *bodyEndpoint) newPaths(known map[field]*schema.Shape) (list [][]string) {
	for _, p := range places(b.Request.Shape(schema.View{Version: b.version, Spelling: schema.Slurm}), nil) {
		f := field{b.Endpoint, strings.Join(p.path, "/")}
		if !reflect.DeepEqual(known[f], p.shape) {
			known[f] = p.shape
			list = append(list, p.path)
		}
	}
	return list
}

// field identifies a field of an endpoint's body, whatever the version.
type field struct {
	*api.Endpoint
	path string
}

// place is a field at any depth of a body. In its path, "[]" stands for an
// element of a list.
type place struct {
	path  []string
	shape *schema.Shape
}

// places returns the fields of a shape, at any depth.
func places(s *schema.Shape, at []string) (list []place) {
	if s == nil || len(at) > 12 {
		return nil
	}
	if len(at) > 0 {
		list = append(list, place{slices.Clone(at), s})
	}
	if s.Items != nil {
		list = append(list, places(s.Items, append(at, "[]"))...)
	}
	for _, p := range s.Fields {
		if !p.Ignored {
			list = append(list, places(p.Shape, append(slices.Clone(at), p.Name))...)
		}
	}
	return list
}

// setPath sets the value at a path in doc, and returns doc. It creates missing
// objects and lists on the path.
func setPath(doc any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if path[0] == "[]" {
		list, _ := doc.([]any)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = setPath(list[0], path[1:], value)
		return list
	}
	fields, ok := doc.(map[string]any)
	if !ok {
		fields = map[string]any{}
	}
	fields[path[0]] = setPath(fields[path[0]], path[1:], value)
	return fields
}

// TestLongLists sends a very long list in place of each list in a body.
func TestLongLists(t *testing.T) {
	t.Parallel()
	lists := 0
	known := make(map[field]*schema.Shape)
	for _, b := range withBodies(t) {
		for _, path := range b.newPaths(known) {
			if path[len(path)-1] != "[]" {
				continue
			}
			lists++
			for _, element := range []any{map[string]any{}, "x", 7} {
				var doc any
				if b.body == "" || json.Unmarshal([]byte(b.body), &doc) != nil {
					doc = map[string]any{}
				}
				text, err := json.Marshal(setPath(doc, path[:len(path)-1], slices.Repeat([]any{element}, 2_000)))
				if err != nil {
					t.Fatal(err)
				}
				b.refuses(t, string(text))
			}
		}
	}
	t.Logf("%d lists", lists)
}

// looseTexts are the objects of the corpus that are not JSON, but that
// api.LooseJSON permits in Slurm's spelling. Without their fault, some of the
// endpoints accept them.
var looseTexts = []string{"n_object_trailing_comma.json"}

// TestCorpusOfBodies sends a public corpus of JSON texts to each endpoint that
// accepts a body, in its newest version. Texts that are not JSON must be
// refused. No text may cause an internal error.
func TestCorpusOfBodies(t *testing.T) {
	t.Parallel()
	texts := jsonCorpus(t)
	endpoints := 0
	list := withBodies(t)
	for i, b := range list {
		if slices.ContainsFunc(list[i+1:], func(newer *bodyEndpoint) bool { return newer.Endpoint == b.Endpoint }) {
			continue
		}
		endpoints++
		for _, c := range texts {
			if refused := b.refuses(t, c.text); !refused && c.file[0] == 'n' && !slices.Contains(looseTexts, c.file) {
				t.Errorf("%s %s accepts %s", b.Method, b.url, c.file)
			}
		}
	}
	t.Logf("%d texts, %d endpoints", len(texts), endpoints)
}

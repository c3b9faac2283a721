package handlers

import (
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/feature"
)

// TestRoutes checks that each declared endpoint is served once, and that no
// other endpoint is served.
func TestRoutes(t *testing.T) {
	cfg := config(demo())
	cfg.Content = feature.AllContent
	h := &handler{Config: cfg}
	served := map[*api.Endpoint]int{}
	for _, r := range h.routes() {
		served[r.Endpoint]++
	}
	for _, e := range api.Endpoints {
		if served[e] != 1 {
			t.Errorf("%s is served %d times", e.OperationID(schema.View{Version: api.V43}), served[e])
		}
		delete(served, e)
	}
	for e := range served {
		t.Errorf("%s %s is served and not in api.Endpoints", e.Method, e.Path)
	}
}

// TestGoldensAreComplete checks that every endpoint has a golden.
func TestGoldensAreComplete(t *testing.T) {
	requested := requestedEndpoints(t, allGoldens(t))
	for _, e := range api.Endpoints {
		if !requested[e] {
			t.Errorf("%s %s has no golden", e.Method, e.Path)
		}
	}
}

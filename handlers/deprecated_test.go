package handlers

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
)

// TestDeprecation checks which answers have the headers Deprecation and Sunset,
// and that the OpenAPI document marks the same versions.
func TestDeprecation(t *testing.T) {
	december, june := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 6, 1, 0, 0, 0, 0, time.UTC)
	cfg := config(demo())
	cfg.Deprecated = map[schema.Version]rest.Deprecation{api.V40: {Since: december, Sunset: june}, api.V41: {Since: june}}
	const since, sunset = "@1796083200", "Tue, 01 Jun 2027 00:00:00 GMT"
	tests := []struct {
		name, method, path  string
		deprecation, sunset string
		status              int
	}{
		{"a list", "GET", "/sched/v0.0.40/nodes", since, sunset, 200},
		{"the other spelling", "GET", "/slurm/v0.0.40/nodes", since, sunset, 200},
		{"accounting", "GET", "/slurmdb/v0.0.40/users", since, sunset, 200},
		{"without its end", "GET", "/sched/v0.0.41/nodes", "@1811808000", "", 200},
		{"another version", "GET", "/sched/v0.0.42/nodes", "", "", 200},
		{"the latest", "GET", "/sched/latest/nodes", "", "", 200},
		{"a wrong method", "PUT", "/sched/v0.0.40/nodes", since, sunset, 405},
		{"methods", "OPTIONS", "/sched/v0.0.40/nodes", since, sunset, 204},
		{"no such path", "GET", "/sched/v0.0.40/nothing", since, sunset, 404},
		{"no such version", "GET", "/sched/v0.0.39/nodes", "", "", 404},
		{"a page", "GET", "/meta/versions", "", "", 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := serve(t, cfg, request(tt.method, tt.path, ""))
			if w.Code != tt.status || w.Header().Get("Deprecation") != tt.deprecation || w.Header().Get("Sunset") != tt.sunset {
				t.Errorf("status %d, Deprecation %q, Sunset %q", w.Code, w.Header().Get("Deprecation"), w.Header().Get("Sunset"))
			}
		})
	}
	r := request("GET", "/sched/v0.0.40/nodes", "")
	r.Header.Del("X-SCHED-USER-TOKEN")
	if w := serve(t, cfg, r); w.Code != http.StatusUnauthorized || w.Header().Get("Sunset") != sunset {
		t.Errorf("without a token: status %d, %v", w.Code, w.Header())
	}
	marked := strings.Count(serve(t, cfg, request("GET", "/openapi", "")).Body.String(), `"deprecated":true`)
	cfg.Deprecated = nil
	all := strings.Count(serve(t, cfg, request("GET", "/openapi", "")).Body.String(), `"deprecated":true`)
	if marked < all+100 {
		t.Errorf("the document marks %d more operations", marked-all)
	}
	if w := serve(t, cfg, request("GET", "/sched/v0.0.40/nodes", "")); w.Header().Get("Deprecation")+w.Header().Get("Sunset") != "" {
		t.Errorf("headers without the setting: %v", w.Header())
	}
}

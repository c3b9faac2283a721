package rest

import (
	"net/http"
	"strings"
	"testing"
)

func TestAccept(t *testing.T) {
	const none = ""
	tests := []struct {
		name   string
		accept []string
		want   string
	}{
		{"nothing said", nil, MediaJSON},
		{"empty", []string{""}, MediaJSON},
		{"anything", []string{"*/*"}, MediaJSON},
		{"curl and friends", []string{"text/html, application/xhtml+xml, */*;q=0.8"}, MediaJSON},
		{"any application", []string{"application/*"}, MediaJSON},
		{"JSON", []string{"application/json"}, MediaJSON},
		{"YAML", []string{"application/yaml"}, MediaYAML},
		{"YAML as it was called", []string{"application/x-yaml"}, MediaXYAML},
		{"YAML as text", []string{"text/yaml"}, MediaTextYAML},
		{"any text", []string{"text/*"}, none},
		{"upper case", []string{"Application/YAML"}, MediaYAML},
		{"the same weight", []string{"application/yaml, application/json"}, MediaJSON},
		{"weights", []string{"application/json;q=0.5, application/yaml;q=0.6"}, MediaYAML},
		{"weights with spaces", []string{" application/json ; q=0.5 , application/yaml ; Q=0.501"}, MediaYAML},
		{"the more precise counts", []string{"*/*;q=1, application/json;q=0.1, application/x-yaml;q=0.2, application/yaml;q=0"}, MediaXYAML},
		{"the more precise counts, against", []string{"application/json;q=0, */*"}, MediaYAML},
		{"by kind", []string{"application/*;q=0.3, */*;q=0.9, application/yaml;q=0.4"}, MediaYAML},
		{"several lines", []string{"text/html", "application/yaml"}, MediaYAML},
		{"a parameter", []string{"application/json;charset=utf-8"}, MediaJSON},
		{"a quoted comma", []string{`application/xml;a="x, application/yaml", application/json`}, MediaJSON},
		{"none of ours", []string{"text/html"}, none},
		{"refused", []string{"application/json;q=0"}, none},
		{"all refused", []string{"*/*;q=0.000"}, none},
		{"nonsense is passed over", []string{"application/json;q=2, ;;, a/b/c, application/yaml;q=0.1"}, MediaYAML},
		{"nothing but nonsense", []string{"q=1, (json)"}, MediaJSON},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			site := newSite(0)
			r := newRequest(http.MethodGet, "/sched/v0.0.42/ping", "")
			r.Header["Accept"] = tt.accept
			w := site.serve(r)
			if tt.want != none {
				if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || got != tt.want {
					t.Errorf("status %d, Content-Type %q", w.Code, got)
				}
				return
			}
			body := envelope(t, w.Body.Bytes())
			if w.Code != http.StatusNotAcceptable || w.Header().Get("Content-Type") != MediaJSON || len(site.calls) > 0 ||
				body.Errors[0].Code != "not_acceptable" || !strings.Contains(body.Errors[0].Description, strings.Join(BodyMedia, ", ")) {
				t.Errorf("status %d, calls %v: %s", w.Code, site.calls, w.Body)
			}
		})
	}
}

// TestErrorsAreNegotiatedToo checks that errors are sent in the requested
// format.
func TestErrorsAreNegotiatedToo(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		status       int
	}{{"GET", "/nowhere", 404}, {"GET", "/sched/v0.0.39/ping", 404}, {"PUT", "/sched/v0.0.42/jobs", 405}, {"GET", "/sched/v0.0.42/job/9", 404}, {"POST", "/sched/v0.0.42/job/submit", 400}} {
		r := newRequest(tt.method, tt.path, "")
		r.Header.Set("Accept", MediaYAML)
		w := newSite(0).serve(r)
		if w.Code != tt.status || w.Header().Get("Content-Type") != MediaYAML || !strings.Contains(w.Body.String(), "\nerrors:\n  - description: ") {
			t.Errorf("%s: status %d, %s:\n%s", tt.path, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
		if got := w.Header().Get("Vary"); got != "Accept, Accept-Encoding" {
			t.Errorf("%s: Vary %q", tt.path, got)
		}
	}
}

package handlers

import (
	"net/http"
	"strings"
	"testing"

	"schedrestd/handlers/rest"
)

func TestAccept(t *testing.T) {
	const none = ""
	tests := []struct {
		name   string
		accept []string
		want   string
	}{
		{"nothing said", nil, rest.MediaJSON},
		{"empty", []string{""}, rest.MediaJSON},
		{"anything", []string{"*/*"}, rest.MediaJSON},
		{"curl and friends", []string{"text/html, application/xhtml+xml, */*;q=0.8"}, rest.MediaJSON},
		{"any application", []string{"application/*"}, rest.MediaJSON},
		{"JSON", []string{"application/json"}, rest.MediaJSON},
		{"YAML", []string{"application/yaml"}, rest.MediaYAML},
		{"YAML as it was called", []string{"application/x-yaml"}, rest.MediaXYAML},
		{"upper case", []string{"Application/YAML"}, rest.MediaYAML},
		{"the same weight", []string{"application/yaml, application/json"}, rest.MediaJSON},
		{"weights", []string{"application/json;q=0.5, application/yaml;q=0.6"}, rest.MediaYAML},
		{"weights with spaces", []string{" application/json ; q=0.5 , application/yaml ; Q=0.501"}, rest.MediaYAML},
		{"the more precise counts", []string{"*/*;q=1, application/json;q=0.1, application/x-yaml;q=0.2, application/yaml;q=0"}, rest.MediaXYAML},
		{"the more precise counts, against", []string{"application/json;q=0, */*"}, rest.MediaYAML},
		{"by kind", []string{"application/*;q=0.3, */*;q=0.9, application/yaml;q=0.4"}, rest.MediaYAML},
		{"several lines", []string{"text/html", "application/yaml"}, rest.MediaYAML},
		{"a parameter", []string{"application/json;charset=utf-8"}, rest.MediaJSON},
		{"a quoted comma", []string{`application/xml;a="x, application/yaml", application/json`}, rest.MediaJSON},
		{"none of ours", []string{"text/html"}, none},
		{"refused", []string{"application/json;q=0"}, none},
		{"all refused", []string{"*/*;q=0.000"}, none},
		{"nonsense is passed over", []string{"application/json;q=2, ;;, a/b/c, application/yaml;q=0.1"}, rest.MediaYAML},
		{"nothing but nonsense", []string{"q=1, (json)"}, rest.MediaJSON},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			r := request(http.MethodGet, "/sched/v0.0.42/ping", "")
			r.Header["Accept"] = tt.accept
			w := serve(t, config(f), r)
			if tt.want != none {
				if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || got != tt.want {
					t.Errorf("status %d, Content-Type %q", w.Code, got)
				}
				return
			}
			body := envelope(t, w.Body.Bytes())
			if w.Code != http.StatusNotAcceptable || w.Header().Get("Content-Type") != rest.MediaJSON || len(f.calls) > 0 ||
				body.Errors[0].Code != "not_acceptable" || !strings.Contains(body.Errors[0].Description, strings.Join(rest.BodyMedia, ", ")) {
				t.Errorf("status %d, calls %v: %s", w.Code, f.calls, w.Body)
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
	}{{"GET", "/nowhere", 404}, {"GET", "/sched/v0.0.39/ping", 404}, {"PUT", "/sched/v0.0.42/nodes", 405}, {"GET", "/sched/v0.0.42/node/n9", 404}, {"POST", "/sched/v0.0.42/job/submit", 400}} {
		r := request(tt.method, tt.path, "")
		r.Header.Set("Accept", rest.MediaYAML)
		w := serve(t, config(demo()), r)
		if w.Code != tt.status || w.Header().Get("Content-Type") != rest.MediaYAML || !strings.Contains(w.Body.String(), "\nerrors:\n  - description: ") {
			t.Errorf("%s: status %d, %s:\n%s", tt.path, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
		if got := w.Header().Get("Vary"); got != "Accept, Accept-Encoding" {
			t.Errorf("%s: Vary %q", tt.path, got)
		}
	}
}

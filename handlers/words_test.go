package handlers

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"schedrestd/handlers/rest"
)

// internals matches texts that no message may contain: memory addresses, paths
// on the host, types and files of this program, and names of libraries.
var internals = regexp.MustCompile(`0x[0-9a-f]{6,}|/(home|root|usr|etc|tmp|proc|var)\b|\b(schema|api|model|errs|http|url|yaml|net|json|strconv)\.[A-Za-z]|\.go\b|\*[a-z]+\.|%!`)

// TestMessagesTellNothingOfInside sends all known kinds of invalid requests,
// and checks that no message contains internal details.
func TestMessagesTellNothingOfInside(t *testing.T) {
	if !internals.MatchString("cannot unmarshal !!str into *model.JobDesc") || !internals.MatchString("parse \"%zz\": url.EscapeError") {
		t.Fatal("what should be found is not")
	}
	json := []string{"", "{", "[", "tru", "\"\\x\"", "{}", "[]", "null", `{"job":5}`, `{"job":{"script":{},"tasks":"x","argv":7,"time_limit":[],"nice":1e99,"begin_time":"then","flags":["?"],"crontab":{"specification":"x"}}}`}
	yaml := []string{"", "a: [", "\t", "a: b: c", "- a\nb", "*a", "!a b", "!!binary x", "%X", "? {", "a: 'b", "\"\\q\"", "|9x", "&a &b c", "a: @b", "\x01", "job: {script: {}, tasks: many, contiguous: yes}"}
	try := func(media, text string) {
		r := request(http.MethodPost, "/sched/v0.0.42/job/submit", text)
		r.Header.Set("Content-Type", media)
		w := serve(t, config(demo()), r)
		body := envelope(t, w.Body.Bytes())
		if w.Code < 400 || w.Code >= 500 {
			t.Errorf("%q: status %d", text, w.Code)
		}
		for _, e := range body.Errors {
			if internals.MatchString(e.Description) || e.Description == "" || strings.HasSuffix(e.Description, ".") {
				t.Errorf("%q: %q", text, e.Description)
			}
			if w.Code == http.StatusBadRequest && !strings.Contains(e.Description, "line ") {
				t.Errorf("%q: %q says no line", text, e.Description)
			}
		}
	}
	for _, text := range json {
		try(rest.MediaJSON, text)
	}
	for _, text := range yaml {
		try(rest.MediaYAML, text)
	}
	for _, path := range []string{"/sched/v0.0.42/nodes?flags=%zz", "/sched/v0.0.42/nodes?flags=x;y", "/sched/v0.0.42/job/%00", "/../etc/passwd", "/sched/v0.0.42/jobs?update_time=99999999999999999999"} {
		r := request(http.MethodGet, "/", "")
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery = strings.Split(path, "?")[0], "", strings.TrimPrefix(path, strings.Split(path, "?")[0]+"?")
		for _, e := range envelope(t, serve(t, config(demo()), r).Body.Bytes()).Errors {
			if internals.MatchString(e.Description) {
				t.Errorf("%s: %q", path, e.Description)
			}
		}
	}
}

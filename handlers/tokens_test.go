package handlers

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"schedrestd/handlers/rest"

	"github.com/google/go-cmp/cmp"
)

// anotherToken is a token whose header contains spaces and line ends.
var anotherToken = base64.RawURLEncoding.EncodeToString([]byte("{\n  \"alg\": \"RS256\",\n  \"typ\": \"JWT\"\n}")) + "." + strings.SplitN(token, ".", 2)[1]

// TestTokenInURL checks that a request with a token in its query or path is
// refused like one with an invalid credential, whatever its headers. The token
// must not reach a daemon or the log.
func TestTokenInURL(t *testing.T) {
	const nodes, node = "/sched/v0.0.42/nodes", "/sched/v0.0.42/node/"
	tests := []struct {
		name, path string
		status     int
		wantText   string // expected text in the log
	}{
		{"the header's name", nodes + "?X-SCHED-USER-TOKEN=" + token, 401, "a token in the query"},
		{"in lower case", nodes + "?x-sched-user-token=abc", 401, "a token in the query"},
		{"in the other spelling", nodes + "?x-slurm-user-token=abc", 401, "a token in the query"},
		{"with underscores", nodes + "?X_Sched_User_Token=abc", 401, "a token in the query"},
		{"encoded", nodes + "?X%2DSCHED%2DUSER%2DTOKEN=abc", 401, "a token in the query"},
		{"empty", nodes + "?X-SCHED-USER-TOKEN=", 401, "a token in the query"},
		{"without a value", nodes + "?flags=DETAIL&token", 401, "a token in the query"},
		{"behind a semicolon", nodes + "?flags=DETAIL;token=abc", 401, "a token in the query"},
		{"broken", nodes + "?access_token=%zz", 401, "a token in the query"},
		{"RFC 6750", nodes + "?access_token=" + token, 401, "a token in the query"},
		{"the variable's name", nodes + "?SCHED_JWT=abc", 401, "a token in the query"},
		{"the variable's other name", nodes + "?slurm_jwt=abc", 401, "a token in the query"},
		{"jwt", nodes + "?jwt=abc", 401, "a token in the query"},
		{"by its form", nodes + "?flags=" + token, 401, "a token in the query"},
		{"by its form, behind a word", nodes + "?flags=Bearer%20" + token, 401, "a token in the query"},
		{"by its form, with spaces in it", nodes + "?flags=" + anotherToken, 401, "a token in the query"},
		{"encrypted", nodes + "?flags=" + strings.Replace(token, ".", "..a.b.", 1), 401, "a token in the query"},
		{"as a name", nodes + "?" + token, 401, "a token in the query"},
		{"encoded dots", nodes + "?flags=" + strings.ReplaceAll(token, ".", "%2E"), 401, "a token in the query"},
		{"of the accounting daemon", "/scheddb/v0.0.42/diag?token=abc", 401, "a token in the query"},
		{"fast", "/sched/v0.0.43+fast/nodes?token=abc", 404, ""}, // the version is not served; the token must not be logged either
		{"in the path", node + token, 401, "a token in the path"},
		{"in the path, encoded", node + strings.ReplaceAll(token, ".", "%2e"), 401, "a token in the path"},
		{"as a job", "/sched/v0.0.42/job/" + token, 401, "a token in the path"},
		{"in a path that there is not", "/" + token + "/x", 404, ""},
		{"as a version", "/sched/" + token + "/nodes", 404, ""},
		{"in a query without meaning", "/nowhere?token=" + token, 404, ""},
		{"none", nodes + "?flags=DETAIL&colour=eyJ&tokens=3&x=a.b.c", 200, ""},
		{"a machine's name", node + "eyjafjalla-1.example.com", 404, ""},
	}
	var refusal string
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			f := demo()
			cfg := config(f)
			cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			w := serve(t, cfg, request(http.MethodGet, tt.path, ""))
			if w.Code != tt.status {
				t.Fatalf("status %d, want %d: %s", w.Code, tt.status, w.Body)
			}
			for _, part := range append(strings.Split(token, "."), strings.Split(anotherToken, ".")[0]) {
				if strings.Contains(log.String(), part) || strings.Contains(w.Body.String(), part) {
					t.Errorf("%s was answered: %s\n%s", part, w.Body, &log)
				}
			}
			if !strings.Contains(log.String(), tt.wantText) {
				t.Errorf("the log does not say %q: %s", tt.wantText, &log)
			}
			if tt.status != 401 {
				return
			}
			if len(f.calls) > 0 {
				t.Errorf("a daemon was asked: %v", f.calls)
			}
			if refusal == "" {
				plain := newRequest(http.MethodGet, nodes, "")
				refusal = serve(t, config(demo()), plain).Body.String()
			}
			if d := cmp.Diff(cut401(refusal), cut401(w.Body.String())); d != "" {
				t.Errorf("not the answer of any bad credential: %s", d)
			}
		})
	}
}

// cut401 removes the meta field from the body of a 401, because this field
// depends on the endpoint.
func cut401(text string) string { return text[strings.Index(text, `"errors"`):] }

// TestTokenIsNotEchoed checks that an error does not contain a token that the
// client sent in a wrong place.
func TestTokenIsNotEchoed(t *testing.T) {
	const submit = "/sched/v0.0.42/job/submit"
	half := token[:strings.LastIndexByte(token, '.')]
	for _, tt := range []struct{ name, method, path, body string }{
		{"a number", "POST", submit, `{"job":{"script":"x","tasks":"` + token + `"}}`},
		{"a number, behind a word", "POST", submit, `{"job":{"script":"x","tasks":"Bearer ` + token + `"}}`},
		{"a time", "GET", "/sched/v0.0.42/nodes?update_time=" + half, ""},
		{"a flag", "GET", "/sched/v0.0.42/nodes?flags=" + half, ""},
		{"a field's name", "POST", submit, `{"job":{"script":"x","` + token + `":1}}`},
		{"a parameter's name", "GET", "/sched/v0.0.42/nodes?" + half + "=1", ""},
		{"a job's number", "GET", "/sched/v0.0.42/job/" + half, ""},
		{"a word", "POST", submit, `{"job":{"script":"x","distribution":"` + token + `"}}`},
		{"no JSON", "POST", submit, token},
		{"no JSON's end", "POST", submit, `{"job":{"` + token + `" x`},
		{"a tag of YAML", "POST", submit, "job: !<" + token + "> x"},
	} {
		for _, media := range []string{rest.MediaJSON, rest.MediaYAML} {
			r := request(tt.method, tt.path, tt.body)
			r.Header.Set("Content-Type", media)
			w := serve(t, config(demo()), r)
			if w.Code == http.StatusUnauthorized {
				t.Errorf("%s, %s: not even looked at", tt.name, media)
			}
			for _, part := range strings.Split(token, ".") {
				if strings.Contains(w.Body.String(), part[:12]) {
					t.Errorf("%s, %s: %s", tt.name, media, w.Body)
				}
			}
		}
	}
}

// TestTokenStaysOutOfTheJob checks that the request's token is removed from the
// job's environment, whatever the name of the variable.
func TestTokenStaysOutOfTheJob(t *testing.T) {
	f := demo()
	w := serve(t, config(f), request(http.MethodPost, "/sched/v0.0.42/job/submit",
		`{"job":{"script":"x","environment":["PATH=/bin","SCHED_JWT=a","SLURM_JWT=b","MINE=Bearer `+token+`","LAST=1"]}}`))
	if len(f.submitted) != 1 || !strings.Contains(w.Body.String(), "tokens are not passed to jobs") {
		t.Fatalf("%s", w.Body)
	}
	if d := cmp.Diff([]string{"PATH=/bin", "LAST=1"}, f.submitted[0].Environment); d != "" {
		t.Error(d)
	}
}

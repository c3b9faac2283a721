package handlers

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// TestYAMLGolden compares some YAML bodies with files in testdata/golden. For
// all other bodies, TestYAMLSaysTheSame compares YAML with JSON.
func TestYAMLGolden(t *testing.T) {
	for _, tt := range goldens {
		if tt.name != "node" && tt.name != "ping" && tt.name != "not-understood" {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			r := request(tt.method, tt.path(api.V43), tt.body)
			r.Header.Set("Accept", rest.MediaYAML)
			w := serve(t, config(demo()), r)
			file := filepath.Join("testdata", "golden", tt.name+"-"+api.V43.String()+".yaml")
			if *update {
				if err := os.WriteFile(file, w.Body.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), w.Body.String()); d != "" {
				t.Errorf("golden (-), now (+):\n%s", d)
			}
		})
	}
}

// TestYAMLSaysTheSame checks that every body has the same content in each
// layout of JSON and YAML as in compact JSON. The bodies include integers
// beyond 2^53, and bytes that are not UTF-8.
func TestYAMLSaysTheSame(t *testing.T) {
	for _, tt := range goldens {
		t.Run(tt.name, func(t *testing.T) {
			var want map[string]any
			w := serve(t, config(demo()), request(tt.method, tt.path(api.V42), tt.body))
			if err := yaml.Unmarshal(w.Body.Bytes(), &want); err != nil { // JSON is valid YAML
				t.Fatal(err)
			}
			for _, layout := range []schema.Layout{schema.Compact, schema.Pretty, schema.NoTag, schema.Pretty | schema.NoTag} {
				for _, media := range []string{rest.MediaJSON, rest.MediaYAML, rest.MediaXYAML, rest.MediaTextYAML} {
					r := request(tt.method, tt.path(api.V42), tt.body)
					r.Header.Set("Accept", media)
					cfg := config(demo())
					cfg.JSON, cfg.YAML = layout, layout
					w := serve(t, cfg, r)
					var got map[string]any
					if err := yaml.Unmarshal(w.Body.Bytes(), &got); err != nil {
						t.Fatalf("%v in %s", err, w.Body)
					}
					if d := cmp.Diff(want, got); d != "" || w.Header().Get("Content-Type") != media {
						t.Errorf("%s, layout %d: %s", media, layout, d)
					}
				}
			}
		})
	}
}

// TestSubmitYAMLCancelled checks that when the client disconnects, the gateway
// stops parsing the body and submits nothing.
func TestSubmitYAMLCancelled(t *testing.T) {
	f := demo()
	r := request(http.MethodPost, "/sched/v0.0.42/job/submit", yamlJob)
	r.Header.Set("Content-Type", rest.MediaYAML)
	ctx, cancel := context.WithCancel(r.Context())
	r = r.WithContext(ctx)
	r.Body = cancelAtEOF{r.Body, cancel}
	w := serve(t, config(f), r)
	if body := envelope(t, w.Body.Bytes()); w.Code != http.StatusServiceUnavailable || len(f.submitted) > 0 ||
		!strings.Contains(body.Errors[0].Description, "request cancelled") {
		t.Errorf("status %d, %d submitted: %s", w.Code, len(f.submitted), w.Body)
	}
}

// cancelAtEOF is a request body. Reading to its end cancels the request.
type cancelAtEOF struct {
	io.ReadCloser
	cancel func()
}

func (b cancelAtEOF) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.cancel()
	}
	return n, err
}

const yamlJob = `
# the specification's example, as a person writes it
job:
  script: |
    #!/bin/sh
    hostname
  name: test
  environment: [PATH=/bin]
  current_working_directory: /tmp
  tasks: 4
  memory_per_cpu: {set: true, number: 100}
  time_limit: 5
`

func TestSubmitYAML(t *testing.T) {
	want := model.JobDesc{Script: "#!/bin/sh\nhostname\n", Name: "test", Environment: []string{"PATH=/bin"}, WorkDir: "/tmp",
		NumTasks: model.Some[uint32](4), MinMemory: model.Some(100 | model.MemPerCPU), TimeLimit: model.Some[uint32](5)}
	for _, media := range []string{rest.MediaYAML, rest.MediaXYAML, rest.MediaTextYAML, "application/yaml; charset=UTF-8"} {
		f := demo()
		r := request(http.MethodPost, "/sched/v0.0.42/job/submit", yamlJob)
		r.Header.Set("Content-Type", media)
		w := serve(t, config(f), r)
		if w.Code != http.StatusOK || len(f.submitted) != 1 {
			t.Fatalf("%s: status %d: %s", media, w.Code, w.Body)
		}
		if d := cmp.Diff(&want, f.submitted[0]); d != "" {
			t.Error(d)
		}
		if body := envelope(t, w.Body.Bytes()); len(body.Warnings) > 0 { // the answer is JSON, because no other format was requested
			t.Errorf("warnings: %+v", body.Warnings)
		}
	}
}

func TestSubmitYAMLRefuses(t *testing.T) {
	tests := []struct {
		name, body       string
		status           int
		source, wantText string
	}{
		{"not YAML", "job: [\n", 400, "#", "the body is not YAML: line 1, column"},
		{"two documents", "job: {}\n---\njob: {}\n", 400, "#", "line 2, column 1: a second document follows"},
		{"merge key", "job: {<<: {}}\n", 400, "#", "line 1, column 7: merge keys"},
		{"nothing", "", 400, "#", "line 1, column 1: a value is missing"},
		{"aliases of a long text", "script: &x " + strings.Repeat("y", 1<<20) + "\njob: {environment: [*x, *x]}\n", 413, "#",
			"line 2, column 25: aliases add too many values or too much text"},
		{"a word for a number", "job:\n  script: x\n  tasks: many\n", 422, "#/job/tasks", `expected integer, got string "many" (line 3, column 10)`},
		{"a word for a boolean", "job:\n  script: x\n  contiguous: none\n", 422, "#/job/contiguous", `expected true or false, got string "none" (line 3, column 15)`},
		{"given twice", "job:\n  script: x\n  name: a\n  name: b\n", 422, "#/job/name", "set twice (line 4, column 9)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			r := request(http.MethodPost, "/sched/v0.0.42/job/submit", tt.body)
			r.Header.Set("Content-Type", rest.MediaYAML)
			w := serve(t, config(f), r)
			body := envelope(t, w.Body.Bytes())
			if w.Code != tt.status || len(f.submitted) > 0 || len(body.Errors) != 1 || body.Errors[0].Source != tt.source ||
				!strings.Contains(body.Errors[0].Description, tt.wantText) {
				t.Errorf("status %d: %+v, want %q", w.Code, body.Errors, tt.wantText)
			}
		})
	}
}

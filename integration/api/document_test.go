package api

import (
	"bytes"
	"context"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"schedrestd/integration/harness"
)

// TestGenerateOpenAPI checks that --generate-openapi-spec works without a
// configuration. The printed document must describe every path that a gateway
// serves, but with JSON bodies only.
func TestGenerateOpenAPI(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(filepath.Join(harness.Bin, "schedrestd"), "-f", "/dev/null", "--generate-openapi-spec").Output()
	harness.Must(t, err)
	doc, err := openapi3.NewLoader().LoadFromData(out)
	harness.Must(t, err)
	harness.Must(t, doc.Validate(context.Background()))
	if bytes.Contains(out, []byte("yaml")) {
		t.Error("it mentions YAML")
	}
	l := harness.NewLab(t)
	served := l.Request("GET", "/openapi", "", "X-SCHED-USER-TOKEN:")
	if served.Status != http.StatusOK {
		t.Fatalf("GET /openapi: %d", served.Status)
	}
	paths, _ := served.Get("paths").(map[string]any)
	if len(paths) < 30 {
		t.Errorf("%d paths are served", len(paths))
	}
	for path := range paths {
		if doc.Paths.Value(path) == nil {
			t.Errorf("%s is served but not printed", path)
		}
	}
}

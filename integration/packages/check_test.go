package packages

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/handlers/apipage"
)

// TestPackages builds the packages twice, in different directories, and checks
// them with Debian's tools.
func TestPackages(t *testing.T) {
	if os.Getenv("PACKAGES_REQUIRED") == "" {
		t.Skip("builds all packages twice: make packages-check")
	}
	dir := build(t)
	list := files(t, dir, "*")
	if len(list) != 13 { // 2 packages x 2 architectures x 3 files (deb, rpm, list of software), and the checksums
		t.Fatalf("built %v", list)
	}
	t.Run("reproducible", func(t *testing.T) {
		second := build(t)
		// The function checksums verifies each build. The checksums of both
		// builds must be the same.
		if diff := cmp.Diff(checksums(t, dir), checksums(t, second)); diff != "" {
			t.Errorf("the second build differs:\n%s", diff)
		}
	})
	t.Run("lintian", func(t *testing.T) {
		out, err := exec.Command("lintian", append([]string{"--fail-on", "error", "--tag-display-limit", "0"}, files(t, dir, "*.deb")...)...).CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Error(err)
		}
	})
	t.Run("rpm", func(t *testing.T) {
		root := t.TempDir()
		script := `rpm -qp --qf '%{NAME} %{VERSION}-%{RELEASE} %{ARCH}\n' "$@"; rpm -K --nosignature "$@"
			rpm --root "$0" --initdb; rpm --root "$0" -i --nodeps --noscripts --ignorearch "$@" 2>&1
			rpm --root "$0" -V --nodeps --nouser --nogroup schedrestd schedrestd-controller; "$0"/usr/bin/schedctl --version`
		out, err := exec.Command("bash", append([]string{"-ec", script, root}, files(t, dir, "*.x86_64.rpm")...)...).CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Error(err)
		}
	})
	t.Run("apparmor", func(t *testing.T) {
		out, err := exec.Command("apparmor_parser", "-QK", "../../deploy/apparmor.d/schedrestd").CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("software", func(t *testing.T) {
		for _, file := range files(t, dir, "*.cdx.json") {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var list struct {
				Format     string `json:"bomFormat"`
				Components []struct{ Type, Name, Version string }
			}
			if err := json.Unmarshal(text, &list); err != nil || list.Format != "CycloneDX" {
				t.Fatalf("%s: %v, %q", file, err, list.Format)
			}
			count := map[string]int{}
			page := false
			for _, c := range list.Components {
				count[c.Type]++
				page = page || c.Name == "swagger-ui-dist" && c.Version == apipage.Version
			}
			if page == strings.Contains(file, "-controller") {
				t.Errorf("%s: Swagger UI is listed: %t", filepath.Base(file), page)
			}
			if count["application"] < 2 || count["library"] < 5 {
				t.Errorf("%s: %v", filepath.Base(file), count)
			}
		}
	})
}

// files returns the files in dir whose names match pattern.
func files(t *testing.T, dir, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(list) == 0 {
		t.Fatalf("%s in %s: %v, %v", pattern, dir, list, err)
	}
	return list
}

// checksums verifies the checksums in dir and returns them, one per line.
func checksums(t *testing.T, dir string) []string {
	t.Helper()
	cmd := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

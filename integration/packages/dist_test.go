package packages

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDist builds the archive twice, from copies of the sources in different
// directories, and the second time with an empty build cache. Both builds must
// be the same. The list of the software in the programs must have the modules
// of deploy/THIRD-PARTY.txt.
func TestDist(t *testing.T) {
	if os.Getenv("PACKAGES_REQUIRED") == "" {
		t.Skip("builds all programs twice: make dist-check")
	}
	first := dist(t, "a", nil)
	second := dist(t, "another-directory-with-a-long-name", []string{"GOCACHE=" + t.TempDir()})
	if diff := cmp.Diff(checksums(t, first), checksums(t, second)); diff != "" {
		t.Errorf("the second build differs:\n%s", diff)
	}
	text, err := os.ReadFile(files(t, first, "*.cdx.json")[0])
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Components []struct{ Type, Name, Version string }
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, c := range list.Components {
		if c.Type == "library" && c.Name != "stdlib" {
			got = append(got, c.Name+" "+c.Version)
		}
	}
	notices, err := os.ReadFile("../../deploy/THIRD-PARTY.txt")
	if err != nil {
		t.Fatal(err)
	}
	names, _, _ := strings.Cut(string(notices), "\n====")
	for line := range strings.Lines(names) {
		if name, ok := strings.CutPrefix(line, "  "); ok && strings.Count(name, " ") == 1 {
			want = append(want, strings.TrimSpace(name))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-deploy/THIRD-PARTY.txt +list of software:\n%s", diff)
	}
}

// dist copies the sources into a folder called name, runs "make dist" there,
// and returns the directory with the result.
func dist(t *testing.T, name string, env []string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	script := `mkdir "$0" && tar -C ../.. --exclude=./bin --exclude=./dist --exclude=./.git --exclude=node_modules -cf - . | tar -C "$0" -xf -
		make -s -C "$0" dist VERSION=test COMMIT=test DATE=2026-01-02 COMPRESSION=1`
	cmd := exec.Command("sh", "-ec", script, dir)
	cmd.Env = append(append(os.Environ(), "MAKEFLAGS="), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make dist: %v\n%s", err, out)
	}
	return filepath.Join(dir, "dist")
}

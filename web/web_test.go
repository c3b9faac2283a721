package web

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestBuilt checks that the committed files in dist were built from the
// committed sources. It computes the same hash as build.mjs.
func TestBuilt(t *testing.T) {
	names := []string{"build.mjs", "package.json", "package-lock.json", "tsconfig.json"}
	err := fs.WalkDir(os.DirFS("."), "src", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	hash := sha256.New()
	for _, name := range names {
		text, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(hash, "%x  %s\n", sha256.Sum256(text), name)
	}
	built, err := os.ReadFile("dist/SOURCES")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x\n", hash.Sum(nil)); got != string(built) {
		t.Errorf("dist is older than the sources: make web")
	}
}

// TestFiles checks that the files are small, that their names are hashes of
// their contents, and that the page refers to all of them and to nothing else.
func TestFiles(t *testing.T) {
	const limit = 150 << 10 // bytes, compressed
	size := 0
	files := Files()
	page := files["status"].Plain()
	for name, f := range files {
		size += len(f.Body)
		text := f.Plain()
		if len(text) != f.Size() || text == "" {
			t.Errorf("%s: %d bytes, but its size is %d", name, len(text), f.Size())
		}
		if name == "status" {
			continue
		}
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
		if base := path.Base(name); !strings.HasPrefix(sum, strings.TrimSuffix(base, path.Ext(base))) {
			t.Errorf("%s: the content has the hash %s", name, sum)
		}
		if !strings.Contains(page, `"`+name+`"`) {
			t.Errorf("the page does not refer to %s", name)
		}
		if f.Media == "" || f.Caching == "" {
			t.Errorf("%s: media type %q, caching %q", name, f.Media, f.Caching)
		}
	}
	if size > limit {
		t.Errorf("the page has %d bytes, more than %d", size, limit)
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if _, ok := files[m[1]]; !ok {
			t.Errorf("the page refers to %s, which is not among the files", m[1])
		}
	}
}

// TestNothingInline checks that the page has no inline script, style or event
// handler, and refers to no other server. The policy would block these.
func TestNothingInline(t *testing.T) {
	for name, f := range Files() {
		text := strings.ReplaceAll(f.Plain(), "http://www.w3.org/", "") // names of XML namespaces
		pattern := `(?i)(?:src|href|url\()\s*=?\s*["'(]?(?:https?:)?//|@import|\beval\(|new Function\(|document\.cookie|localStorage`
		if name == "status" {
			pattern += `|<style|style=|\son[a-z]+=|javascript:|<script[^>]*>[^<]`
		}
		if m := regexp.MustCompile(pattern).FindString(text); m != "" {
			t.Errorf("%s contains %q", name, m)
		}
	}
	for _, word := range []string{"unsafe", "*", "http", "data:"} {
		if strings.Contains(Policy, word) {
			t.Errorf("the policy contains %q: %s", word, Policy)
		}
	}
}

// TestLibraries checks that Libraries lists the packages that the page is built
// from, that their licences are here, and that no package comes from another
// place than npm's registry.
func TestLibraries(t *testing.T) {
	var manifest struct{ Dependencies map[string]string }
	readJSON(t, "package.json", &manifest)
	for _, l := range Libraries {
		if manifest.Dependencies[l.Name] != l.Version {
			t.Errorf("package.json has %s %s, not %s", l.Name, manifest.Dependencies[l.Name], l.Version)
		}
		if _, err := os.Stat(filepath.Join("licences", l.Name, "LICENSE")); err != nil {
			t.Error(err)
		}
	}
	if len(manifest.Dependencies) != len(Libraries) {
		t.Errorf("package.json has %d dependencies, Libraries %d", len(manifest.Dependencies), len(Libraries))
	}
	var lock struct {
		Packages map[string]struct{ Version, Resolved, Integrity string }
	}
	readJSON(t, "package-lock.json", &lock)
	for name, p := range lock.Packages {
		if name != "" && (p.Integrity == "" || p.Resolved != "" && !strings.HasPrefix(p.Resolved, "https://registry.npmjs.org/")) {
			t.Errorf("%s: integrity %q, from %q", name, p.Integrity, p.Resolved)
		}
	}
}

func readJSON(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

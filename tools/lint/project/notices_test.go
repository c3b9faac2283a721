package project

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"schedrestd/handlers/apipage"
	"schedrestd/web"
)

const noticesFile = "deploy/THIRD-PARTY.txt"

// TestNotices compares deploy/THIRD-PARTY.txt with the modules that our programs link,
// and with the texts that their licences require us to include.
func TestNotices(t *testing.T) {
	t.Chdir(root)
	want := notices(t)
	if *update {
		if err := os.WriteFile(noticesFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(noticesFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s does not match the linked modules: make golden", noticesFile)
	}
}

// linkedModule is a module that a program links, with the directories of its
// licence files.
type linkedModule struct {
	path, version, dir string
	dirs               map[string]bool
}

// vendored returns the software that is part of our sources but is not a Go
// module.
func vendored() map[string]linkedModule {
	list := map[string]linkedModule{
		"swagger-ui-dist": {"swagger-ui-dist", apipage.Version, "handlers/apipage/swagger-ui", map[string]bool{"handlers/apipage/swagger-ui": true}},
	}
	for _, l := range web.Libraries {
		dir := "web/licences/" + l.Name
		list[l.Name] = linkedModule{l.Name, l.Version, dir, map[string]bool{dir: true}}
	}
	return list
}

// notices returns the content of deploy/THIRD-PARTY.txt.
func notices(t *testing.T) []byte {
	t.Helper()
	modules := map[string]*linkedModule{}
	for _, arch := range []string{"amd64", "arm64"} {
		linkedModules(t, arch, modules)
	}
	for name, m := range vendored() {
		modules[name] = &m
	}
	var page bytes.Buffer
	fmt.Fprintf(&page, "The programs of schedrestd contain the following software. schedrestd itself is\nunder the Apache License, Version 2.0 (LICENSE).\n\n")
	order := slices.SortedFunc(maps.Values(modules), func(a, b *linkedModule) int { return cmp.Compare(a.path, b.path) })
	for _, m := range order {
		fmt.Fprintf(&page, "  %s %s\n", m.path, m.version)
	}
	fmt.Fprintf(&page, "  The Go runtime and standard library, under the licence of golang.org/x/sys\n")
	for _, m := range order {
		texts := 0
		for _, dir := range slices.Sorted(maps.Keys(m.dirs)) {
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if f.IsDir() || !regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)`).MatchString(f.Name()) {
					continue
				}
				text, err := os.ReadFile(filepath.Join(dir, f.Name()))
				if err != nil {
					t.Fatal(err)
				}
				name, err := filepath.Rel(m.dir, filepath.Join(dir, f.Name()))
				if err != nil {
					t.Fatal(err)
				}
				texts++
				fmt.Fprintf(&page, "\n%s\n%s: %s\n%[1]s\n\n%[4]s\n", strings.Repeat("=", 80), m.path, name, bytes.TrimSpace(text))
			}
		}
		if texts == 0 {
			t.Errorf("%s has no licence file", m.path)
		}
	}
	return page.Bytes()
}

// linkedModules finds the modules that the programs link on the architecture
// arch, and adds them to modules.
func linkedModules(t *testing.T, arch string, modules map[string]*linkedModule) {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=Dir,Module", "./cmd/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Module == nil || p.Module.Main {
			continue
		}
		m := modules[p.Module.Path]
		if m == nil {
			m = &linkedModule{p.Module.Path, p.Module.Version, p.Module.Dir, map[string]bool{}}
			modules[m.path] = m
		}
		// A package may have a different licence from its module.
		for dir := p.Dir; strings.HasPrefix(dir, m.dir); dir = filepath.Dir(dir) {
			m.dirs[dir] = true
		}
	}
}

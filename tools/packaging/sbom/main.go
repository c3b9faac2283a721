// Command sbom writes a list of the software that programs contain, in
// CycloneDX 1.6 format. The list includes the software in the pages for
// browsers, and the modules that the linker recorded in the programs. The output
// depends only on the arguments and the programs.
//
//	sbom NAME VERSION PROGRAM...
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"schedrestd/handlers/apipage"
	"schedrestd/web"
)

// The type bom and the types below have the fields of CycloneDX that sbom
// writes.
type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	URL        string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: sbom NAME VERSION PROGRAM...")
		os.Exit(2)
	}
	b, err := describe(os.Args[1], os.Args[2], os.Args[3:])
	if err == nil {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		err = e.Encode(b)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// describe returns a list of the programs, and of all modules in them.
func describe(name, version string, programs []string) (*bom, error) {
	b := &bom{Format: "CycloneDX", Spec: "1.6", Version: 1}
	b.Metadata.Component = component{Type: "application", Ref: name, Name: name, Version: version}
	root := dependency{Ref: name}
	modules := map[string]component{}
	for _, path := range programs {
		program, contents, err := inspect(path, version)
		if err != nil {
			return nil, err
		}
		d := dependency{Ref: program.Ref}
		for _, c := range contents {
			modules[c.Ref] = c
			d.DependsOn = append(d.DependsOn, c.Ref)
		}
		b.Components = append(b.Components, program)
		b.Dependencies = append(b.Dependencies, d)
		root.DependsOn = append(root.DependsOn, program.Ref)
	}
	b.Dependencies = append([]dependency{root}, b.Dependencies...)
	refs := make([]string, 0, len(modules))
	for ref := range modules {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	for _, ref := range refs {
		b.Components = append(b.Components, modules[ref])
	}
	return b, nil
}

// inspect reads a program. It returns a component for the program, and a sorted
// list of components for the modules in the program.
func inspect(path, version string) (component, []component, error) {
	f, err := os.Open(path)
	if err != nil {
		return component{}, nil, err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return component{}, nil, fmt.Errorf("read %s: %w", path, err)
	}
	info, err := buildinfo.Read(f)
	if err != nil {
		return component{}, nil, fmt.Errorf("read the modules of %s: %w", path, err)
	}
	name := filepath.Base(path)
	program := component{Type: "application", Ref: "program:" + name, Name: name, Version: version,
		Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sum.Sum(nil))}}}
	for _, s := range info.Settings {
		program.Properties = append(program.Properties, property{"go:build:" + s.Key, s.Value})
	}
	modules := []component{library("stdlib", libraryVersion(info.GoVersion), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, library(m.Path, m.Version, m.Sum))
	}
	if info.Path == worker {
		for _, l := range append([]web.Library{{Name: "swagger-ui-dist", Version: apipage.Version}}, web.Libraries...) {
			url := "pkg:npm/" + l.Name + "@" + l.Version
			modules = append(modules, component{Type: "library", Ref: url, Name: l.Name, Version: l.Version, URL: url})
		}
	}
	slices.SortFunc(modules, func(a, b component) int {
		if a.Ref < b.Ref {
			return -1
		}
		return 1
	})
	return program, modules, nil
}

// libraryVersion returns the version of a toolchain's standard library. The
// argument has the form of runtime.Version, such as "go1.26.1",
// "go1.26.1 X:nodwarf5" or "devel go1.27-0123abcd Mon Jan 2".
func libraryVersion(toolchain string) string {
	for word := range strings.FieldsSeq(toolchain) {
		if version, ok := strings.CutPrefix(word, "go"); ok {
			return version
		}
	}
	return strings.ReplaceAll(toolchain, " ", "_")
}

// worker is the program that contains the pages for browsers. They use packages
// of npm, which the linker does not record because they are not Go modules.
const worker = "schedrestd/cmd/schedrestd-worker"

// library returns the component for a module. The sum argument is the module's
// checksum from go.sum. This checksum is not the hash of a file.
func library(path, version, sum string) component {
	url := "pkg:golang/" + path + "@" + version
	c := component{Type: "library", Ref: url, Name: path, Version: version, URL: url}
	if sum != "" {
		c.Properties = []property{{"go:sum", sum}}
	}
	return c
}

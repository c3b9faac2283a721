// Package web contains the page at /status, which shows the cluster in a
// browser. The sources of the page are in src (TypeScript). "make web" builds
// them into dist, which is committed, so that only a change of the page needs
// Node.js. The page uses nothing but the public REST API, with the token of its
// user.
package web

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"path"
	"strings"
	"sync"

	"schedrestd/internal/asset"
)

// Policy is the Content-Security-Policy of the page. It permits only scripts,
// styles, the icon and requests of this gateway. No text can become a script:
// the page has no inline scripts, and must not write to what a browser would
// parse as HTML or compile as a script (Trusted Types).
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// A Library is software of others in the page, with its licence in the folder
// licences. Its version is that of package.json.
type Library struct{ Name, Version string }

// Libraries lists the libraries in the page.
var Libraries = []Library{
	{"preact", "11.2.0"},
	{"uplot", "1.6.32"},
}

//go:embed dist/*.gz
var dist embed.FS

// media maps the ends of file names to media types.
var media = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Files returns the files. The keys are their paths without the leading slash.
// The name of each file except the page itself is a hash of its content, so
// browsers may keep it forever.
var Files = sync.OnceValue(func() map[string]asset.File {
	files := map[string]asset.File{}
	entries, err := dist.ReadDir("dist")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, e := range entries {
		body, err := dist.ReadFile("dist/" + e.Name())
		if err != nil {
			panic(err)
		}
		f := asset.Gzipped(media[path.Ext(strings.TrimSuffix(e.Name(), ".gz"))], string(body))
		if e.Name() == index {
			sum := sha256.Sum256(body)
			f.Caching, f.Tag = "no-cache", `"`+base64.RawURLEncoding.EncodeToString(sum[:16])+`"`
		} else {
			f.Caching = "public, max-age=31536000, immutable"
		}
		files[pathOf(e.Name())] = f
	}
	return files
})

// index is the file of the page itself.
const index = "index.html.gz"

// pathOf returns the path of an embedded file.
func pathOf(name string) string {
	if name == index {
		return "status"
	}
	return "status/" + strings.TrimSuffix(name, ".gz")
}

// Paths returns the keys of Files. It reads no file, because each worker needs
// the paths at its start, but few workers need a file.
func Paths() (paths []string) {
	entries, err := dist.ReadDir("dist")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, e := range entries {
		paths = append(paths, pathOf(e.Name()))
	}
	return paths
}

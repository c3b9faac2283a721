// Package apipage contains the files of the page at /docs. The page consists of
// Swagger UI and a form. In the form, the user enters a token, and selects a
// version of the API and a spelling of its paths (slurm or sched).
package apipage

import (
	_ "embed" // for the embedded files
	"sync"

	"schedrestd/internal/asset"
)

// Policy is the Content-Security-Policy of the page. It allows only scripts and
// styles from this gateway, so that no text in a document can become a script
// or style. It also allows images with data: URLs, which Swagger UI's style
// sheet uses.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Version is the version of Swagger UI, the npm package swagger-ui-dist. To
// upgrade, compress the two files of the new version with gzip -9 -n, copy its
// LICENSE and NOTICE, and change the checksums in the test.
const Version = "5.35.0"

//go:embed index.html
var index string

//go:embed page.css
var style string

//go:embed page.js
var script string

//go:embed swagger-ui/swagger-ui.css.gz
var swaggerStyle string

//go:embed swagger-ui/swagger-ui-bundle.js.gz
var swaggerScript string

// Files returns the files. The keys are their paths without the leading slash.
var Files = sync.OnceValue(func() map[string]asset.File {
	const css, javascript = "text/css; charset=utf-8", "text/javascript; charset=utf-8"
	large := func(media, body string) asset.File {
		f := asset.Gzipped(media, body)
		f.Caching = "public, max-age=3600"
		return f
	}
	return map[string]asset.File{
		"docs":                      {Media: "text/html; charset=utf-8", Body: index},
		"docs/page.css":             {Media: css, Body: style},
		"docs/page.js":              {Media: javascript, Body: script},
		"docs/swagger-ui.css":       large(css, swaggerStyle),
		"docs/swagger-ui-bundle.js": large(javascript, swaggerScript),
	}
})

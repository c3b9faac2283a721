// Package apipage contains the files of the page at /docs. The page consists of
// Swagger UI and a form. In the form, the user enters a token, and selects a
// version of the API and a spelling of its paths (slurm or sched).
//
// The files are embedded in the program's read-only segment, and large files
// are compressed. The kernel loads a file when a client first requests it.
package apipage

import (
	_ "embed" // for the embedded files
	"encoding/binary"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
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

// File is a file of the page.
type File struct {
	Media   string
	Body    string
	Gzipped bool // Body is compressed

	decompress func() string // returns the decompressed Body; only if Gzipped
}

// Plain returns the content of the file, without compression. It decompresses a
// file only once, because otherwise a client without a token could make the
// gateway do this work with each short request.
func (f File) Plain() string {
	if f.Gzipped {
		return f.decompress()
	}
	return f.Body
}

// gzipped returns a compressed file.
func gzipped(media, body string) File {
	return File{Media: media, Body: body, Gzipped: true, decompress: sync.OnceValue(func() string {
		r, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			panic(err) // a test decompresses all files
		}
		var text strings.Builder
		if _, err := io.Copy(&text, r); err != nil {
			panic(err)
		}
		return text.String()
	})}
}

// Size returns the uncompressed length of the file. In a compressed file, this
// length is the last field (ISIZE in RFC 1952).
func (f File) Size() int {
	if !f.Gzipped {
		return len(f.Body)
	}
	return int(binary.LittleEndian.Uint32([]byte(f.Body[len(f.Body)-4:])))
}

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
var Files = sync.OnceValue(func() map[string]File {
	const css, javascript = "text/css; charset=utf-8", "text/javascript; charset=utf-8"
	return map[string]File{
		"docs":                      {Media: "text/html; charset=utf-8", Body: index},
		"docs/page.css":             {Media: css, Body: style},
		"docs/page.js":              {Media: javascript, Body: script},
		"docs/swagger-ui.css":       gzipped(css, swaggerStyle),
		"docs/swagger-ui-bundle.js": gzipped(javascript, swaggerScript),
	}
})

// Package asset describes the files of pages for browsers. The files are
// embedded in the program's read-only segment, and large files are compressed.
// The kernel loads a file when a client first requests it.
package asset

import (
	"encoding/binary"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// File is a file of a page.
type File struct {
	Media   string
	Body    string
	Gzipped bool   // Body is compressed
	Caching string // Cache-Control of the answer; "" for no-store
	Tag     string // ETag of the answer, which clients that keep the file send back; "" for none

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

// Gzipped returns a file whose body is compressed with gzip.
func Gzipped(media, body string) File {
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

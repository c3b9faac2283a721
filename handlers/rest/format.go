package rest

import (
	"io"
	"strings"
	"sync"

	"schedrestd/api/schema"
)

// bodyWriter is an Encoder that writes the body to the client.
type bodyWriter interface {
	schema.Encoder
	Flush() error
	Marked() []byte
}

// writer is a bodyWriter that is reused.
type writer interface {
	bodyWriter
	Reset(io.Writer)
	Capacity() int
}

// maxPooled is the maximum size of a buffer that is kept for the next answer.
// Without a limit, a buffer that grew for one very long text would occupy
// memory permanently.
const maxPooled = 256 << 10

// formats keeps the writers of each format for reuse.
type formats struct{ json, yaml sync.Pool }

func newFormats(json, yaml schema.Layout) *formats {
	return &formats{
		json: sync.Pool{New: func() any { return schema.NewJSONWriter(nil, json) }},
		yaml: sync.Pool{New: func() any { return schema.NewYAMLWriter(nil, yaml) }},
	}
}

func (f *formats) pool(media string) *sync.Pool {
	if isYAML(media) {
		return &f.yaml
	}
	return &f.json
}

// get returns a writer that writes to w in the format of the media type.
func (f *formats) get(media string, w io.Writer) writer {
	out := f.pool(media).Get().(writer)
	out.Reset(w)
	return out
}

// put returns a writer for reuse.
func (f *formats) put(media string, out writer) {
	if out.Reset(nil); out.Capacity() <= maxPooled {
		f.pool(media).Put(out)
	}
}

// Media types of bodies.
const (
	MediaJSON = "application/json"
	MediaYAML = "application/yaml"

	// Older names of application/yaml, which clients of slurmrestd use.
	MediaXYAML    = "application/x-yaml"
	MediaTextYAML = "text/yaml"
)

// MediaCSV is the media type of a table (RFC 4180). Only operations with
// Endpoint.CSV have it, and only their successful answers.
const MediaCSV = "text/csv"

// BodyMedia are the media types that every answer can have.
var BodyMedia = []string{MediaJSON, MediaYAML, MediaXYAML, MediaTextYAML}

// isYAML reports whether the media type of a body is YAML. If it is not YAML,
// it is JSON.
func isYAML(media string) bool { return strings.HasSuffix(media, "yaml") }

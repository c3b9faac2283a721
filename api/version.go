// Package api declares the REST API: its endpoints and the objects in their
// bodies, in all API versions and in both spellings (see schema.Spelling). It
// contains no HTTP code: packages handlers and rest serve the endpoints. The
// router, the parsers and renderers of bodies, and the OpenAPI documents all use
// the tables in this package, so they always agree.
//
// Each file declares one kind of object. For example, node.go contains the
// table of a node's fields, and jobfields.go that of a job's fields. The types
// of values that many tables use are in number.go, time.go, text.go and
// names.go. The file endpoint.go describes an endpoint, envelope.go what all
// answers have in common. In each version, the fields and their types are the
// same as in slurmrestd. A test compares them with slurmrestd's documents.
// Fields that slurmrestd lacks are marked with schema.Extension. Operations
// that slurmrestd lacks are marked with SlurmSince.
package api

import (
	"schedrestd/api/schema"
	"schedrestd/internal/feature"
)

// The API versions, for the tables. Package feature lists them. v0.0.41 and v0.0.42 hardly differ. In v0.0.40, the types of
// several numbers differ from those in later versions.
const (
	V40 schema.Version = 40
	V41 schema.Version = 41
	V42 schema.Version = 42
	V43 schema.Version = 43
	V44 schema.Version = 44
	V45 schema.Version = 45
	V46 schema.Version = 46
)

// Versions lists all API versions, oldest first. Latest is the newest of them
// that is not a preview.
var (
	Versions = versions()
	Latest   = schema.Version(feature.LatestOf(feature.Parsers).Version)
)

func versions() []schema.Version {
	var list []schema.Version
	for _, p := range feature.Parsers {
		list = append(list, schema.Version(p.Version))
	}
	return list
}

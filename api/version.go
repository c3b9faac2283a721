// Package api declares the REST surface: which endpoints there are and what the
// objects in their bodies look like, in every API version served and in both
// spellings, each once. It contains no behaviour and no HTTP. Package handlers
// joins its endpoints with functions. Router, parsing, rendering and documents are
// derived from these tables, so that they always agree.
//
// Each file has one entity: node.go has the table of nodes, and so on. Fields and
// types are those of slurmrestd, version by version; a test compares them with its
// documents. Our additions are marked Ours.
package api

import "schedrestd/api/schema"

// The API versions. v0.0.41 is v0.0.42 in most things; v0.0.40 types several
// numbers differently.
const (
	V40 schema.Version = 40
	V41 schema.Version = 41
	V42 schema.Version = 42
	V43 schema.Version = 43
	V44 schema.Version = 44
	V45 schema.Version = 45
)

// Versions lists all API versions, oldest first.
var Versions = []schema.Version{V40, V41, V42, V43, V44, V45}

package api

import "schedrestd/api/schema"

// Endpoint declares one operation: what is asked how, and what is answered. What it
// does is handlers' to say.
type Endpoint struct {
	Method     string
	Accounting bool   // under the accounting daemon's path segment
	Path       string // after the version, "node/{node_name}"
	ID         string // of the operation, "get_node"
	Doc        string // one line
	Params     []Param
	Request    Described // nil: no body
	Answer     Described
	Since      schema.Version // 0: all versions
}

// Param is a part of the path, or of the query, that the client chooses.
type Param struct {
	Name string
	Doc  string
}

// Described is a body's table.
type Described interface {
	Shape(schema.View) *schema.Shape
}

// Segment is the first segment of an endpoint's path in the spelling s.
func (e *Endpoint) Segment(s schema.Spelling) string {
	if e.Accounting {
		return pathAccounting.in(s)
	}
	return pathController.in(s)
}

// In tells whether the endpoint exists in v.
func (e *Endpoint) In(v schema.Version) bool { return v >= e.Since }

// Endpoints is every endpoint there is. Paths and IDs follow what clients of slurmrestd know.
var Endpoints = []*Endpoint{
	&GetPing,
	&GetNodes, &GetNode,
	&GetJobs, &GetJob, &DeleteJob, &PostJobSubmit,
	&GetAccountingPing, &GetAccountingDiag,
}

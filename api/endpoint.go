package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"schedrestd/api/schema"
)

// Endpoint declares an operation: its request and its answers. Package handlers
// implements it.
type Endpoint struct {
	Method     string
	Accounting bool   // under the accounting daemon's path segment
	Util       bool   // under the path segment of operations without a daemon
	Path       string // after the version, "node/{node_name}"; a "/" at the end is for documents alone
	ID         string // operationId of the document, such as "get_node"
	Doc        string // one line
	About      string // more, in sentences
	Takes      string // describes the body of a request, in one line
	Returns    string // describes the answer to a successful request, in one line
	Params     Described
	Request    Described // nil: no body
	Answer     Answered
	Missing    Missing        // how slurmrestd answers for an unknown name
	Since      schema.Version // 0: from the first version on
	Until      schema.Version // gone from that version on; 0: never
	Changes    bool           // a GET that changes something
	Keyed      bool           // it takes an Idempotency-Key
	Ours       schema.Version // Slurm's gateway has it from this version on; 0: in all
}

// Missing says how Slurm's gateway answers a name that it does not find.
type Missing uint8

// The ways. Clients of slurmrestd rely on them: to many a 404 is a failure, and 200 with an empty list
// is "not found".
const (
	MissingIs404 Missing = iota
	MissingIs422
	MissingIsError   // 200, an empty list, and an error
	MissingIsWarning // 200, an empty list, and a warning
)

// Always in Endpoint.Ours says that Slurm's gateway has it in no version.
const Always schema.Version = 255

// Described is a table, of a body or of parameters.
type Described interface {
	Shape(schema.View) *schema.Shape
}

// Operation is an Endpoint with the table that its parameters are parsed by. A parameter that
// Path names in braces is a part of the path; the others are in the query.
type Operation[P any] struct {
	*Endpoint
	Params *schema.ObjectType[P]
}

// declare makes an Operation and adds its endpoint to Endpoints.
func declare[P any](params *schema.ObjectType[P], e Endpoint) Operation[P] {
	e.Params = params
	Endpoints = append(Endpoints, &e)
	return Operation[P]{&e, params}
}

// Segment returns the first segment of the endpoint's path in the spelling s.
func (e *Endpoint) Segment(s schema.Spelling) string {
	if e.Util {
		return pathUtil
	}
	if e.Accounting {
		return pathAccounting.in(s)
	}
	return pathController.in(s)
}

// URL returns the whole path in v.
func (e *Endpoint) URL(v schema.View) string {
	return "/" + e.Segment(v.Names) + "/" + v.Version.String() + "/" + e.Path
}

// OperationID returns the operation's name in documents,
// "sched_v0042_get_node".
func (e *Endpoint) OperationID(v schema.View) string {
	return fmt.Sprintf("%s_v%04d_%s", e.Segment(v.Names), v.Version, e.ID)
}

// Changing reports whether the endpoint changes something.
func (e *Endpoint) Changing() bool { return e.Changes || e.Method != http.MethodGet && !e.Util }

// InPath reports whether the parameter name is a part of the path.
func (e *Endpoint) InPath(name string) bool {
	return strings.Contains(e.Path, "{"+name+"}")
}

// In reports whether the endpoint exists in v.
func (e *Endpoint) In(v schema.Version) bool {
	return v >= e.Since && (e.Until == 0 || v < e.Until)
}

// Endpoints is every endpoint there is: those that declare made, by path. Paths
// and IDs follow what clients of slurmrestd know.
var Endpoints []*Endpoint

func init() {
	slices.SortStableFunc(Endpoints, func(a, b *Endpoint) int {
		return cmp.Or(cmp.Compare(a.Segment(schema.Slurm), b.Segment(schema.Slurm)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Since, b.Since))
	})
}

package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
)

// Endpoint declares an operation: its request and its answers. The code that
// serves the operation is in package handlers.
type Endpoint struct {
	Method      string
	Accounting  bool      // the path begins with the accounting daemon's segment
	Util        bool      // the path begins with the segment for operations that need no daemon
	Path        string    // path after the version, such as "node/{node_name}"; a trailing "/" is part of it only in documents
	ID          string    // last part of the operation's name in documents, such as "get_node"
	Doc         string    // summary, in one line
	Description string    // longer description, in sentences
	RequestDoc  string    // description of the request's body, in one line
	AnswerDoc   string    // description of a successful answer, in one line
	Scope       scope.Set // what a client needs; declare sets it
	Params      Table
	Request     Table  // table of the request's body; nil for no body
	Example     string // a body, as JSON, that is valid in all versions and both spellings; "" for none
	Answer      AnswerTable
	Since       schema.Version // first version that has the operation; 0 for all
	Until       schema.Version // first version that lacks the operation; 0 for none
	ChangingGET bool           // a GET that changes something
	Paged       bool           // a GET whose answer is a list that clients can get in pages
	Collection  string         // name of the list in the answer, if clients can follow its changes; otherwise ""
	Ending      bool           // a request about one job, which may wait until the job runs or has ended
	NoFields    bool           // a GET whose answer describes a daemon, so it lacks the FieldsParameter
	Keyed       bool           // the operation accepts an Idempotency-Key
	SlurmSince  schema.Version // first version in which slurmrestd also has the operation; 0 for all, slurmNever for none
	SchedOnly   bool           // the operation does not exist in Slurm's spelling
	Text        bool           // the answer is text, or a stream of events with the text
	CSV         bool           // the records of the answer can also be CSV
}

// slurmNever is the value of Endpoint.SlurmSince for an operation that does not
// exist in slurmrestd.
const slurmNever schema.Version = 255

// Table is the interface that all tables of fields or parameters implement. It
// does not depend on the Go type of the objects that a table describes.
type Table interface {
	Shape(schema.View) *schema.Shape
}

// Operation is an Endpoint with the table of its parameters. If Path contains a
// parameter's name in braces, the parameter is part of the path. Otherwise it
// is in the query.
type Operation[P any] struct {
	Endpoint *Endpoint
	Params   *schema.ObjectType[P]
}

// declare returns an Operation, which needs the given scope, and adds its
// endpoint to Endpoints.
func declare[P any](needed scope.Set, params *schema.ObjectType[P], e Endpoint) Operation[P] {
	e.Scope, e.Params = needed, params
	Endpoints = append(Endpoints, &e)
	return Operation[P]{&e, params}
}

// Segment returns the first segment of the endpoint's path, such as "sched" or,
// in Slurm's spelling, "slurm".
func (e *Endpoint) Segment(s schema.Spelling) string {
	if e.Util {
		return pathUtil
	}
	if e.Accounting {
		return pathAccounting.in(s)
	}
	return pathController.in(s)
}

// URL returns the full path of the endpoint for the version and spelling in v,
// such as "/sched/v0.0.42/nodes/".
func (e *Endpoint) URL(v schema.View) string {
	return "/" + e.Segment(v.Spelling) + "/" + v.Version.String() + "/" + e.Path
}

// OperationID returns the operation's name in documents, such as
// "sched_v0042_get_node".
func (e *Endpoint) OperationID(v schema.View) string {
	return fmt.Sprintf("%s_v%04d_%s", e.Segment(v.Spelling), v.Version, e.ID)
}

// Changing reports whether the endpoint changes something.
func (e *Endpoint) Changing() bool { return e.ChangingGET || e.Method != http.MethodGet && !e.Util }

// FieldsParameter is the parameter of every operation that shows records and
// changes nothing. It is none of slurmrestd's. Operations that show a daemon
// lack it, because a generated client's functions for them would change.
var FieldsParameter = schema.Property{
	Name: "fields", Undocumented: true, Shape: &schema.Shape{Kind: "string"},
	Doc: "Fields of the records to show, separated by commas, such as \"name\" or \"time.limit\"; default: all fields. Records then lack the other fields, even those that the schema requires",
}

// MaxPage is the maximum number of entries of a page.
const MaxPage = 1000

// The parameters of a list that has pages. They are none of slurmrestd's.
var (
	LimitParameter = schema.Property{
		Name: "limit", Undocumented: true, Shape: &schema.Shape{Kind: "string"},
		Doc: fmt.Sprintf("Maximum number of entries in the answer, which is then a page of the list, sorted; at most %d. If there are more entries, meta.continue is a token for the next page, and the header Link contains its URL", MaxPage),
	}
	ContinueParameter = schema.Property{
		Name: "continue", Undocumented: true, Shape: &schema.Shape{Kind: "string"},
		Doc: "Token for the next page, from meta.continue of a page. The other parameters, except limit and fields, must be the same",
	}
)

// The parameters with which a client waits for a change. They are none of
// slurmrestd's.
var (
	WaitParameter = schema.Property{
		Name: "wait", Undocumented: true, Shape: &schema.Shape{Kind: "string"},
		Doc: "Time to wait, such as \"30s\", or in seconds; the gateway limits it, by default to a minute. With until, and in a submission, the gateway waits for a state of the job. Otherwise it waits for a change, if the client has the current answer already, according to If-None-Match or update_time: the answer comes as soon as it differs, or is 304 after this time. The header `Prefer: wait=30` has the same meaning",
	}
	UntilParameter = schema.Property{
		Name: "until", Undocumented: true, Shape: &schema.Shape{Kind: "string", Enum: []string{UntilEnded, UntilRunning}},
		Doc: "State of the job to wait for, together with wait: \"running\" if a task or component has started, \"ended\" if all have ended and their nodes are free. If the job has not reached this state after the time, the answer shows its current state. If the controller no longer has the job, the answer is from accounting. A submission with wait waits for \"ended\" by default",
	}
)

// The values of UntilParameter.
const (
	UntilEnded   = "ended"
	UntilRunning = "running"
)

// Waits reports whether the endpoint has the WaitParameter.
func (e *Endpoint) Waits() bool { return e.HasFields() && !e.Accounting && !e.Util || e.Ending }

// HasFields reports whether the endpoint has the FieldsParameter.
func (e *Endpoint) HasFields() bool {
	return e.Method == http.MethodGet && !e.ChangingGET && !e.NoFields
}

// Parameters returns the parameters of the endpoint in v. Those in slurmrestd's
// document come first and in its order, because generated clients may pass them
// by position.
func (e *Endpoint) Parameters(v schema.View) []schema.Property {
	var documented, more []schema.Property
	for _, p := range e.Params.Shape(v).Fields {
		if p.Undocumented {
			more = append(more, p)
		} else {
			documented = append(documented, p)
		}
	}
	if e.HasFields() {
		more = append(more, FieldsParameter)
	}
	if e.Paged {
		more = append(more, LimitParameter, ContinueParameter)
	}
	if e.Waits() {
		more = append(more, WaitParameter)
	}
	if e.Ending {
		more = append(more, UntilParameter)
	}
	return append(documented, more...)
}

// InPath reports whether the parameter with this name is in the path.
func (e *Endpoint) InPath(name string) bool {
	return strings.Contains(e.Path, "{"+name+"}")
}

// In reports whether the API version v has the endpoint.
func (e *Endpoint) In(v schema.Version) bool {
	return v >= e.Since && (e.Until == 0 || v < e.Until)
}

// InView reports whether the API version and spelling in v have the endpoint.
func (e *Endpoint) InView(v schema.View) bool {
	return e.In(v.Version) && !(e.SchedOnly && v.Spelling == schema.Slurm)
}

// Endpoints lists all endpoints, sorted by path. Their paths and IDs are those
// of slurmrestd.
var Endpoints []*Endpoint

func init() {
	slices.SortStableFunc(Endpoints, func(a, b *Endpoint) int {
		return cmp.Or(cmp.Compare(a.Segment(schema.Slurm), b.Segment(schema.Slurm)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Since, b.Since))
	})
}

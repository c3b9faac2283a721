package api

import (
	"net/http"

	"schedrestd/api/schema"
)

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

// The endpoints. Paths and IDs follow what clients of slurmrestd know.
var (
	GetPing = Endpoint{
		Method: http.MethodGet, Path: "ping", ID: "get_ping",
		Doc: "Ask every controller whether it is there", Answer: Pings,
	}
	GetNodes = Endpoint{
		Method: http.MethodGet, Path: "nodes", ID: "get_nodes",
		Doc: "List the nodes", Answer: Nodes,
	}
	GetNode = Endpoint{
		Method: http.MethodGet, Path: "node/{node_name}", ID: "get_node",
		Doc: "Show one node", Answer: Nodes,
		Params: []Param{{"node_name", "Name of the node"}},
	}
	GetJobs = Endpoint{
		Method: http.MethodGet, Path: "jobs", ID: "get_jobs",
		Doc: "List the jobs", Answer: Jobs,
	}
	GetJob = Endpoint{
		Method: http.MethodGet, Path: "job/{job_id}", ID: "get_job",
		Doc: "Show one job", Answer: Jobs,
		Params: []Param{{"job_id", "Number of the job"}},
	}
	DeleteJob = Endpoint{
		Method: http.MethodDelete, Path: "job/{job_id}", ID: "delete_job",
		Doc: "Cancel a job", Answer: Empty,
		Params: []Param{{"job_id", "Number of the job, or of a task as \"12_3\""}},
	}
	PostJobSubmit = Endpoint{
		Method: http.MethodPost, Path: "job/submit", ID: "post_job_submit",
		Doc: "Submit a batch job", Request: SubmissionBody, Answer: Submit,
	}
	GetAccountingPing = Endpoint{
		Method: http.MethodGet, Accounting: true, Path: "ping", ID: "get_ping",
		Doc: "Ask the accounting daemon whether it is there", Answer: AccountingPings,
	}
	GetAccountingDiag = Endpoint{
		Method: http.MethodGet, Accounting: true, Path: "diag", ID: "get_diag",
		Doc: "Show what the accounting daemon counts about itself", Answer: AccountingDiag,
	}
)

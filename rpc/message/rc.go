package message

import "schedrestd/rpc/codec"

// RC is a daemon's short answer (table return_code): 0, or one of Slurm's error
// numbers.
type RC struct{ Code uint32 }

// Walk encodes or decodes the fields in wire order.
func (m *RC) Walk(c *codec.Codec) { c.Uint32("return_code", &m.Code) }

// RCMessage is an RC with a text (table return_code2).
type RCMessage struct {
	Code    uint32
	Message string
}

// Walk encodes or decodes the fields in wire order.
func (m *RCMessage) Walk(c *codec.Codec) {
	c.Uint32("return_code", &m.Code)
	c.String("err_msg", &m.Message)
}

// JobArrayErrors answers a change to a job array if the results for the array's
// tasks differ (table job_array_errors_response).
type JobArrayErrors struct{ Errors []JobArrayError }

// JobArrayError is the result for some of the tasks of an array.
type JobArrayError struct {
	Code    uint32
	JobIDs  string // such as "12_[1-3]"
	Message string
}

// Walk encodes or decodes the fields in wire order.
func (m *JobArrayErrors) Walk(c *codec.Codec) {
	n := c.Count("job_array_count", len(m.Errors))
	loop(c, "job_array_count", n, &m.Errors, jobArrayError)
}

func jobArrayError(c *codec.Codec, e *JobArrayError) {
	c.Uint32("error_code", &e.Code)
	c.String("job_array_id", &e.JobIDs)
	if c.Since(codec.V2302) {
		c.String("err_msg", &e.Message)
	}
}

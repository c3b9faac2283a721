package model

// Estimate is when and where the controller would start a job that is not
// submitted.
type Estimate struct {
	Start       Time
	Nodes       string // host list
	Partition   string
	Processors  uint32
	Preempted   []uint32 // jobs that would have to make room
	UserMessage string   // of the site's submit policy
}

package worker

import "sync/atomic"

// leaving is set when this worker drains or retires: it answers what it has, and load balancers
// are told to send nothing more (/readyz). A process is one worker for all its life.
var leaving atomic.Bool

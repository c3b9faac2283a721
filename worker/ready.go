package worker

import "sync/atomic"

// leaving is set when this worker drains: it answers what it has, and load balancers are told to
// send nothing more (/readyz). One that is retired is not: the gateway serves on, by other workers.
// A process is one worker for all its life.
var leaving atomic.Bool

// Package service starts the unprivileged processes that work for the
// dispatcher and for workers: the keeper, the resolver, the auditor, the
// exporter, and the processes that read output.
//
// The dispatcher treats all services alike. After its start, the process of a
// service sends Ready, or the reason why it failed. The keeper, the resolver
// and the auditor get a channel to each worker. The process serves until its
// channel to the dispatcher is closed. A message that only one service sends is
// handled by the code that starts this service.
package service

import (
	"log/slog"
	"time"

	"schedrestd/gateway/dispatcher/process"
	"schedrestd/gateway/dispatcher/relay"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
)

type Options struct {
	Role        ipc.Role
	Threads     int           // number of threads that run concurrently
	Quota       *relay.Quota  // limits the lines that its processes may log
	StartLimit  time.Duration // a process that has not sent Ready after this time is killed
	PingTimeout time.Duration // a process that does not answer a Ping within this time is killed
	ExitLimit   time.Duration // how long a process may take to exit after its channel was closed; 0: process.ExitGrace
	Log         *slog.Logger
}

// Spec starts the processes of a service, one in each generation.
type Spec struct {
	Options
	reports *rate.Bucket // limits how many workers all processes of the service together may report
}

// New returns the Spec of a service.
func New(o Options) *Spec {
	return &Spec{Options: o, reports: rate.New(limit.ServiceReports, time.Now())}
}

// spawn starts a process of the service for a generation. See Start.
func (s *Spec) spawn(starter *process.Starter, generation uint32, client uint64) (*process.Process, error) {
	return starter.Start(ipc.StartProcess{Role: s.Role, Generation: generation, Client: client, Threads: uint32(s.Threads)}, s.Quota)
}

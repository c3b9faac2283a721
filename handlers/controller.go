package handlers

import (
	"context"

	"schedrestd/model"
)

// Resolver finds the numbers of users and groups, by the databases of the
// gateway's host. Errors are of kind NotFound or Unavailable.
type Resolver interface {
	UserID(ctx context.Context, name string) (uint32, error)
	GroupID(ctx context.Context, name string) (uint32, error)
}

// Controller is the daemon that has the nodes and jobs. Every call is made as the
// credential's user, and it is the controller that decides whether the credential is
// genuine: errs.Unauthenticated when it is not.
//
// Errors are *errs.Error; what else comes is taken for a fault of ours.
type Controller interface {
	// Vouch asks only whether the credential is good.
	Vouch(context.Context, model.Credential) error

	// Ping is how every controller answers, the primary one first.
	Ping(context.Context, model.Credential) ([]model.Ping, error)

	// Release is the controller's release, "24.11.5", as far as it is known; "" when it is not. It costs a
	// request to the controller once in a while, and fails none.
	Release(context.Context, model.Credential) string

	// Nodes gives each node to each, one at a time; a node is valid during the call only. An
	// error of each ends it and is returned. lastUpdate is when anything of it changed;
	// errs.Unchanged: not since q.Since.
	Nodes(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Node) error) (lastUpdate model.Time, err error)

	// Node is the node of that name; errs.NotFound when there is none.
	Node(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Node, model.Time, error)

	// Partitions gives each partition to each, as Nodes does.
	Partitions(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Partition) error) (lastUpdate model.Time, err error)

	// Partition is the partition of that name; errs.NotFound when there is none.
	Partition(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Partition, model.Time, error)

	// Jobs gives each job to each, as Nodes does.
	Jobs(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Job) error) (model.JobTimes, error)

	// Job gives the job of that number to each, as Nodes does: several when it is an array or heterogeneous;
	// errs.NotFound when there is none.
	Job(ctx context.Context, cred model.Credential, id uint32, q model.Query, each func(*model.Job) error) (model.JobTimes, error)

	// JobStates gives the state of each of jobs to each, as Nodes does; no jobs: of all. errs.Unsupported
	// from a controller that has no such question, with nothing given.
	JobStates(ctx context.Context, cred model.Credential, jobs []model.JobSelection, each func(*model.JobStateEntry) error) error

	// Reservations gives each reservation to each, as Nodes does.
	Reservations(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Reservation) error) (lastUpdate model.Time, err error)

	// Reservation is the reservation of that name; errs.NotFound when there is none.
	Reservation(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Reservation, model.Time, error)

	// Licenses gives each license to each, as Nodes does.
	Licenses(ctx context.Context, cred model.Credential, q model.Query, each func(*model.License) error) (lastUpdate model.Time, err error)

	// Shares gives the fair share of each association to each, as Nodes does, with the names of the
	// trackable resources that its lists are of. No accounts, no users: all.
	Shares(ctx context.Context, cred model.Credential, accounts, users []string, each func(tres []string, s *model.Share) error) (model.SharesTotals, error)

	// Stats is what the controller counts about itself.
	Stats(context.Context, model.Credential) (*model.ControllerStats, error)

	// Submit queues a job. An error with Code errs.OutcomeUnknown says that it may have been queued.
	Submit(context.Context, model.Credential, *model.JobDesc) (*model.Submitted, error)

	// SubmitSeveral is Submit for the components of a heterogeneous job.
	SubmitSeveral(context.Context, model.Credential, []model.JobDesc) (*model.Submitted, error)

	// Allocate asks for resources without a batch script, for a job or the components of a heterogeneous
	// one, and returns when it has them. When ctx ends before that it ends the job; errs.Unavailable.
	Allocate(context.Context, model.Credential, []model.JobDesc) (*model.Submitted, error)

	// UpdateJob changes what desc has set of the job that id names, as in Kill. Tasks of an array that
	// fared differently are in the result; when none was changed, it is the error.
	UpdateJob(ctx context.Context, cred model.Credential, id string, desc *model.JobDesc) ([]model.TaskResult, error)

	// Requeue queues the job that id names again; its result is as UpdateJob's.
	Requeue(ctx context.Context, cred model.Credential, id string, flags model.Requeue) ([]model.TaskResult, error)

	// KillJobs is KillEach for all jobs that k selects. A failed job is in the result, never the error.
	KillJobs(context.Context, model.Credential, *model.KillJobs) ([]model.KillResult, error)

	// UpdateNodes changes what u has set of the nodes that it names.
	UpdateNodes(context.Context, model.Credential, *model.NodeUpdate) error

	// CreateNode makes a node from its line of the configuration.
	CreateNode(ctx context.Context, cred model.Credential, line string) error

	// DeleteNodes deletes the nodes of a host list.
	DeleteNodes(ctx context.Context, cred model.Credential, names string) error

	// Reconfigure has the controllers read their configuration again.
	Reconfigure(context.Context, model.Credential) error

	// ResourceLayout returns what a job has of each of its nodes; errs.Unsupported from a controller before 25.11.
	ResourceLayout(ctx context.Context, cred model.Credential, id uint32) ([]model.ResourceLayout, error)

	// CreateReservation makes a reservation.
	CreateReservation(context.Context, model.Credential, *model.ReservationUpdate) error

	// UpdateReservation changes what is set of the reservation that the update names.
	UpdateReservation(context.Context, model.Credential, *model.ReservationUpdate) error

	// CreatePartition makes a partition.
	CreatePartition(context.Context, model.Credential, *model.PartitionUpdate) error

	// UpdatePartition changes what is set of the partition that the update names.
	UpdatePartition(context.Context, model.Credential, *model.PartitionUpdate) error

	// DeletePartition deletes the partition of that name.
	DeletePartition(ctx context.Context, cred model.Credential, name string) error

	// DeleteReservation deletes the reservation of that name.
	DeleteReservation(ctx context.Context, cred model.Credential, name string) error

	// Kill sends a signal to the job that id names, "12", a task "12_3", a part "12+1"; 9 ends it.
	Kill(ctx context.Context, cred model.Credential, id string, signal uint16, flags model.Kill) error

	// KillEach is Kill, with what became of each job that id names, as far as the controller says so; one job
	// by itself that failed is the error.
	KillEach(ctx context.Context, cred model.Credential, id string, signal uint16, flags model.Kill) ([]model.KillResult, error)
}

// Accounting is the daemon that keeps the records. As Controller in all else.
type Accounting interface {
	Vouch(context.Context, model.Credential) error
	Ping(context.Context, model.Credential) ([]model.Ping, error)

	// Stats is what the daemon counts, and what Ping says of it at the same time.
	Stats(context.Context, model.Credential) (*model.AccountingStats, []model.Ping, error)

	// List passes on the records that a filter selects. A record may be changed after
	// the call that it was passed to, but not what it points to.
	List(context.Context, model.Credential, model.Listing) error
}

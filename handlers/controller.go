package handlers

import (
	"context"

	"schedrestd/model"
)

// Resolver looks up users and groups in the databases of the gateway's host.
// Errors are of kind NotFound or Unavailable.
type Resolver interface {
	UserID(ctx context.Context, name string) (uint32, error)
	GroupID(ctx context.Context, name string) (uint32, error)
}

// Controller is the daemon that manages nodes and jobs. Every call is made as
// the credential's user. The controller decides whether the credential is
// valid, and otherwise returns errs.Unauthenticated.
//
// Errors are *errs.Error. Other errors count as internal errors of the gateway.
type Controller interface {
	// Verify only verifies the credential.
	Verify(context.Context, model.Credential) error

	// Ping returns the result of pinging every controller, the primary one
	// first.
	Ping(context.Context, model.Credential) ([]model.Ping, error)

	// Release returns the controller's release, such as "24.11.5", or "" if it
	// is unknown. It occasionally sends a request to the controller, and never
	// fails.
	Release(context.Context, model.Credential) string

	// Nodes calls each with one node at a time, which is valid only during the
	// call. If each returns an error, Nodes ends and returns it. lastUpdate is
	// the time of the last change. It returns errs.Unchanged if nothing has
	// changed since q.Since.
	Nodes(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Node) error) (lastUpdate model.Time, err error)

	// Node returns the node with that name, or errs.NotFound.
	Node(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Node, model.Time, error)

	// Partitions calls each with one partition at a time, like Nodes.
	Partitions(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Partition) error) (lastUpdate model.Time, err error)

	// Partition returns the partition with that name, or errs.NotFound.
	Partition(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Partition, model.Time, error)

	// Jobs calls each with one job at a time, like Nodes.
	Jobs(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Job) error) (model.JobTimes, error)

	// Job calls each with the records of that job, like Nodes: several for an
	// array or a heterogeneous job. It returns errs.NotFound if there is no
	// such job.
	Job(ctx context.Context, cred model.Credential, id uint32, q model.Query, each func(*model.Job) error) (model.JobTimes, error)

	// JobStates calls each with the states of jobs, like Nodes; without jobs,
	// with those of all jobs. It returns errs.Unsupported, without calling
	// each, if the controller does not support the request.
	JobStates(ctx context.Context, cred model.Credential, jobs []model.JobSelection, each func(*model.JobStateEntry) error) error

	// Reservations calls each with one reservation at a time, like Nodes.
	Reservations(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Reservation) error) (lastUpdate model.Time, err error)

	// Reservation returns the reservation with that name, or errs.NotFound.
	Reservation(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Reservation, model.Time, error)

	// Licenses calls each with one license at a time, like Nodes.
	Licenses(ctx context.Context, cred model.Credential, q model.Query, each func(*model.License) error) (lastUpdate model.Time, err error)

	// Shares calls each with the fair share of one association at a time, like
	// Nodes, and with the names of the trackable resources in its lists.
	// Without accounts and users it returns all.
	Shares(ctx context.Context, cred model.Credential, accounts, users []string, each func(tres []string, s *model.Share) error) (model.SharesTotals, error)

	// Stats is what the controller counts about itself.
	Stats(context.Context, model.Credential) (*model.ControllerStats, error)

	// Submit queues a job. An error with Code errs.OutcomeUnknown means that
	// the job may have been queued.
	Submit(context.Context, model.Credential, *model.JobDesc) (*model.Submitted, error)

	// SubmitSeveral submits the components of a heterogeneous job, like Submit.
	SubmitSeveral(context.Context, model.Credential, []model.JobDesc) (*model.Submitted, error)

	// Allocate requests resources without a batch script, for a job or the
	// components of a heterogeneous one, and returns when they are granted. When
	// ctx ends first, it cancels the job and returns errs.Unavailable.
	Allocate(context.Context, model.Credential, []model.JobDesc) (*model.Submitted, error)

	// UpdateJob changes the fields set in desc for the job that id names, as in
	// Kill. The result lists tasks of an array for which that failed. If no
	// task was changed, it returns an error.
	UpdateJob(ctx context.Context, cred model.Credential, id string, desc *model.JobDesc) ([]model.TaskResult, error)

	// Requeue requeues the job that id names. Its result is like that of
	// UpdateJob.
	Requeue(ctx context.Context, cred model.Credential, id string, flags model.Requeue) ([]model.TaskResult, error)

	// KillJobs signals all jobs that k selects. Failures of single jobs are in
	// the result, not in the error.
	KillJobs(context.Context, model.Credential, *model.KillJobs) ([]model.KillResult, error)

	// UpdateNodes changes the fields set in u for the nodes that u names.
	UpdateNodes(context.Context, model.Credential, *model.NodeUpdate) error

	// CreateNode creates a node from its configuration line.
	CreateNode(ctx context.Context, cred model.Credential, line string) error

	// DeleteNodes deletes the nodes of a host list.
	DeleteNodes(ctx context.Context, cred model.Credential, names string) error

	// Reconfigure makes the controllers reload their configuration.
	Reconfigure(context.Context, model.Credential) error

	// Configuration returns the controller's configuration, or errs.Unchanged if
	// it has not changed since.
	Configuration(ctx context.Context, cred model.Credential, since model.Time) (*model.Configuration, error)

	// ResourceLayout returns the resources of a job on each of its nodes, or
	// errs.Unsupported if the controller is older than 25.11.
	ResourceLayout(ctx context.Context, cred model.Credential, id uint32) ([]model.ResourceLayout, error)

	// CreateReservation creates a reservation.
	CreateReservation(context.Context, model.Credential, *model.ReservationUpdate) error

	// UpdateReservation changes the fields set in the update.
	UpdateReservation(context.Context, model.Credential, *model.ReservationUpdate) error

	// CreatePartition creates a partition.
	CreatePartition(context.Context, model.Credential, *model.PartitionUpdate) error

	// UpdatePartition changes the fields set in the update.
	UpdatePartition(context.Context, model.Credential, *model.PartitionUpdate) error

	// DeletePartition deletes the partition with that name.
	DeletePartition(ctx context.Context, cred model.Credential, name string) error

	// DeleteReservation deletes the reservation with that name.
	DeleteReservation(ctx context.Context, cred model.Credential, name string) error

	// Kill sends a signal to the job that id names: "12", a task "12_3", or a
	// component "12+1". Signal 9 cancels it.
	Kill(ctx context.Context, cred model.Credential, id string, signal uint16, flags model.Kill) error

	// KillEach is like Kill and returns the result for each job that id names,
	// as far as the controller reports it. If id names a single job, its
	// failure is the error.
	KillEach(ctx context.Context, cred model.Credential, id string, signal uint16, flags model.Kill) ([]model.KillResult, error)
}

// Accounting is the accounting daemon. It behaves like Controller.
type Accounting interface {
	Verify(context.Context, model.Credential) error
	Ping(context.Context, model.Credential) ([]model.Ping, error)

	// Stats is what the daemon counts, and what Ping says of it at the same time.
	Stats(context.Context, model.Credential) (*model.AccountingStats, []model.Ping, error)

	// List calls the listing's function with the records that its filter
	// selects. A record may be overwritten after the call, but the data that it
	// points to is not.
	List(context.Context, model.Credential, model.Listing) error

	// Conf is the daemon's configuration; errs.Unsupported before Slurm 26.05.
	Conf(context.Context, model.Credential) (*model.AccountingConf, error)

	// Edit has f change records in one transaction: all that f changed is kept when
	// it returns nil, otherwise nothing. f may run more than once; what it changed
	// before is then not kept. An error with Code errs.OutcomeUnknown says that the
	// changes may have been kept.
	Edit(ctx context.Context, cred model.Credential, f func(model.Editor) error) error
}

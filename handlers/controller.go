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

// Controller is the daemon that manages nodes and jobs. Every call acts as the
// user of the credential. The controller verifies the credential, and returns
// errs.Unauthenticated if it is invalid.
//
// Errors are *errs.Error. Other errors count as internal errors of the gateway.
type Controller interface {
	// Verify verifies the credential and does nothing else.
	Verify(context.Context, model.Credential) error

	// Ping returns the result of pinging every controller, the primary one
	// first.
	Ping(context.Context, model.Credential) ([]model.Ping, error)

	// Release returns the controller's release, such as "24.11.5", or "" if it
	// is unknown. It may send a request to the controller, and never fails.
	Release(context.Context, model.Credential) string

	// Nodes calls each(node) for every node. The node is valid only during the
	// call. If that call returns an error, Nodes stops and returns the error.
	// lastUpdate is the time of the last change. If nothing has changed since
	// q.Since, Nodes returns errs.Unchanged.
	Nodes(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Node) error) (lastUpdate model.Time, err error)

	// Node returns the node with that name, or errs.NotFound.
	Node(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Node, model.Time, error)

	// Partitions calls each(partition) for every partition, like Nodes.
	Partitions(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Partition) error) (lastUpdate model.Time, err error)

	// Partition returns the partition with that name, or errs.NotFound.
	Partition(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Partition, model.Time, error)

	// Jobs calls each(job) for every job, like Nodes.
	Jobs(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Job) error) (model.JobTimes, error)

	// Job calls each(record) for every record of the job, like Nodes. An array
	// or a heterogeneous job has several records. Job returns errs.NotFound if
	// there is no such job.
	Job(ctx context.Context, cred model.Credential, id uint32, q model.Query, each func(*model.Job) error) (model.JobTimes, error)

	// JobStates calls each(state) for every state of the given jobs, like
	// Nodes. If no jobs are given, it returns the states of all jobs. If the
	// controller does not support the request, JobStates returns
	// errs.Unsupported without calling each.
	JobStates(ctx context.Context, cred model.Credential, jobs []model.JobSelection, each func(*model.JobStateEntry) error) error

	// Reservations calls each(reservation) for every reservation, like Nodes.
	Reservations(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Reservation) error) (lastUpdate model.Time, err error)

	// Reservation returns the reservation with that name, or errs.NotFound.
	Reservation(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Reservation, model.Time, error)

	// Licenses calls each(license) for every license, like Nodes.
	Licenses(ctx context.Context, cred model.Credential, q model.Query, each func(*model.License) error) (lastUpdate model.Time, err error)

	// Shares calls each(tres, share), like Nodes, for the fair share of each
	// association that the given accounts and users select. If neither accounts
	// nor users are given, it does so for all associations. tres has the names
	// of the trackable resources in the share's lists.
	Shares(ctx context.Context, cred model.Credential, accounts, users []string, each func(tres []string, s *model.Share) error) (model.SharesTotals, error)

	// Stats returns the controller's statistics about itself.
	Stats(context.Context, model.Credential) (*model.ControllerStats, error)

	// Submit submits a job. An error with Code errs.OutcomeUnknown means that
	// the job may have been queued.
	Submit(context.Context, model.Credential, *model.JobDesc) (*model.Submitted, error)

	// SubmitSeveral submits the components of a heterogeneous job, like Submit.
	SubmitSeveral(context.Context, model.Credential, []model.JobDesc) (*model.Submitted, error)

	// Allocate requests resources without a batch script, for a job or the
	// components of a heterogeneous job. It returns when the job has the
	// resources. If ctx ends first, it cancels the job and returns
	// errs.Unavailable.
	Allocate(context.Context, model.Credential, []model.JobDesc) (*model.Submitted, error)

	// UpdateJob changes the fields that are set in desc. id names the job as in
	// Kill. The result lists the tasks of an array that could not be changed.
	// If no task was changed, UpdateJob returns an error.
	UpdateJob(ctx context.Context, cred model.Credential, id string, desc *model.JobDesc) ([]model.TaskResult, error)

	// Requeue requeues the job that id names. Its result is like that of
	// UpdateJob.
	Requeue(ctx context.Context, cred model.Credential, id string, flags model.Requeue) ([]model.TaskResult, error)

	// KillJobs signals all jobs that k selects. Failures of single jobs are in
	// the result, not in the error.
	KillJobs(context.Context, model.Credential, *model.KillJobs) ([]model.KillResult, error)

	// UpdateNodes changes the fields that are set in u, for the nodes that u
	// names.
	UpdateNodes(context.Context, model.Credential, *model.NodeUpdate) error

	// CreateNode creates a node from its configuration line.
	CreateNode(ctx context.Context, cred model.Credential, line string) error

	// DeleteNodes deletes the nodes of a host list.
	DeleteNodes(ctx context.Context, cred model.Credential, names string) error

	// Reconfigure makes the controllers reload their configuration.
	Reconfigure(context.Context, model.Credential) error

	// Configuration returns the controller's configuration, or errs.Unchanged
	// if it has not changed since the given time.
	Configuration(ctx context.Context, cred model.Credential, since model.Time) (*model.Configuration, error)

	// ResourceLayout returns the resources of a job on each of its nodes, or
	// errs.Unsupported if the controller is older than 25.11.
	ResourceLayout(ctx context.Context, cred model.Credential, id uint32) ([]model.ResourceLayout, error)

	// CreateReservation creates a reservation.
	CreateReservation(context.Context, model.Credential, *model.ReservationUpdate) error

	// UpdateReservation changes the fields that are set in the update.
	UpdateReservation(context.Context, model.Credential, *model.ReservationUpdate) error

	// CreatePartition creates a partition.
	CreatePartition(context.Context, model.Credential, *model.PartitionUpdate) error

	// UpdatePartition changes the fields that are set in the update.
	UpdatePartition(context.Context, model.Credential, *model.PartitionUpdate) error

	// DeletePartition deletes the partition with that name.
	DeletePartition(ctx context.Context, cred model.Credential, name string) error

	// DeleteReservation deletes the reservation with that name.
	DeleteReservation(ctx context.Context, cred model.Credential, name string) error

	// Kill sends a signal to the job that id names: "12", a task "12_3", or a
	// component "12+1". Signal 9 cancels it.
	Kill(ctx context.Context, cred model.Credential, id string, signal uint16, flags model.Kill) error

	// KillEach is like Kill, and returns a result for each job that could not
	// be signalled, for example for the tasks of an array that have ended. With
	// model.KillVerbose, it returns a result for every job. Controllers before
	// 24.05 report no results. If no job could be signalled, KillEach returns
	// an error.
	KillEach(ctx context.Context, cred model.Credential, id string, signal uint16, flags model.Kill) ([]model.KillResult, error)
}

// Accounting is the accounting daemon. Its methods behave like those of
// Controller.
type Accounting interface {
	Verify(context.Context, model.Credential) error
	Ping(context.Context, model.Credential) ([]model.Ping, error)

	// Stats returns the daemon's statistics, and the result of pinging it at
	// the same time.
	Stats(context.Context, model.Credential) (*model.AccountingStats, []model.Ping, error)

	// List calls the listing's function with each record that its filter
	// selects. After the function has returned, List may overwrite the record,
	// but not the data to which the record points.
	List(context.Context, model.Credential, model.Listing) error

	// Conf returns the daemon's configuration, or errs.Unsupported before Slurm
	// 26.05.
	Conf(context.Context, model.Credential) (*model.AccountingConf, error)

	// Edit calls f to change records in one transaction. If f returns nil, Edit
	// commits the changes. Otherwise it rolls them back and returns f's error.
	// If the session fails before the commit, nothing has changed, and Edit may
	// call f again in another session. An error with Code errs.OutcomeUnknown
	// means that the changes may have been committed.
	Edit(ctx context.Context, cred model.Credential, f func(model.Editor) error) error
}

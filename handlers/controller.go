package handlers

import (
	"context"

	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// Resolver looks up users and groups on the gateway's host. Its errors are of
// kind NotFound or Unavailable.
type Resolver interface {
	UserID(ctx context.Context, name string) (uint32, error)
	GroupID(ctx context.Context, name string) (uint32, error)
}

// Controller is the daemon that manages nodes and jobs. Each call is made as
// the credential's user. The controller verifies the credential. If the
// credential is invalid, the method returns errs.Unauthenticated.
//
// The methods return errors of type *errs.Error. The gateway treats an error of
// any other type as an internal error of its own.
type Controller interface {
	rest.Controller

	// Ping pings all controllers and returns the results. The primary
	// controller's result is first.
	Ping(context.Context, model.Credential) ([]model.Ping, error)

	// Nodes calls the function each for every node. The node is valid only
	// during the call. If a call returns an error, Nodes stops and returns the
	// error. The lastUpdate result is the time of the last change. If nothing
	// has changed since q.Since, Nodes returns errs.Unchanged.
	Nodes(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Node) error) (lastUpdate model.Time, err error)

	// Node returns the node with that name, or errs.NotFound.
	Node(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Node, model.Time, error)

	// Partitions calls the function each for every partition, like Nodes.
	Partitions(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Partition) error) (lastUpdate model.Time, err error)

	// Partition returns the partition with that name, or errs.NotFound.
	Partition(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Partition, model.Time, error)

	// Jobs calls the function each for every job, like Nodes.
	Jobs(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Job) error) (model.ListTimes, error)

	// Job calls the function each for every record of a job, like Nodes. An
	// array or a heterogeneous job has several records. If there is no such
	// job, Job returns errs.NotFound.
	Job(ctx context.Context, cred model.Credential, id uint32, q model.Query, each func(*model.Job) error) (model.ListTimes, error)

	// JobStates calls the function each for the states of the given jobs, like
	// Nodes. If jobs is empty, it does so for all jobs. If the controller does
	// not support the request, JobStates returns errs.Unsupported without
	// calling the function.
	JobStates(ctx context.Context, cred model.Credential, jobs []model.JobSelection, each func(*model.JobStateEntry) error) error

	// Priorities calls the function each for the priority of every waiting job,
	// like Nodes. If the controller is older than 23.02, Priorities returns
	// errs.Unsupported without calling the function.
	Priorities(ctx context.Context, cred model.Credential, each func(*model.JobPriority) error) error

	// Reservations calls the function each for every reservation, like Nodes.
	Reservations(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Reservation) error) (lastUpdate model.Time, err error)

	// Reservation returns the reservation with that name, or errs.NotFound.
	Reservation(ctx context.Context, cred model.Credential, name string, q model.Query) (*model.Reservation, model.Time, error)

	// Licenses calls the function each for every license, like Nodes.
	Licenses(ctx context.Context, cred model.Credential, q model.Query, each func(*model.License) error) (lastUpdate model.Time, err error)

	// Shares calls the function each for the fair share of every association,
	// as Nodes does for every node. If accounts or users are given, Shares
	// includes only the associations of these accounts and users. The
	// function's argument tres contains the names of the trackable resources in
	// s.
	Shares(ctx context.Context, cred model.Credential, accounts, users []string, each func(tres []string, s *model.Share) error) (model.SharesTotals, error)

	// Limits calls the function assoc for every association that q selects, with
	// its limits and their use, and the function qos for the QOS, as Nodes does for
	// every node. The argument tres contains the names of the trackable resources.
	Limits(ctx context.Context, cred model.Credential, q model.LimitsQuery,
		assoc func(tres []string, a *model.AssocLimits) error, qos func(tres []string, l *model.QOSLimits) error) error

	// Stats returns the controller's statistics about itself.
	Stats(context.Context, model.Credential) (*model.ControllerStats, error)

	// Submit submits a job. If it returns an error with Code
	// errs.OutcomeUnknown, the job may have been queued.
	Submit(context.Context, model.Credential, *model.JobDesc) (*model.Submitted, error)

	// Estimate returns when and where the components of a job would start. It
	// submits nothing. If the controller would refuse the job, the error says why.
	Estimate(context.Context, model.Credential, []model.JobDesc) (*model.Estimate, error)

	// SubmitSeveral submits the components of a heterogeneous job, like Submit.
	SubmitSeveral(context.Context, model.Credential, []model.JobDesc) (*model.Submitted, error)

	// Allocate requests resources without a batch script, for a job or for the
	// components of a heterogeneous job. It returns when the resources are
	// allocated. If ctx ends first, it cancels the job and returns
	// errs.Unavailable.
	Allocate(context.Context, model.Credential, []model.JobDesc) (*model.Submitted, error)

	// UpdateJob changes the fields of a job that are set in desc. The argument
	// id has the same syntax as in Kill. The result lists the tasks of an array
	// that could not be changed. If no task was changed, UpdateJob returns an
	// error.
	UpdateJob(ctx context.Context, cred model.Credential, id string, desc *model.JobDesc) ([]model.TaskResult, error)

	// Requeue requeues a job. Its argument id and its result are like those of
	// UpdateJob.
	Requeue(ctx context.Context, cred model.Credential, id string, flags model.Requeue) ([]model.TaskResult, error)

	// KillJobs signals all jobs that k selects. Jobs that can't be signalled
	// are reported in the result, not in the error.
	KillJobs(context.Context, model.Credential, *model.KillJobs) ([]model.KillResult, error)

	// UpdateNodes changes the nodes that u names. Fields that are not set in u
	// stay unchanged.
	UpdateNodes(context.Context, model.Credential, *model.NodeUpdate) error

	// CreateNode creates a node. The line argument is the node's line in the
	// configuration.
	CreateNode(ctx context.Context, cred model.Credential, line string) error

	// DeleteNodes deletes the nodes of a host list.
	DeleteNodes(ctx context.Context, cred model.Credential, names string) error

	// Reconfigure makes the controllers reload their configuration.
	Reconfigure(context.Context, model.Credential) error

	// Configuration returns the controller's configuration, or errs.Unchanged
	// if the configuration has not changed since the given time.
	Configuration(ctx context.Context, cred model.Credential, since model.Time) (*model.Configuration, error)

	// BatchScript returns the script of a job, as it was submitted. It returns
	// errs.NotFound if there is no such job, and an error with the number
	// slurmerror.NoScript if the job has none.
	BatchScript(ctx context.Context, cred model.Credential, id uint32) (string, error)

	// ResourceLayout returns a job's resources on each of its nodes. It returns
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

	// Kill sends a signal to a job. The id argument names a job, such as "12",
	// a task, such as "12_3", or a component, such as "12+1". Signal 9 cancels
	// the job, task or component.
	Kill(ctx context.Context, cred model.Credential, id string, signal uint16, flags model.Kill) error

	// KillEach sends a signal to a job, like Kill. It returns a result for each
	// job that could not be signalled, such as an array task that has ended.
	// With model.KillVerbose, it returns a result for every job. Controllers
	// before Slurm 24.05 report no results. If no job could be signalled,
	// KillEach returns an error.
	KillEach(ctx context.Context, cred model.Credential, id string, signal uint16, flags model.Kill) ([]model.KillResult, error)
}

// Accounting is the accounting daemon. Its methods behave like those of
// Controller.
type Accounting interface {
	rest.Verifier
	Ping(context.Context, model.Credential) ([]model.Ping, error)

	// Stats returns the statistics of the accounting daemon. It also pings all
	// accounting daemons and returns the results, as Ping does.
	Stats(context.Context, model.Credential) (*model.AccountingStats, []model.Ping, error)

	// List calls the listing's function for each record that the listing's
	// filter selects. When the function has returned, List may overwrite the
	// record, but not the data that the record points to.
	List(context.Context, model.Credential, model.Listing) error

	// Conf returns the daemon's configuration. It returns errs.Unsupported if
	// the daemon is older than 26.05.
	Conf(context.Context, model.Credential) (*model.AccountingConf, error)

	// Edit calls the function f to change records in one transaction. If f
	// returns nil, Edit commits the changes. Otherwise it rolls them back and
	// returns f's error.
	//
	// If the session fails before the commit, nothing has changed, and Edit may
	// call f again in another session. If Edit returns an error with Code
	// errs.OutcomeUnknown, the changes may have been committed.
	Edit(ctx context.Context, cred model.Credential, f func(model.Editor) error) error
}

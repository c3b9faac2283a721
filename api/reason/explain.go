package reason

import (
	"cmp"
	"fmt"
	"strings"

	"schedrestd/model"
)

// An Explanation is for people who do not know Slurm.
type Explanation struct {
	Why    string // one sentence
	Change string // what would change it, in one or two sentences; "" if nobody can do anything

	// Only ExplainJob sets these, as far as they are known.
	About       string // what the reason is about, such as "QOS normal"; "" if it is about the job alone
	Limit       *Limit
	Licenses    []License
	Nodes       []Node // that start no jobs
	Reservation *model.Reservation
	Place       *Place
	Start       model.Time // when the controller expects the job to start
}

// text is an explanation in a table.
type text struct{ why, change string }

// Explain explains the reason with this name. It returns false for a reason that it
// does not know.
func Explain(name string) (Explanation, bool) {
	t, ok := explanations[name]
	if !ok {
		t, ok = failures[name]
	}
	if !ok {
		t, ok = explainLimit(name)
	}
	return Explanation{Why: t.why, Change: t.change}, ok
}

// ExplainJob explains why j waits or has failed, with the facts that are known. It
// shows an unknown reason as it is, with what the controller adds to it.
func (f *Facts) ExplainJob(j *model.Job) *Explanation {
	name := Name(j.StateReason)
	e, known := Explain(name)
	if !known {
		e.Why = cmp.Or(j.StateDescription, name)
	}
	e.About = about(name, j)
	if j.State.Base() == model.JobPending {
		e.Start, e.Limit = j.StartTime, f.limit(name, j)
	}
	if e.Limit != nil {
		e.Why, e.Change, e.About = e.Limit.sentence(), cmp.Or(e.Limit.remedy(), e.Change), e.Limit.Of
		return &e
	}
	if name == "Resources" && strings.HasPrefix(j.StateDescription, "Nodes required for job are DOWN") {
		e.Why = "The nodes that the job could use are down, drained or reserved."
		e.Change = fmt.Sprintf("It can start when they are back. schedctl nodes -p %s shows their states.", j.Partition)
		return &e
	}
	if _, table := explanations[name]; table {
		e.Why = withNames(e.Why, j)
	}
	if detail := details[name].text; detail != nil {
		if text := detail(f, j, &e); text != "" {
			general, _, _ := strings.Cut(strings.TrimSuffix(e.Why, "."), ":")
			e.Why = general + ": " + text + "."
		}
	}
	return &e
}

// IsFailure reports whether a job can have failed for the reason with this name.
// Others are reasons for which jobs wait.
func IsFailure(name string) bool {
	_, ok := failures[name]
	return ok || name == "DeadLine"
}

const (
	waitOrLess   = "It can start when running jobs have ended. If it asks for less, it may start sooner."
	askAdmin     = "Ask an administrator."
	askLess      = "Ask for less, or for another partition or QOS."
	otherAccount = "Change the account of the job, or ask an administrator."
	seeOutput    = "Look at the output of the job."
)

// explanations are those of the reasons that are no limits of accounting.
var explanations = map[string]text{
	"None":                     {"The scheduler has not looked at the job yet.", "Wait for its next pass."},
	"Priority":                 {"Jobs with a higher priority come first.", "It can start after these. With a shorter time limit it may start sooner, in a gap between other jobs."},
	"Dependency":               {"The job waits for other jobs.", "It can start when this has happened."},
	"Resources":                {"The job waits until enough resources are free.", waitOrLess},
	"PartitionNodeLimit":       {"The job asks for more or fewer nodes than the partition permits.", askLess},
	"PartitionTimeLimit":       {"The job asks for more time than the partition permits.", "Lower the time limit of the job, or choose another partition."},
	"PartitionDown":            {"The partition is not starting jobs now.", "Choose another partition, or wait until an administrator opens this one."},
	"PartitionInactive":        {"The partition does not accept jobs.", "Move the job to another partition."},
	"PartitionConfig":          {"The partition does not permit what the job asks for.", askLess},
	"JobHeldAdmin":             {"An administrator has put the job on hold, or has set its priority to 0.", "Ask an administrator to release it."},
	"JobHeldUser":              {"The job was put on hold by its owner.", "It waits until it is released, for example with \"scontrol release\" or \"schedctl release\"."},
	"JobHoldMaxRequeue":        {"The job was held because it was queued again too often.", "Find out why it does not run, then release it."},
	"BeginTime":                {"The job was submitted to start later.", "It can start at this time, which its owner can change."},
	"Licenses":                 {"The job waits for licenses.", "It can start when other jobs return them."},
	"Reservation":              {"The job waits for its reservation.", "It can start when the reservation begins."},
	"ReservationDeleted":       {"The reservation of the job was deleted.", "Remove the reservation from the job, or choose another one."},
	"ReservationInvalid":       {"The job can't use its reservation.", "Remove the reservation from the job, or choose another one."},
	"ReqNodeNotAvail":          {"A node that the job needs is not available: it is down, drained or reserved.", "Ask for other nodes, or wait until an administrator returns it to service."},
	"NodeDown":                 {"A node that the job needs is down.", "Ask for other nodes, or wait until an administrator returns it to service."},
	"BadConstraints":           {"No nodes here have all that the job asks for, so it can never start.", "Ask for less, or for other nodes or features (labels) of nodes."},
	"Constraints":              {"The nodes that are free do not fit what the job asks for.", waitOrLess},
	"MaxPoweredUpNodes":        {"As many nodes are switched on as the site permits.", waitOrLess},
	"MpiPortsBusy":             {"The ports that the job needs for MPI are in use.", waitOrLess},
	"NvidiaImexChannels":       {"The channels between GPUs that the job needs are in use.", waitOrLess},
	"SchedDefer":               {"The scheduler looks at the job at its next pass.", ""},
	"JobArrayTaskLimit":        {"As many tasks of this job array run as it permits.", "It can start when one of them ends. The owner can raise the limit (the number after % in the array)."},
	"DependencyNeverSatisfied": {"The job waits for a job that can no longer end as required, so it will never start.", "Cancel it, or change its dependency."},
	"BurstBufferResources":     {"The job waits for space in the burst buffer.", waitOrLess},
	"BurstBufferStageIn":       {"Files are being copied to the burst buffer.", ""},
	"BurstBufferOperation":     {"An operation of the burst buffer has failed.", askAdmin},
	"Cleaning":                 {"The job was queued again, and its previous run is still being cleaned up.", ""},
	"Prolog":                   {"The nodes are being prepared.", ""},
	"FedJobLock":               {"Another cluster of the federation decides whether to start the job.", ""},
	"DeadLine":                 {"The job can't end before its deadline.", "Change the deadline, or lower the time limit."},

	"InvalidAccount":           {"The account that the job is charged to no longer exists, or its owner may no longer use it.", otherAccount},
	"InvalidQOS":               {"The QOS of the job (its set of limits) no longer exists, or its owner may no longer use it.", "Choose another QOS."},
	"AccountNotAllowed":        {"The partition does not permit this account.", "Choose another account or partition."},
	"QOSNotAllowed":            {"The partition does not permit this QOS.", "Choose another QOS or partition."},
	"AccountingPolicy":         {"The job exceeds a limit of its account or its QOS.", askLess},
	"QOSUsageThreshold":        {"The account has used too much of its share to start jobs with this QOS.", "Past use counts less as time passes: wait, or choose another QOS."},
	"AssociationJobLimit":      {"As many jobs of the account run as it permits.", waitOrLess},
	"AssociationResourceLimit": {"The jobs of the account use as much as they may.", waitOrLess},
	"AssociationTimeLimit":     {"The account has used up its time.", askAdmin},
	"QOSJobLimit":              {"As many jobs of this QOS run as it permits.", waitOrLess},
	"QOSResourceLimit":         {"The jobs of this QOS use as much as they may.", waitOrLess},
	"QOSTimeLimit":             {"The time of this QOS is used up.", askAdmin},
	"MaxMemPerLimit":           {"The job asks for more memory for each processor or node than is permitted.", "Ask for less memory, or for more processors."},
}

// failures are the reasons for which jobs have failed.
var failures = map[string]text{
	"SystemFailure":    {"Slurm or a node has failed.", askAdmin},
	"JobLaunchFailure": {"The job could not be started.", "Look whether its directory and the paths of its output exist on the nodes."},
	"NonZeroExitCode":  {"The script ended with an exit code other than 0.", seeOutput},
	"RaisedSignal":     {"A signal ended the script.", seeOutput},
	"TimeLimit":        {"The job ran for as long as its time limit.", "Submit it with a longer time limit."},
	"OutOfMemory":      {"The job used more memory than it asked for.", "Submit it with more memory."},
	"InactiveLimit":    {"The job had no step for too long.", "Start the programs of the job with srun."},
}

package reason

import (
	"fmt"
	"regexp"
	"strings"
)

// An Explanation is for people who do not know Slurm.
type Explanation struct {
	Why    string // one sentence
	Change string // what would change it, in one or two sentences; "" if nobody can do anything
}

// Explain explains the reason with this name. It returns false for a reason that it
// does not know.
func Explain(name string) (Explanation, bool) {
	if e, ok := explanations[name]; ok {
		return e, true
	}
	if e, ok := failures[name]; ok {
		return e, true
	}
	return explainLimit(name)
}

// IsFailure reports whether a job can have failed for the reason with this name.
// Others are reasons for which jobs wait.
func IsFailure(name string) bool {
	_, ok := failures[name]
	return ok || name == "DeadLine"
}

const (
	waitOrLess   = "It starts when jobs that run have ended. A job that asks for less may start earlier."
	askAdmin     = "Ask an administrator."
	askLess      = "Ask for less, or for another partition or QOS."
	otherAccount = "Change the account of the job, or ask an administrator."
	seeOutput    = "Look at the output of the job."
)

// explanations are those of the reasons that are no limits of accounting.
var explanations = map[string]Explanation{
	"None":                     {"The scheduler has not looked at the job yet.", "Wait for its next pass."},
	"Priority":                 {"Jobs with a higher priority come first.", "It starts when these have started, or earlier in a gap: a shorter time limit fits into more gaps."},
	"Dependency":               {"The job waits for other jobs.", "It can start when these are in the state that the dependency asks for."},
	"Resources":                {"The job waits until enough resources are free.", waitOrLess},
	"PartitionNodeLimit":       {"The job asks for more or fewer nodes than the partition permits.", askLess},
	"PartitionTimeLimit":       {"The job asks for more time than the partition permits.", "Lower the time limit of the job, or choose another partition."},
	"PartitionDown":            {"The partition starts no jobs at present.", "Choose another partition, or wait until an administrator opens this one."},
	"PartitionInactive":        {"The partition accepts no jobs.", "Choose another partition."},
	"PartitionConfig":          {"The partition does not permit what the job asks for.", askLess},
	"JobHeldAdmin":             {"An administrator has held the job, or its priority is 0.", "Only an administrator can release it."},
	"JobHeldUser":              {"The user has held the job.", "Release it."},
	"JobHoldMaxRequeue":        {"The job was held because it was queued again too often.", "Find out why it does not run, then release it."},
	"BeginTime":                {"The job asked to start later.", "It can start at this time. The begin time can be changed."},
	"Licenses":                 {"The job waits for licenses.", "It can start when other jobs return them."},
	"Reservation":              {"The job waits for its reservation.", "It can start when the reservation begins."},
	"ReservationDeleted":       {"The reservation of the job was deleted.", "Remove the reservation from the job, or choose another one."},
	"ReservationInvalid":       {"The job can't use its reservation.", "Remove the reservation from the job, or choose another one."},
	"ReqNodeNotAvail":          {"A node that the job needs is not available: it is down, drained or reserved.", "Ask for other nodes, or wait until an administrator returns it to service."},
	"NodeDown":                 {"A node that the job needs is down.", "Ask for other nodes, or wait until an administrator returns it to service."},
	"BadConstraints":           {"No nodes can ever fit what the job asks for.", "Change the features, the nodes or the size of the job."},
	"Constraints":              {"The nodes that are free do not fit what the job asks for.", waitOrLess},
	"MaxPoweredUpNodes":        {"As many nodes are switched on as the site permits.", waitOrLess},
	"MpiPortsBusy":             {"The ports that the job needs for MPI are in use.", waitOrLess},
	"NvidiaImexChannels":       {"The channels between GPUs that the job needs are in use.", waitOrLess},
	"SchedDefer":               {"The scheduler looks at the job at its next pass.", ""},
	"JobArrayTaskLimit":        {"As many tasks of this array run as it permits.", "It starts when one of them has ended. The number after % can be changed."},
	"DependencyNeverSatisfied": {"The job waits for a job that can no longer end as required, so it will never start.", "Cancel it, or change its dependency."},
	"BurstBufferResources":     {"The job waits for space in the burst buffer.", waitOrLess},
	"BurstBufferStageIn":       {"Files are being copied to the burst buffer.", ""},
	"BurstBufferOperation":     {"An operation of the burst buffer has failed.", askAdmin},
	"Cleaning":                 {"The job was queued again, and its previous run is still being cleaned up.", ""},
	"Prolog":                   {"The nodes are being prepared.", ""},
	"FedJobLock":               {"Another cluster of the federation decides whether to start the job.", ""},
	"DeadLine":                 {"The job can't end before its deadline.", "Change the deadline, or lower the time limit."},

	"InvalidAccount":           {"The account of the job is not valid, or was removed.", otherAccount},
	"InvalidQOS":               {"The QOS of the job is not valid, or was removed.", "Change the QOS of the job."},
	"AccountNotAllowed":        {"The partition does not permit this account.", "Choose another account or partition."},
	"QOSNotAllowed":            {"The partition does not permit this QOS.", "Choose another QOS or partition."},
	"AccountingPolicy":         {"The job exceeds a limit of its account or its QOS.", askLess},
	"QOSUsageThreshold":        {"The account has used too much of its share for this QOS.", "The usage counts less with time. Another QOS may start the job earlier."},
	"AssociationJobLimit":      {"As many jobs of the account run as it permits.", waitOrLess},
	"AssociationResourceLimit": {"The jobs of the account use as much as they may.", waitOrLess},
	"AssociationTimeLimit":     {"The account has used up its time.", askAdmin},
	"QOSJobLimit":              {"As many jobs of this QOS run as it permits.", waitOrLess},
	"QOSResourceLimit":         {"The jobs of this QOS use as much as they may.", waitOrLess},
	"QOSTimeLimit":             {"The time of this QOS is used up.", askAdmin},
	"MaxMemPerLimit":           {"The job asks for more memory for each processor or node than is permitted.", "Ask for less memory, or for more processors."},
}

// failures are the reasons for which jobs have failed.
var failures = map[string]Explanation{
	"SystemFailure":    {"Slurm or a node has failed.", askAdmin},
	"JobLaunchFailure": {"The job could not be started.", "Look whether its directory and the paths of its output exist on the nodes."},
	"NonZeroExitCode":  {"The script ended with an exit code other than 0.", seeOutput},
	"RaisedSignal":     {"A signal ended the script.", seeOutput},
	"TimeLimit":        {"The job ran for as long as its time limit.", "Submit it with a longer time limit."},
	"OutOfMemory":      {"The job used more memory than it asked for.", "Submit it with more memory."},
	"InactiveLimit":    {"The job had no step for too long.", "Start the programs of the job with srun."},
}

// limitName matches the names of limits in accounting: whose limit, of which kind,
// of what, and for which part.
var limitName = regexp.MustCompile(`^(Assoc|QOS|)(Grp|Max|Min)(SubmitJobs?|Jobs|WallDuration|Wall|Cpu|CPU|Memory|Mem|Node|GRES|License|Energy|BB|Billing|Unknown)(RunMinutes|RunMins|Minutes|)(PerJob|PerNode|PerUser|PerAccount|NotSatisfied|)(?:Limit)?$`)

// resources are the resources in the names of limits, for sentences.
var resources = map[string]string{
	"Cpu": "CPUs", "CPU": "CPUs", "Memory": "memory", "Mem": "memory", "Node": "nodes", "GRES": "GPUs or similar resources", "License": "licenses",
	"Energy": "energy", "BB": "space in the burst buffer", "Billing": "billing units", "Unknown": "of a resource",
}

// explainLimit explains a reason that is a limit of accounting.
func explainLimit(name string) (Explanation, bool) {
	m := limitName.FindStringSubmatch(name)
	if m == nil {
		return Explanation{}, false
	}
	whose, kind, what, time, part := m[1], m[2], m[3], m[4], m[5]
	if whose == "Assoc" && kind == "Max" && (what == "Jobs" || strings.HasPrefix(what, "Submit")) {
		part = "PerUser" // a limit of the association of this user
	}
	all := map[string]string{"Assoc": "The jobs of the account", "QOS": "The jobs of this QOS", "": "The jobs of the account with this QOS"}[whose]
	limit := map[string]string{"Assoc": "the account", "QOS": "the QOS", "": "the QOS"}[whose]
	switch part {
	case "PerUser":
		if all = "The user's jobs with this QOS"; whose == "Assoc" {
			all = "The user's jobs of this account"
		}
	case "PerAccount":
		all = "The jobs of the account with this QOS"
	}
	amount := "as many " + resources[what]
	if what == "Memory" || what == "Mem" || what == "Energy" || what == "BB" || what == "Unknown" {
		amount = "as much " + resources[what]
	}
	more := strings.NewReplacer("as many ", "more ", "as much ", "more ").Replace(amount)
	switch {
	case strings.HasPrefix(what, "Submit"):
		return Explanation{all + " that wait or run are as many as " + limit + " permits.", "It can be submitted when one of them has ended."}, true
	case what == "Jobs":
		return Explanation{all + " that run are as many as " + limit + " permits.", "It starts when one of them has ended."}, true
	case what == "WallDuration", what == "Wall" && kind == "Max":
		return Explanation{"The job asks for more time than " + limit + " permits.", "Lower the time limit of the job, or choose another account or QOS."}, true
	case what == "Wall":
		return Explanation{all + " have used up their time.", "The usage counts less with time, or an administrator resets it."}, true
	case kind == "Min":
		return Explanation{fmt.Sprintf("The job asks for too little for the QOS, which requires a minimum of %s.", amountOf(amount)), "Ask for more, or choose another QOS."}, true
	case time == "RunMinutes" || time == "RunMins":
		return Explanation{fmt.Sprintf("%s that run have reserved as much time on %s as they may.", all, amountOf(amount)), "It starts when one of them has ended. Shorter time limits let more of them run."}, true
	case time == "Minutes" && part == "PerJob":
		return Explanation{fmt.Sprintf("The job asks for %s, times its time limit, than %s permits.", more, limit), "Lower the time limit, or ask for less."}, true
	case time == "Minutes":
		return Explanation{fmt.Sprintf("%s have used up their time on %s.", all, amountOf(amount)), "The usage counts less with time, or an administrator resets it."}, true
	case part == "PerJob":
		return Explanation{fmt.Sprintf("The job asks for %s than %s permits for a job.", more, limit), askLess}, true
	case part == "PerNode", what == "Cpu" && part == "" && strings.HasSuffix(name, "PerNode"):
		return Explanation{fmt.Sprintf("The job asks for %s on a node than %s permits.", more, limit), askLess}, true
	}
	return Explanation{fmt.Sprintf("%s use %s as they may together.", all, amount), waitOrLess}, true
}

// amountOf returns the resource in an amount such as "as many CPUs".
func amountOf(amount string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(amount, "as many "), "as much ")
	return strings.TrimPrefix(strings.Replace(name, "of a resource", "a resource", 1), "of ")
}

package fault

import (
	"sync"
	"syscall"

	"schedrestd/internal/errs"
)

// Numbers that this project sends or handles specially.
const (
	Unspecified         = -1 // not in the table, because its meaning depends on the caller
	UnexpectedMessage   = 1000
	ProtocolVersion     = 1005
	Authentication      = 1007
	Backoff             = 1804
	HardDrop            = 1805
	NoChange            = 1900
	InvalidPartition    = 2000
	NoDefaultPartition  = 2001
	AccessDenied        = 2002
	TooManyCPUs         = 2005
	NodeCountInvalid    = 2006
	MaxJobCount         = 2007
	NoScript            = 2009
	NoUserID            = 2010
	PathTooLong         = 2012
	CantRunNow          = 2013
	NodeConfig          = 2014
	InvalidJobID        = 2017
	InvalidNodeName     = 2018
	JobChanging         = 2020
	AlreadyDone         = 2021
	JobPending          = 2024
	BadTaskCount        = 2025
	Standby             = 2027
	NotSupported        = 2036
	Disabled            = 2037
	JobHeld             = 2042
	InvalidTaskMemory   = 2044
	InvalidAccount      = 2045
	InvalidParent       = 2046
	ChildOfParent       = 2047
	InvalidTimeLimit    = 2051
	InvalidReservation  = 2053
	InvalidTimeValue    = 2054
	NoWorkDir           = 2063
	InvalidQOS          = 2066
	PreemptionLoop      = 2067
	InvalidCPUCount     = 2069
	JobNotPending       = 2073
	JobFinished         = 2084
	Internal            = 2090
	SubmissionsDisabled = 2105
	InvalidGroupID      = 2113
	InvalidNice         = 2123
	InvalidTimeMin      = 2124
	ConfiglessDisabled  = 2126
	NoEnvironment       = 2127
	StandbyUseBackup    = 2131
	BadUser             = 2165
	EmptyList           = 2162
	UnknownUser         = 2166
	NoAssociation       = 2167
	NotSelected         = 2172
	NothingSelected     = 2173
	IncompletePacket    = 5003
	InvalidCredential   = 6000
	ExpiredCredential   = 6001
	NoToken             = 6009
	Database            = 7000
	OneAtATime          = 7003
	BadName             = 7004
	BadConnection       = 7008
	DefaultAccount      = 7009
	BadSQL              = 7010
	TooLarge            = 9205
	TLSRequired         = 13000
)

// A row describes what a number means for a client.
type row struct {
	number uint32
	kind   errs.Kind
	slurm  string // Slurm's own text, which is shown in errors[].error; "" if Slurm has none
	text   string // our text; "" if Slurm's is sufficient
	hint   string
}

// table contains, in order, all error numbers of Slurm and a few error numbers
// of the operating system, which the daemons also use. If slurmrestd answers
// 422 for a number, so does our gateway, unless another status gives the client
// more information: 401, 403, 404, 409, 413, 429, 501 or 503.
var table = []row{
	{uint32(syscall.EPERM), errs.Denied, "Operation not permitted", "", ""},
	{uint32(syscall.ENOENT), errs.NotFound, "No such file or directory", "not found", ""},
	{uint32(syscall.E2BIG), errs.TooLarge, "Argument list too long", "the request is too large", ""},
	{uint32(syscall.EAGAIN), errs.Unavailable, "Resource temporarily unavailable", "the daemon is temporarily unable to do this", "try again"},
	{uint32(syscall.EACCES), errs.Denied, "Permission denied", "", ""},
	{uint32(syscall.EBUSY), errs.Conflict, "Device or resource busy", "the request conflicts with the current state", ""},
	{uint32(syscall.EINVAL), errs.Invalid, "Invalid argument", "the request is invalid", ""},
	{uint32(syscall.ETIMEDOUT), errs.Timeout, "Connection timed out", "the daemon timed out", "try again"},

	{UnexpectedMessage, errs.Unsupported, "Unexpected message received", "the daemon does not support this request", ""},
	{1001, errs.Unavailable, "Communication connection failure", "the daemon can't connect to another daemon", ""},
	{1002, errs.Unavailable, "Message send failure", "the daemon can't send to another daemon", ""},
	{1003, errs.Unavailable, "Message receive failure", "the daemon can't receive from another daemon", ""},
	{1004, errs.Unavailable, "Communication shutdown failure", "the daemon lost its connection to another daemon", ""},
	{ProtocolVersion, errs.Unsupported, "Incompatible versions of client and server code", "the daemon does not support this protocol version", ""},
	{1006, errs.Unsupported, "I/O stream version number error", "", ""},
	{Authentication, errs.Unauthenticated, "Protocol authentication error", "the daemon does not accept the credential", ""},
	{1008, errs.TooLarge, "Insane message length", "the request is too long for the daemon", ""},
	{1009, errs.BadAnswer, "Invalid MPI plugin name", "", ""},
	{1010, errs.BadAnswer, "MPI plugin's pre-launch setup failed", "", ""},
	{1011, errs.BadAnswer, "Plugin initialization failed", "", ""},
	{1012, errs.Unavailable, "Can't find an address, check slurm.conf", "", ""},
	{1013, errs.BadAnswer, "Unexpected missing socket error", "", ""},
	{1014, errs.BadAnswer, "Unable to process incoming file descriptor", "", ""},
	{1015, errs.BadAnswer, "Unable to process outgoing file descriptor", "", ""},
	{1016, errs.BadAnswer, "Unable to process incoming and outgoing file descriptors", "", ""},
	{1017, errs.Unavailable, "Read would block", "", ""},
	{1018, errs.Unavailable, "Write would block", "", ""},
	{1019, errs.Unavailable, "Connection rejected by handler", "", ""},
	{1020, errs.Unavailable, "Connection forced closed by quiesce timeout", "", ""},
	{1021, errs.Timeout, "Connection timed out establishing", "", ""},
	{1022, errs.Timeout, "Connection timed out writing", "", ""},
	{1023, errs.Timeout, "Connection timed out reading", "", ""},

	{1800, errs.Unavailable, "Unable to contact slurm controller (connect failure)", "the daemon can't connect to the controller", ""},
	{1801, errs.Unavailable, "Unable to contact slurm controller (send failure)", "the daemon can't send to the controller", ""},
	{1802, errs.Unavailable, "Unable to contact slurm controller (receive failure)", "the daemon can't receive from the controller", ""},
	{1803, errs.Unavailable, "Unable to contact slurm controller (shutdown failure)", "the daemon lost its connection to the controller", ""},
	{Backoff, errs.TooMany, "Rate limit exceeded, please retry momentarily", "too many requests: the controller limits the rate", "wait briefly before the next request"},
	{HardDrop, errs.TooMany, "Rate limit exceeded, please retry later", "too many requests: the controller rejects further ones", "wait before the next request"},
	{NoChange, errs.Unchanged, "Data has not changed since time specified", "nothing has changed since that time", ""},

	{InvalidPartition, errs.Invalid, "Invalid partition name specified", "there is no such partition", ""},
	{NoDefaultPartition, errs.Invalid, "No partition specified or system default partition", "no partition is given and the cluster has no default partition", "set the job's partition"},
	{AccessDenied, errs.Denied, "Access/permission denied", "you are not allowed to do this", ""},
	{2003, errs.Denied, "User's group not permitted to use this partition", "your group may not use this partition", ""},
	{2004, errs.Invalid, "Requested nodes not in this partition", "the requested nodes are not in the partition", ""},
	{TooManyCPUs, errs.Invalid, "More processors requested than permitted", "more CPUs are requested than permitted", ""},
	{NodeCountInvalid, errs.Invalid, "Node count specification invalid", "the number of nodes is invalid", ""},
	{MaxJobCount, errs.TooMany, "MaxJobCount limit reached", "the controller's limit of jobs is reached", "wait until some jobs have ended"},
	{2008, errs.Invalid, "Job size specification needs to be provided", "the size of the job is missing", ""},
	{NoScript, errs.Invalid, "Job script not specified", "the job has no script", ""},
	{NoUserID, errs.Denied, "Invalid user id", "the user is missing, or you may not act for this user", ""},
	{2011, errs.Conflict, "Duplicate job id", "the job id is already in use", ""},
	{PathTooLong, errs.Invalid, "Pathname of a file, directory or other parameter too long", "a path is too long", ""},
	{CantRunNow, errs.Invalid, "Immediate execution impossible, insufficient priority", "", ""},
	{NodeConfig, errs.Invalid, "Requested node configuration is not available", "no nodes satisfy the job's request", ""},
	{2015, errs.Invalid, "Requested partition configuration not available now", "the partition's limits or state do not allow the job's request", ""},
	{2016, errs.Invalid, "Requested nodes are busy", "the nodes are busy", ""},
	{InvalidJobID, errs.NotFound, "Invalid job id specified", "there is no such job", ""},
	{InvalidNodeName, errs.Invalid, "Invalid node name specified", "there is no such node", ""},
	{2019, errs.Invalid, "I/O error writing script/environment to file", "", ""},
	{JobChanging, errs.Conflict, "Job can not be altered now, try again later", "the state of the job does not permit this now", "try again"},
	{AlreadyDone, errs.Conflict, "Job/step already completing or completed", "the job has already ended", ""},
	{2022, errs.Invalid, "Error configuring interconnect", "", ""},
	{2023, errs.Invalid, "Task distribution specification invalid", "the distribution of tasks is invalid", ""},
	{JobPending, errs.Conflict, "Job is pending execution", "the job is still pending", ""},
	{BadTaskCount, errs.Invalid, "Task count specification invalid", "the number of tasks is invalid", ""},
	{2026, errs.Invalid, "Error generating job credential", "", ""},
	{Standby, errs.Unavailable, "Slurm backup controller in standby mode", "the controller that answered is on standby", ""},
	{2028, errs.Invalid, "Invalid node state specified", "the requested node state is invalid", ""},
	{2029, errs.Invalid, "Invalid feature specification", "a requested feature is unknown", ""},
	{2030, errs.Invalid, "AuthType change requires restart of all Slurm daemons and commands to take effect", "", ""},
	{2031, errs.Invalid, "Active features not subset of available features", "active features must be among the node's features", ""},
	{2032, errs.Invalid, "SchedulerType change requires restart of the slurmctld daemon to take effect", "", ""},
	{2033, errs.Invalid, "SelectType change requires restart of the slurmctld daemon to take effect", "", ""},
	{2034, errs.Invalid, "SwitchType change requires restart of all Slurm daemons and jobs to take effect", "", ""},
	{2035, errs.Invalid, "Immediate execution impossible, resources too fragmented for allocation", "", ""},
	{NotSupported, errs.Unsupported, "Requested operation not supported on this system", "the cluster does not support this operation", ""},
	{Disabled, errs.Unsupported, "Requested operation is presently disabled", "this operation is disabled in the cluster", ""},
	{2038, errs.Invalid, "Job dependency problem", "a dependency of the job is invalid", ""},
	{2039, errs.Invalid, "Only batch jobs are accepted or processed", "only batch jobs are supported here", ""},
	{2040, errs.Invalid, "Licenses currently unavailable", "the licenses are currently in use", ""},
	{2041, errs.Invalid, "Unable to takeover, heartbeat file is missing", "", ""},
	{2042, errs.Conflict, "Job is in held state, pending scheduler release", "the job is held", ""},
	{2043, errs.Invalid, "CredType change requires restart of all Slurm daemons to take effect", "", ""},
	{InvalidTaskMemory, errs.Invalid, "Memory required by task is not available", "the requested memory is invalid", ""},
	{InvalidAccount, errs.Invalid, "Invalid account or account/partition combination specified", "the account is unknown, or the user may not use it", ""},
	{InvalidParent, errs.Invalid, "Invalid parent account specified", "", ""},
	{ChildOfParent, errs.Invalid, "Account already child of parent account specified", "", ""},
	{2048, errs.Invalid, "Invalid license specification", "the requested licenses are invalid", ""},
	{2049, errs.Invalid, "The node configuration changes that were made require restart of the slurmctld daemon to take effect", "", ""},
	{2050, errs.Denied, "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", "the job exceeds a limit of its account or quality of service", ""},
	{InvalidTimeLimit, errs.Invalid, "Requested time limit is invalid (missing or exceeds some limit)", "the time limit is invalid", ""},
	{2052, errs.Denied, "Access denied to requested reservation", "you may not use this reservation", ""},
	{InvalidReservation, errs.Invalid, "Requested reservation is invalid", "the reservation is invalid", ""},
	{2054, errs.Invalid, "Invalid time specified", "a time is invalid", ""},
	{2055, errs.Conflict, "Requested reservation is in use", "the reservation is in use", ""},
	{2056, errs.Conflict, "Requested reservation not usable now", "the reservation can't be used now", ""},
	{2057, errs.Invalid, "Invalid wckey specification", "the workload key is invalid", ""},
	{2058, errs.Conflict, "Requested reservation overlaps with another reservation", "the reservation overlaps another reservation", ""},
	{2059, errs.Invalid, "Required ports are in use", "the requested ports are in use", ""},
	{2060, errs.Invalid, "Requires more ports than can be reserved", "more ports are requested than can be reserved", ""},
	{2061, errs.Conflict, "PrologSlurmctld is still running", "the job's nodes are still being prepared", "try again"},
	{2062, errs.Invalid, "Job steps can not be run on this cluster", "", ""},
	{NoWorkDir, errs.Invalid, "Job cannot be submitted without the current working directory specified.", "the job has no working directory", ""},
	{2064, errs.Invalid, "No running or pending steps in the job", "", ""},
	{InvalidQOS, errs.Invalid, "Invalid qos specification", "the quality of service is unknown, or the user may not use it", ""},
	{PreemptionLoop, errs.Invalid, "QOS Preemption loop detected", "", ""},
	{2068, errs.Invalid, "Required node not available (down, drained or reserved)", "the requested nodes are not available", ""},
	{InvalidCPUCount, errs.Invalid, "CPU count specification invalid", "the number of CPUs is invalid", ""},
	{2070, errs.Invalid, "Required partition not available (inactive or drain)", "the partition is not available", ""},
	{2071, errs.Invalid, "Circular job dependency", "the job's dependencies form a cycle", ""},
	{2072, errs.Invalid, "Invalid generic resource (gres) specification", "the requested generic resources are invalid", ""},
	{JobNotPending, errs.Conflict, "Job is no longer pending execution", "the job is no longer pending", ""},
	{2074, errs.Denied, "Requested account has breached requested QOS usage threshold", "the fair share is below the usage threshold of the quality of service", ""},
	{2075, errs.Conflict, "Partition is in use", "the partition is in use", ""},
	{2076, errs.Invalid, "Step limit reached for this job", "", ""},
	{2077, errs.Conflict, "Job is current suspended, requested operation disabled", "the job is suspended", ""},
	{2078, errs.Invalid, "Job can not start immediately", "", ""},
	{2080, errs.Invalid, "Reservation request lacks users, groups or accounts", "", ""},
	{2081, errs.Invalid, "Invalid job array specification", "the job array is invalid", ""},
	{2082, errs.Conflict, "Duplicate reservation name", "a reservation with this name already exists", ""},
	{2083, errs.Conflict, "Job has already started", "the job has already started", ""},
	{JobFinished, errs.Conflict, "Job has already finished", "the job has already ended", ""},
	{2085, errs.Conflict, "Job is not running", "the job is not running", ""},
	{2086, errs.Conflict, "Job is not pending nor running", "the job is neither pending nor running", ""},
	{2087, errs.Conflict, "Job is not suspended", "the job is not suspended", ""},
	{2088, errs.Conflict, "Job is not finished", "the job has not ended", ""},
	{2089, errs.Invalid, "Duplicate event trigger", "", ""},
	{Internal, errs.BadAnswer, "Slurm internal error, contact system administrator", "internal error of the daemon", "see the daemon's log"},
	{2091, errs.Invalid, "BurstBufferType change requires restart of slurmctld daemon to take effect", "", ""},
	{2092, errs.Invalid, "Burst Buffer permission denied", "", ""},
	{2093, errs.Invalid, "Burst Buffer resource limit exceeded", "", ""},
	{2094, errs.Invalid, "Burst Buffer request invalid", "", ""},
	{2095, errs.Invalid, "Changes to job priority are not persistent, change nice instead", "", ""},
	{2096, errs.Conflict, "Cannot modify scrontab jobs through scontrol", "a cron job can't be changed", ""},
	{2097, errs.Invalid, "NamespaceType change requires restart of all Slurm daemons and commands to take effect", "", ""},
	{2098, errs.Conflict, "Cannot cancel scrontab jobs without --cron flag.", "a cron job can't be cancelled this way", ""},
	{2099, errs.Invalid, "Invalid mcs_label specified", "the security label is invalid", ""},
	{2100, errs.Invalid, "Waiting for burst buffer", "", ""},
	{2101, errs.Invalid, "Partition in DOWN state", "the partition is down", ""},
	{2102, errs.Invalid, "Duplicate generic resource (gres) specification", "", ""},
	{2104, errs.Conflict, "Reservation already started", "the reservation has already started", ""},
	{SubmissionsDisabled, errs.Unavailable, "System submissions disabled", "the cluster currently accepts no new jobs", ""},
	{2106, errs.Conflict, "Job not heterogeneous job", "the job is not a heterogeneous job", ""},
	{2107, errs.Invalid, "Job not heterogeneous job leader", "", ""},
	{2108, errs.Conflict, "Operation not permitted on individual component of heterogeneous job", "this is possible only for a whole heterogeneous job", ""},
	{2109, errs.Invalid, "Core-based reservation can not be updated", "", ""},
	{2110, errs.Invalid, "Duplicate job step id", "", ""},
	{2111, errs.Invalid, "Core count for reservation node list is not consistent!", "", ""},
	{2112, errs.Invalid, "X11 forwarding not available", "", ""},
	{InvalidGroupID, errs.Invalid, "Invalid group id", "the group is missing, or the user is not in it", ""},
	{2114, errs.Invalid, "Job --batch option is invalid or not a subset of --constraint", "", ""},
	{2115, errs.Invalid, "Invalid Trackable RESource (TRES) specification", "the requested trackable resources are invalid", ""},
	{2116, errs.Invalid, "Invalid TRESBillingWeights specification", "", ""},
	{2117, errs.Invalid, "Invalid JobDefaults specification", "", ""},
	{2118, errs.Invalid, "Job can not start due to maintenance reservation.", "", ""},
	{2119, errs.Invalid, "Invalid GRES specification (with and without type identification)", "the type of a generic resource is unknown", ""},
	{2120, errs.Invalid, "Reboot already in progress", "", ""},
	{2121, errs.Invalid, "Multiple KNL NUMA and/or MCDRAM constraints require use of a heterogeneous job", "", ""},
	{2122, errs.Invalid, "Requested GRES option unsupported by configured SelectType plugin", "", ""},
	{InvalidNice, errs.Invalid, "Invalid --nice value", "the nice value is invalid", ""},
	{InvalidTimeMin, errs.Invalid, "Invalid time-min specification (exceeds job's time or other limits)", "the minimum time exceeds the time limit", ""},
	{2125, errs.Invalid, "Immediate execution impossible. Individual job submission scheduling attempts deferred", "", ""},
	{2126, errs.Invalid, "ConfigLess mode is disabled in slurm configuration.", "", ""},
	{NoEnvironment, errs.Invalid, "Environment is missing in job", "the job has no environment", ""},
	{2128, errs.Invalid, "Reservation given is not skipable, try deleting instead", "", ""},
	{2129, errs.Invalid, "Reservations can't have users and groups specified, only one or the other", "", ""},
	{2130, errs.Invalid, "Multiple partition job request not supported when a partition is set in the association", "", ""},
	{StandbyUseBackup, errs.Unavailable, "Controller is in standby mode, try a different controller", "the controller that answered is on standby", ""},
	{2132, errs.Invalid, "Cannot request more threads per core than the job allocation", "the number of threads per core is invalid", ""},
	{2133, errs.Invalid, "Invalid preferred feature specification", "", ""},
	{2134, errs.Invalid, "Insufficient GRES available in allocation", "", ""},
	{2135, errs.Invalid, "Invalid container id specified", "the container id is invalid", ""},
	{2136, errs.Invalid, "JobID must not be an empty string", "the job id is empty", ""},
	{2137, errs.Invalid, "JobID can not be zero", "0 is not a job id", ""},
	{2138, errs.Invalid, "JobID can not be a negative number", "a job id can't be negative", ""},
	{2139, errs.Invalid, "JobID larger than acceptable range", "the job id is too large", ""},
	{2140, errs.Invalid, "JobID includes unexpected non-numeric characters", "the job id is not a number", ""},
	{2141, errs.Invalid, "Job Array ID must not be an empty string", "", ""},
	{2142, errs.Invalid, "Job Array ID can not be a negative number", "", ""},
	{2143, errs.Invalid, "Job Array ID larger than acceptable range", "", ""},
	{2144, errs.Invalid, "Job Array ID includes unexpected non-numeric characters", "", ""},
	{2145, errs.Invalid, "", "a job id can't name both a component and an array task", ""},
	{2146, errs.Invalid, "HetJob component must not be an empty string", "", ""},
	{2147, errs.Invalid, "HetJob component can not be a negative number", "", ""},
	{2148, errs.Invalid, "HetJob component larger than acceptable range", "", ""},
	{2149, errs.Invalid, "", "the component of the job is not a number", ""},
	{2150, errs.Invalid, "StepID must not be an empty string", "", ""},
	{2151, errs.Invalid, "StepID can not be a negative number", "", ""},
	{2152, errs.Invalid, "StepID larger than acceptable range", "", ""},
	{2153, errs.Invalid, "StepID includes unexpected non-numeric characters", "", ""},
	{2154, errs.Invalid, "HetStep component must not be an empty string", "", ""},
	{2155, errs.Invalid, "HetStep component can not be zero", "", ""},
	{2156, errs.Invalid, "HetStep component can not be a negative number", "", ""},
	{2157, errs.Invalid, "HetStep component larger than acceptable range", "", ""},
	{2158, errs.Invalid, "HetStep component includes unexpected non-numeric characters", "", ""},
	{2159, errs.Invalid, "HetJob can not Het step id", "", ""},
	{2160, errs.Invalid, "Job killed due hitting max wall clock limit", "", ""},
	{2161, errs.Invalid, "Job killed due node failure", "", ""},
	{EmptyList, errs.Invalid, "Empty list", "", ""},
	{2163, errs.Invalid, "Invalid group ID", "the group is invalid", ""},
	{2164, errs.Invalid, "Unable to resolve group ID to group name", "the controller does not know the group", ""},
	{BadUser, errs.Invalid, "Invalid user ID", "the user is invalid", ""},
	{UnknownUser, errs.Invalid, "Unable to resolve user ID to user name", "the daemon does not know the user", ""},
	{NoAssociation, errs.Invalid, "Invalid or unknown association", "the user has no association with the account", ""},
	{2168, errs.Invalid, "Node already exists in the node table", "", ""},
	{2169, errs.Invalid, "Unable to add node, node table is full", "", ""},
	{2170, errs.Invalid, "Invalid QOS specification, relative QOS can only be used in a single partition per cluster.", "", ""},
	{2171, errs.Invalid, "Invalid extra constraints specification", "", ""},
	{NotSelected, errs.Invalid, "Cannot signal job", "the job is not one of those that the request selects", ""},
	{NothingSelected, errs.Invalid, "Invalid signal jobs request, at least one job id or filter is required.", "", ""},
	{2174, errs.Invalid, "RestrictedCoresPerGPU: Not enough unique cores per GPU", "", ""},
	{2175, errs.Invalid, "RestrictedCoresPerGPU: Missing core topology for GPUs", "", ""},
	{2176, errs.Invalid, "RestrictedCoresPerGPU: No GPUs configured on node", "", ""},
	{2177, errs.Invalid, "Max powered up nodes reached", "", ""},
	{2178, errs.Invalid, "Requested topology configuration is not available", "", ""},
	{2179, errs.Invalid, "Preemption is required but is disabled on this system", "", ""},
	{2180, errs.Conflict, "Invalid node state transition", "the node can't change from its current state to this one", ""},
	{2181, errs.Conflict, "Invalid job state", "the job's state does not allow this", ""},
	{2185, errs.Invalid, "SLUID is invalid", "", ""},
	{2186, errs.Invalid, "Requested operation requires extern step", "", ""},
	{2187, errs.Invalid, "Invalid power action", "", ""},
	{2188, errs.Conflict, "Step queued as pending", "", ""},
	{2189, errs.Invalid, "Invalid configuration for external job", "", ""},
	{2190, errs.Invalid, "Unable to load file for reading", "", ""},

	{4001, errs.BadAnswer, "Kill task failed", "", ""},
	{4002, errs.Conflict, "", "the job has already ended", ""},
	{4003, errs.Invalid, "Invalid accounting frequency requested", "", ""},
	{4004, errs.BadAnswer, "Invalid job credential", "", ""},
	{4007, errs.BadAnswer, "Job credential expired", "", ""},
	{4008, errs.BadAnswer, "Job credential revoked", "", ""},
	{4009, errs.BadAnswer, "Job credential replayed", "", ""},
	{4010, errs.BadAnswer, "Slurmd could not create a batch directory or file", "", ""},
	{4014, errs.BadAnswer, "Slurmd could not set up environment for batch job", "", ""},
	{4016, errs.BadAnswer, "Slurmd could not set UID or GID", "", ""},
	{4020, errs.BadAnswer, "Slurmd could not execve job", "", ""},
	{4021, errs.BadAnswer, "Slurmd could not connect IO", "", ""},
	{4022, errs.BadAnswer, "Job prolog failed", "", ""},
	{4023, errs.BadAnswer, "Job epilog failed", "", ""},
	{4025, errs.TooMany, "Too many job steps on node", "", ""},
	{4026, errs.Conflict, "Job step already exists", "", ""},
	{4027, errs.Conflict, "Job step not running", "", ""},
	{4028, errs.Conflict, "Job step is suspended", "", ""},
	{4029, errs.Conflict, "Job step is not currently suspended", "", ""},
	{4030, errs.Invalid, "Unix socket name exceeded maximum length", "", ""},
	{4031, errs.Invalid, "Container runtime not configured or invalid", "", ""},
	{4032, errs.Invalid, "Unable to satisfy cpu bind request", "", ""},
	{4033, errs.Invalid, "Unable to layout tasks on given cpus", "", ""},
	{4034, errs.TooMany, "", "the node daemon has too many requests", ""},
	{4035, errs.BadAnswer, "Unable to proxy slurmstepd message", "", ""},

	{IncompletePacket, errs.BadAnswer, "Header lengths are longer than data received", "the daemon received an incomplete message", ""},
	{5004, errs.Timeout, "Socket timed out on send/recv operation", "the daemon timed out waiting for another daemon", ""},
	{5005, errs.BadAnswer, "Zero Bytes were transmitted or received", "", ""},

	{InvalidCredential, errs.Unauthenticated, "Invalid authentication credential", "the daemon does not accept the credential", ""},
	{ExpiredCredential, errs.Unauthenticated, "Authentication credential expired", "the credential has expired", "get a new credential"},
	{6004, errs.BadAnswer, "Bad argument to plugin function", "", ""},
	{6007, errs.Unauthenticated, "Cannot unpack credential", "", ""},
	{6008, errs.Unauthenticated, "Authentication does not apply to request", "the daemon does not support this type of credential", ""},
	{NoToken, errs.Unavailable, "Token Generation failed.", "the controller can't create tokens", "an administrator must set AuthAltParameters=jwt_key="},
	{6010, errs.Denied, "Rejecting authentication of user nobody or group nobody", "the user nobody and the group nobody are not accepted", ""},
	{6011, errs.BadAnswer, "Unable to query kernel for socket peer credential", "", ""},

	{Database, errs.Unavailable, "Unable to connect to database", "the accounting daemon can't connect to its database", ""},
	{7001, errs.Conflict, "Job(s) active, cancel job(s) before remove", "", ""},
	{7002, errs.Invalid, "Cluster deleted, commit/rollback immediately", "", ""},
	{OneAtATime, errs.Invalid, "Can only change one at a time", "", ""},
	{BadName, errs.Invalid, "Unacceptable name given. (No '.' in name allowed)", "a name is invalid", ""},
	{7005, errs.Invalid, "You can not allocate more than 100% of a resource", "", ""},
	{7006, errs.TooLarge, "Query result exceeds size limit", "the result would be too large", "narrow the query"},
	{7007, errs.TooLarge, "Too wide of a date range in query", "the time range of the query is too wide", "narrow the query"},
	{BadConnection, errs.Invalid, "Database connection reference is invalid", "", ""},
	{DefaultAccount, errs.Conflict, "You can not remove the default account of a user", "", ""},
	{BadSQL, errs.Invalid, "There is something internally wrong with the SQL needed for this. Please consult the slurmdbd log for more info.", "", ""},
	{7011, errs.Invalid, "This request would make it so some associations would not have access to their default qos.", "", ""},
	{7012, errs.Invalid, "Coordinators can not increase job limits beyond the parent ones", "", ""},
	{7013, errs.Invalid, "No RPC stats are available", "", ""},
	{7014, errs.Invalid, "Invalid value for Allowed field when SharedPool enabled, must be 0 or 100% (without Absolute) or Count (with Absolute).", "", ""},
	{7100, errs.Invalid, "Too many clusters in federation", "", ""},
	{7101, errs.Invalid, "Clusters can only be assigned to one federation", "", ""},
	{7102, errs.Invalid, "Invalid cluster feature specification", "", ""},
	{7103, errs.Invalid, "Not a valid federated job", "", ""},
	{7104, errs.Invalid, "Invalid cluster name", "the cluster is unknown", ""},
	{7105, errs.Conflict, "Job locked by another sibling", "", ""},
	{7106, errs.Invalid, "No eligible clusters for federated job", "", ""},
	{7201, errs.Invalid, "Required nodes lack available resources", "", ""},
	{7202, errs.Invalid, "Required nodes do not fit topology", "", ""},
	{7203, errs.Invalid, "No suitable topology unit found", "", ""},
	{7204, errs.Invalid, "No suitable topology unit found for segment", "", ""},
	{7205, errs.Invalid, "Insufficient resources in topology unit", "", ""},
	{7206, errs.Invalid, "Weight-based selection could not satisfy request within topology unit", "", ""},
	{7207, errs.Invalid, "Exceeded maximum node limit during topology allocation", "", ""},
	{7208, errs.Invalid, "No available nodes in topology", "", ""},
	{7400, errs.BadAnswer, "Invalid or NULL Lua state pointer", "", ""},
	{7401, errs.BadAnswer, "Lua script loading failed due to invalid syntax", "", ""},
	{7402, errs.BadAnswer, "Requested Lua function not found", "", ""},
	{7403, errs.BadAnswer, "Lua function returned nil or table instead of numeric result", "", ""},
	{7404, errs.BadAnswer, "Lua function execution failed for unknown reasons", "", ""},
	{7405, errs.BadAnswer, "Lua function execution failed due to runtime error", "", ""},
	{7406, errs.BadAnswer, "Lua function execution failed due to memory allocation failure. Either not enough memory for Lua script's variables or memory allocation request for a variable was way too large.", "", ""},
	{7407, errs.BadAnswer, "Lua function execution failed due to unknown failure in Lua's garbage collector", "", ""},
	{7408, errs.BadAnswer, "Unknown or unparsable Lua type found at top of Lua stack", "", ""},

	{8000, errs.Invalid, "Time limit specification required, but not provided", "the job needs a time limit", ""},
	{8002, errs.BadAnswer, "Plugin has invalid format or unable to be loaded", "", ""},
	{8003, errs.BadAnswer, "Plugin missing required symbol or function", "", ""},
	{8004, errs.BadAnswer, "Required plugin type not loaded or initialized", "", ""},
	{8005, errs.BadAnswer, "Plugin file not found", "", ""},
	{8006, errs.BadAnswer, "Plugin access denied", "", ""},
	{8007, errs.BadAnswer, "Dlopen of plugin file failed", "", ""},
	{8008, errs.BadAnswer, "Plugin init() callback failed", "", ""},
	{8009, errs.BadAnswer, "Plugin name/type/version symbol missing", "", ""},
	{8010, errs.BadAnswer, "Incompatible plugin version", "", ""},

	{9000, errs.Invalid, "Query empty or not RFC7320 compliant", "", ""},
	{9001, errs.Malformed, "Failure during parsing", "", ""},
	{9002, errs.Malformed, "Jobs description entry not found, empty or not dictionary or list", "", ""},
	{9003, errs.NotFound, "Nothing found with query", "", ""},
	{9004, errs.Invalid, "Missing UNIX user in the system", "", ""},
	{9005, errs.Invalid, "Missing UNIX group in the system", "", ""},
	{9006, errs.NotFound, "Unable to find requested URL endpoint. Please query the '/openapi/v3' endpoint or visit 'https://slurm.schedmd.com/rest_api.html' for the OpenAPI specification which includes a list of all possible slurmrestd endpoints.", "", ""},
	{9007, errs.MethodNotAllowed, "Requested HTTP query method is not supported at URL endpoint. Please query the '/openapi/v3' endpoint or visit 'https://slurm.schedmd.com/rest_api.html' for the OpenAPI specification which includes a list of all possible slurmrestd endpoints.", "", ""},
	{9008, errs.Unauthenticated, "Authentication failure", "", ""},
	{9009, errs.Malformed, "Query requirements not met", "", ""},
	{9200, errs.Invalid, "Unable to resolve path", "", ""},
	{9201, errs.BadAnswer, "Data pointer is NULL", "", ""},
	{9202, errs.Invalid, "Unable to convert Data type", "", ""},
	{9203, errs.Invalid, "Unable to compile regex", "", ""},
	{9204, errs.UnsupportedMedia, "MIME type is unknown to any loaded plugins", "", ""},
	{TooLarge, errs.TooLarge, "Data too large to handle", "the request is too large", ""},
	{9206, errs.Invalid, "Data parser expects flags to be a list", "", ""},
	{9207, errs.Invalid, "Data parser unable to parse invalid flag", "", ""},
	{9208, errs.Invalid, "Data parser expected a list", "", ""},
	{9209, errs.Invalid, "Data parser expected a dictionary or object", "", ""},
	{9210, errs.Invalid, "Request matched more than one object to modify. Modifications must only apply to a single object. Try adding more properties to make update match a unique object.", "", ""},
	{9211, errs.Invalid, "Request matched more than one object to query. Request is limited to query of a single matching object.", "", ""},
	{9212, errs.Invalid, "Request to parse empty string rejected", "", ""},
	{9213, errs.BadAnswer, "Invalid parser requested", "", ""},
	{9214, errs.BadAnswer, "Parsing tree too deep. Possible cyclic parsing detected", "", ""},
	{9215, errs.BadAnswer, "Parser went into an invalid state. Possible library issue.", "", ""},
	{9216, errs.Invalid, "Request to parse invalid data", "", ""},
	{TLSRequired, errs.Unavailable, "TLS missing but required for connection", "the daemon requires TLS (TLSType=tls/s2n)", TLSHint},
}

// TLSHint is the hint where a daemon requires TLS, or may require it, and the
// client uses none.
const TLSHint = "if the daemons use TLS: set TLSType=tls/s2n, and in TLSParameters ca_cert_file= to the cluster's CA"

// byNumber returns the rows by their numbers.
var byNumber = sync.OnceValue(func() map[uint32]row {
	m := make(map[uint32]row, len(table))
	for _, r := range table {
		m[r.number] = r
	}
	return m
})

package fault

import (
	"syscall"

	"schedrestd/errs"
)

// Numbers that this project answers with, or treats specially.
const (
	Unspecified         = -1 // is not in the table: who asks may know more
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
	MaxJobCount         = 2007
	NoScript            = 2009
	NoUserID            = 2010
	PathTooLong         = 2012
	NodeConfig          = 2014
	InvalidJobID        = 2017
	InvalidNodeName     = 2018
	AlreadyDone         = 2021
	BadTaskCount        = 2025
	Standby             = 2027
	NotSupported        = 2036
	Disabled            = 2037
	InvalidTaskMemory   = 2044
	InvalidTimeLimit    = 2051
	InvalidReservation  = 2053
	NoWorkDir           = 2063
	InvalidCPUCount     = 2069
	Internal            = 2090
	SubmissionsDisabled = 2105
	NoEnvironment       = 2127
	StandbyUseBackup    = 2131
	BadUser             = 2165
	UnknownUser         = 2166
	IncompletePacket    = 5003
	InvalidCredential   = 6000
	ExpiredCredential   = 6001
	NoToken             = 6009
	Database            = 7000
)

// row is what we make of a number.
type row struct {
	number uint32
	kind   errs.Kind
	text   string
	hint   string
}

// table is in the order of the numbers. A number that is not here is a BadAnswer
// which names it.
var table = []row{
	{uint32(syscall.ENOENT), errs.NotFound, "there is no such thing", ""},
	{uint32(syscall.E2BIG), errs.TooLarge, "the request is too large", ""},
	{uint32(syscall.EAGAIN), errs.Unavailable, "the daemon can't do this now", "try again"},
	{uint32(syscall.EBUSY), errs.Conflict, "the request does not fit the present state", ""},
	{uint32(syscall.EINVAL), errs.Invalid, "the request is not acceptable", ""},
	{uint32(syscall.ETIMEDOUT), errs.Timeout, "the daemon waited too long for something it needs", "try again"},

	{UnexpectedMessage, errs.Unsupported, "the daemon does not know this request", ""},
	{1001, errs.Unavailable, "the daemon can't reach another one", ""},
	{1002, errs.Unavailable, "the daemon can't send to another one", ""},
	{1003, errs.Unavailable, "the daemon can't hear another one", ""},
	{1004, errs.Unavailable, "the daemon lost its connection to another one", ""},
	{ProtocolVersion, errs.Unsupported, "the daemon does not speak this protocol version", ""},
	{Authentication, errs.Unauthenticated, "the daemon does not accept the credential", ""},
	{1008, errs.TooLarge, "the daemon finds the request too long", ""},
	{1800, errs.Unavailable, "the controller can't be reached from the daemon", ""},
	{1801, errs.Unavailable, "the daemon can't send to the controller", ""},
	{1802, errs.Unavailable, "the daemon can't hear the controller", ""},
	{1803, errs.Unavailable, "the daemon lost its connection to the controller", ""},
	{Backoff, errs.TooMany, "the controller asks for fewer requests", "wait a little before the next one"},
	{HardDrop, errs.TooMany, "the controller refuses more requests", "wait before the next one"},
	{NoChange, errs.Unchanged, "nothing changed since then", ""},

	{InvalidPartition, errs.Invalid, "there is no such partition", ""},
	{NoDefaultPartition, errs.Invalid, "no partition is named and the cluster has no default one", "name a partition"},
	{AccessDenied, errs.Denied, "you are not allowed to do this", ""},
	{2003, errs.Denied, "your group may not use this partition", ""},
	{2004, errs.Invalid, "the nodes asked for are not in the partition", ""},
	{TooManyCPUs, errs.Invalid, "more cpus are asked for than there are", ""},
	{2006, errs.Invalid, "the number of nodes is not acceptable", ""},
	{MaxJobCount, errs.TooMany, "the controller has as many jobs as it can hold", "wait until some have ended"},
	{2008, errs.Invalid, "the job does not say how large it is", ""},
	{NoScript, errs.Invalid, "the job has no script", ""},
	{NoUserID, errs.Denied, "the user is missing, or not one you may act for", ""},
	{2011, errs.Conflict, "the job id is taken", ""},
	{PathTooLong, errs.Invalid, "a path is too long", ""},
	{NodeConfig, errs.Invalid, "no nodes can satisfy what the job asks for", ""},
	{2015, errs.Invalid, "the partition's limits or state don't allow what the job asks for", ""},
	{2016, errs.Unavailable, "the nodes are busy", ""},
	{InvalidJobID, errs.NotFound, "there is no such job", ""},
	{InvalidNodeName, errs.Invalid, "there is no such node", ""},
	{2020, errs.Conflict, "the job is changing its state and can't be altered now", "try again"},
	{AlreadyDone, errs.Conflict, "the job has already ended", ""},
	{2023, errs.Invalid, "the distribution of tasks is not acceptable", ""},
	{2024, errs.Conflict, "the job is still waiting", ""},
	{BadTaskCount, errs.Invalid, "the number of tasks is not acceptable", ""},
	{Standby, errs.Unavailable, "the controller that answered is on standby", ""},
	{2028, errs.Invalid, "the node state asked for is not acceptable", ""},
	{2029, errs.Invalid, "a feature that is asked for is not known", ""},
	{2031, errs.Invalid, "active features must be among the node's features", ""},
	{NotSupported, errs.Unsupported, "the cluster does not support this", ""},
	{Disabled, errs.Unsupported, "this is switched off in the cluster", ""},
	{2038, errs.Invalid, "a dependency of the job is not acceptable", ""},
	{2039, errs.Unsupported, "this is for batch jobs only", ""},
	{2040, errs.Unavailable, "the licenses are not free", ""},
	{2042, errs.Conflict, "the job is held", ""},
	{InvalidTaskMemory, errs.Invalid, "the memory asked for is not acceptable", ""},
	{2045, errs.Invalid, "the account is not known, or not one of the user's", ""},
	{2048, errs.Invalid, "the licenses asked for are not acceptable", ""},
	{2050, errs.Denied, "the job is over a limit of its account or quality of service", ""},
	{InvalidTimeLimit, errs.Invalid, "the time limit is not acceptable", ""},
	{2052, errs.Denied, "you may not use this reservation", ""},
	{InvalidReservation, errs.Invalid, "the reservation is not acceptable", ""},
	{2054, errs.Invalid, "a time is not acceptable", ""},
	{2055, errs.Conflict, "the reservation is in use", ""},
	{2056, errs.Conflict, "the reservation can't be used now", ""},
	{2057, errs.Invalid, "the workload key is not acceptable", ""},
	{2058, errs.Conflict, "the reservation overlaps another one", ""},
	{2059, errs.Unavailable, "the ports asked for are in use", ""},
	{2060, errs.Invalid, "the ports asked for are not acceptable", ""},
	{2061, errs.Conflict, "the job's nodes are still being prepared", "try again"},
	{NoWorkDir, errs.Invalid, "the job has no working directory", ""},
	{2066, errs.Invalid, "the quality of service is not known, or not one of the user's", ""},
	{2068, errs.Unavailable, "the nodes asked for are not available", ""},
	{InvalidCPUCount, errs.Invalid, "the number of cpus is not acceptable", ""},
	{2070, errs.Unavailable, "the partition is not available", ""},
	{2071, errs.Invalid, "the job's dependencies form a circle", ""},
	{2072, errs.Invalid, "the generic resources asked for are not acceptable", ""},
	{2073, errs.Conflict, "the job is no longer waiting", ""},
	{2074, errs.Denied, "the quality of service asks for more than the job does", ""},
	{2075, errs.Conflict, "the partition is in use", ""},
	{2077, errs.Conflict, "the job is suspended", ""},
	{2081, errs.Invalid, "the array of jobs is not acceptable", ""},
	{2082, errs.Conflict, "a reservation of this name exists", ""},
	{2083, errs.Conflict, "the job has already started", ""},
	{2084, errs.Conflict, "the job has already ended", ""},
	{2085, errs.Conflict, "the job is not running", ""},
	{2086, errs.Conflict, "the job is neither waiting nor running", ""},
	{2087, errs.Conflict, "the job is not suspended", ""},
	{2088, errs.Conflict, "the job has not ended", ""},
	{Internal, errs.BadAnswer, "the daemon had a fault of its own", "its log says more"},
	{2096, errs.Conflict, "a repeating job can't be changed", ""},
	{2098, errs.Conflict, "a repeating job can't be cancelled this way", ""},
	{2099, errs.Invalid, "the security label is not acceptable", ""},
	{2101, errs.Unavailable, "the partition is down", ""},
	{2104, errs.Conflict, "the reservation has already begun", ""},
	{SubmissionsDisabled, errs.Unavailable, "the cluster takes no new jobs now", ""},
	{2106, errs.Conflict, "the job is not a heterogeneous one", ""},
	{2108, errs.Conflict, "this can be done to a whole heterogeneous job only", ""},
	{2113, errs.Invalid, "the job's group is not named", ""},
	{2115, errs.Invalid, "the trackable resources asked for are not acceptable", ""},
	{2119, errs.Invalid, "the type of a generic resource is not known", ""},
	{2123, errs.Invalid, "the nice value is not acceptable", ""},
	{2124, errs.Invalid, "the shortest time is over the time limit", ""},
	{NoEnvironment, errs.Invalid, "the job has no environment", ""},
	{StandbyUseBackup, errs.Unavailable, "the controller that answered is on standby", ""},
	{2132, errs.Invalid, "the number of threads for each core is not acceptable", ""},
	{2135, errs.Invalid, "the container id is not acceptable", ""},
	{2136, errs.Invalid, "the job id is empty", ""},
	{2137, errs.Invalid, "0 is not a job id", ""},
	{2138, errs.Invalid, "a job id can't be negative", ""},
	{2139, errs.Invalid, "the job id is too large", ""},
	{2140, errs.Invalid, "the job id is not a number", ""},
	{2163, errs.Invalid, "the group is not acceptable", ""},
	{2164, errs.Invalid, "the group is not known to the controller", ""},
	{BadUser, errs.Invalid, "the user is not acceptable", ""},
	{UnknownUser, errs.Invalid, "the user is not known to the daemon", ""},
	{2167, errs.Invalid, "the user has no association with the account", ""},
	{2172, errs.Unavailable, "the job could not be signalled", "try again"},
	{2180, errs.Conflict, "the node can't go from its state to this one", ""},
	{2181, errs.Conflict, "the job is in the wrong state for this", ""},
	{4002, errs.Conflict, "the job has already ended", ""},

	{IncompletePacket, errs.BadAnswer, "the daemon received half a message", ""},
	{5004, errs.Timeout, "the daemon waited too long for another one", ""},
	{InvalidCredential, errs.Unauthenticated, "the daemon does not accept the credential", ""},
	{ExpiredCredential, errs.Unauthenticated, "the credential has expired", "get a new one"},
	{6008, errs.Unauthenticated, "the daemon does not know this kind of credential", ""},
	{NoToken, errs.Unavailable, "the controller can't make tokens", "it needs a key: AuthAltParameters=jwt_key="},
	{6010, errs.Denied, "this user may not do anything", ""},
	{Database, errs.Unavailable, "the accounting daemon can't reach its database", ""},
	{7004, errs.Invalid, "a name is not acceptable", ""},
	{7006, errs.TooLarge, "the answer would be too large", "ask for less"},
	{7007, errs.TooLarge, "the question is too wide", "ask for less"},
	{7104, errs.Invalid, "the cluster is not known", ""},
	{8000, errs.Invalid, "the job needs a time limit", ""},
}

var byNumber = func() map[uint32]row {
	m := make(map[uint32]row, len(table))
	for _, r := range table {
		m[r.number] = r
	}
	return m
}()

// Package slurmerror names those of Slurm's error numbers that the handlers
// send, or treat specially.
package slurmerror

// Slurm's error numbers. Their names in Slurm begin with ESLURM_.
const (
	Unspecified           = 0xffffffff // SLURM_ERROR
	InvalidPartition      = 2000       // INVALID_PARTITION_NAME
	NoDefaultPartition    = 2001       // DEFAULT_PARTITION_NOT_SET
	AccessDenied          = 2002       // ACCESS_DENIED
	NoPartitionGroup      = 2003       // JOB_MISSING_REQUIRED_PARTITION_GROUP
	NodesNotInPartition   = 2004       // REQUESTED_NODES_NOT_IN_PARTITION
	InvalidNodeCount      = 2006       // INVALID_NODE_COUNT
	NoScript              = 2009       // JOB_SCRIPT_MISSING
	NoUserID              = 2010       // USER_ID_MISSING, which also means that a user lacks a privilege
	PartitionUnavailable  = 2015       // REQUESTED_PART_CONFIG_UNAVAILABLE
	InvalidJobID          = 2017       // INVALID_JOB_ID
	InvalidNodeName       = 2018       // INVALID_NODE_NAME
	AlreadyDone           = 2021       // ALREADY_DONE
	BadDistribution       = 2023       // BAD_DIST
	BadTaskCount          = 2025       // BAD_TASK_COUNT
	InvalidFeature        = 2029       // INVALID_FEATURE
	NotSupported          = 2036       // NOT_SUPPORTED
	BadDependency         = 2038       // DEPENDENCY
	InvalidTaskMemory     = 2044       // INVALID_TASK_MEMORY
	InvalidAccount        = 2045       // INVALID_ACCOUNT
	InvalidParent         = 2046       // INVALID_PARENT_ACCOUNT
	InvalidLicenses       = 2048       // INVALID_LICENSES
	InvalidTimeLimit      = 2051       // INVALID_TIME_LIMIT
	ReservationAccess     = 2052       // RESERVATION_ACCESS
	InvalidReservation    = 2053       // RESERVATION_INVALID
	InvalidTimeValue      = 2054       // INVALID_TIME_VALUE
	ReservationNotUsable  = 2056       // RESERVATION_NOT_USABLE
	InvalidWCKey          = 2057       // INVALID_WCKEY
	NoWorkDir             = 2063       // MISSING_WORK_DIR
	InvalidQOS            = 2066       // INVALID_QOS
	PartitionNotAvailable = 2070       // PARTITION_NOT_AVAIL
	CircularDependency    = 2071       // CIRCULAR_DEPENDENCY
	QOSThreshold          = 2074       // QOS_THRES
	InvalidArray          = 2081       // INVALID_ARRAY
	InvalidMCSLabel       = 2099       // INVALID_MCS_LABEL
	PartitionDown         = 2101       // PARTITION_DOWN
	NoGroupID             = 2113       // GROUP_ID_MISSING
	InvalidTRES           = 2115       // INVALID_TRES
	InvalidNice           = 2123       // INVALID_NICE
	InvalidTimeMinimum    = 2124       // INVALID_TIME_MIN_LIMIT
	NoEnvironment         = 2127       // ENVIRONMENT_MISSING
	BadThreadsPerCore     = 2132       // BAD_THREAD_PER_CORE
	InvalidContainerID    = 2135       // INVALID_CONTAINER_ID
	EmptyList             = 2162       // EMPTY_LIST
	InvalidGroupID        = 2163       // GROUP_ID_INVALID
	UnknownGroup          = 2164       // GROUP_ID_UNKNOWN
	InvalidUserID         = 2165       // USER_ID_INVALID
	UnknownUser           = 2166       // USER_ID_UNKNOWN
	InvalidAssociation    = 2167       // INVALID_ASSOC
	BadName               = 7004       // BAD_NAME
	InvalidCluster        = 7104       // INVALID_CLUSTER_NAME
	NoTimeLimit           = 8000       // MISSING_TIME_LIMIT
	InvalidQuery          = 9000       // REST_INVALID_QUERY
	MissingField          = 9200       // DATA_PATH_NOT_FOUND
	InvalidValue          = 9202       // DATA_CONV_FAILED
	AmbiguousModify       = 9210       // DATA_AMBIGUOUS_MODIFY
	AmbiguousQuery        = 9211       // DATA_AMBIGUOUS_QUERY
)

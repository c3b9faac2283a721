package handlers

// Slurm's error numbers. Their names in Slurm begin with ESLURM_.
const (
	unspecifiedError      = 0xffffffff // SLURM_ERROR
	invalidPartition      = 2000       // INVALID_PARTITION_NAME
	noDefaultPartition    = 2001       // DEFAULT_PARTITION_NOT_SET
	noPartitionGroup      = 2003       // JOB_MISSING_REQUIRED_PARTITION_GROUP
	nodesNotInPartition   = 2004       // REQUESTED_NODES_NOT_IN_PARTITION
	invalidNodeCount      = 2006       // INVALID_NODE_COUNT
	noScript              = 2009       // JOB_SCRIPT_MISSING
	noUserID              = 2010       // USER_ID_MISSING, which also means that a user lacks a privilege
	partitionUnavailable  = 2015       // REQUESTED_PART_CONFIG_UNAVAILABLE
	invalidJobID          = 2017       // INVALID_JOB_ID
	invalidNodeName       = 2018       // INVALID_NODE_NAME
	badDistribution       = 2023       // BAD_DIST
	badTaskCount          = 2025       // BAD_TASK_COUNT
	invalidFeature        = 2029       // INVALID_FEATURE
	notSupported          = 2036       // NOT_SUPPORTED
	badDependency         = 2038       // DEPENDENCY
	invalidTaskMemory     = 2044       // INVALID_TASK_MEMORY
	invalidAccount        = 2045       // INVALID_ACCOUNT
	invalidParent         = 2046       // INVALID_PARENT_ACCOUNT
	invalidLicenses       = 2048       // INVALID_LICENSES
	invalidTimeLimit      = 2051       // INVALID_TIME_LIMIT
	reservationAccess     = 2052       // RESERVATION_ACCESS
	invalidReservation    = 2053       // RESERVATION_INVALID
	invalidTimeValue      = 2054       // INVALID_TIME_VALUE
	reservationNotUsable  = 2056       // RESERVATION_NOT_USABLE
	invalidWCKey          = 2057       // INVALID_WCKEY
	noWorkDir             = 2063       // MISSING_WORK_DIR
	invalidQOS            = 2066       // INVALID_QOS
	partitionNotAvailable = 2070       // PARTITION_NOT_AVAIL
	circularDependency    = 2071       // CIRCULAR_DEPENDENCY
	qosThreshold          = 2074       // QOS_THRES
	invalidArray          = 2081       // INVALID_ARRAY
	invalidMCSLabel       = 2099       // INVALID_MCS_LABEL
	partitionDown         = 2101       // PARTITION_DOWN
	noGroupID             = 2113       // GROUP_ID_MISSING
	invalidTRES           = 2115       // INVALID_TRES
	invalidNice           = 2123       // INVALID_NICE
	invalidTimeMinimum    = 2124       // INVALID_TIME_MIN_LIMIT
	noEnvironment         = 2127       // ENVIRONMENT_MISSING
	badThreadsPerCore     = 2132       // BAD_THREAD_PER_CORE
	invalidContainerID    = 2135       // INVALID_CONTAINER_ID
	emptyList             = 2162       // EMPTY_LIST
	invalidGroupID        = 2163       // GROUP_ID_INVALID
	unknownGroup          = 2164       // GROUP_ID_UNKNOWN
	invalidUserID         = 2165       // USER_ID_INVALID
	unknownUser           = 2166       // USER_ID_UNKNOWN
	invalidAssociation    = 2167       // INVALID_ASSOC
	invalidCluster        = 7104       // INVALID_CLUSTER_NAME
	noTimeLimit           = 8000       // MISSING_TIME_LIMIT
	invalidQuery          = 9000       // REST_INVALID_QUERY
	missingField          = 9200       // DATA_PATH_NOT_FOUND
	ambiguousModify       = 9210       // DATA_AMBIGUOUS_MODIFY
	ambiguousQuery        = 9211       // DATA_AMBIGUOUS_QUERY
)

package api

import (
	"schedrestd/api/schema"
	"schedrestd/model"
)

// jobBase is a mask for the bits of a job's state that contain the base state.
// The other bits are flags.
const jobBase model.JobState = 0xff

// jobStates are the words for a job's state: one for each base state, and one
// for each flag.
var jobStates = schema.Words("job_state",
	schema.Part("PENDING", jobBase, model.JobPending),
	schema.Part("RUNNING", jobBase, model.JobRunning),
	schema.Part("SUSPENDED", jobBase, model.JobSuspended),
	schema.Part("COMPLETED", jobBase, model.JobComplete),
	schema.Part("CANCELLED", jobBase, model.JobCancelled),
	schema.Part("FAILED", jobBase, model.JobFailed),
	schema.Part("TIMEOUT", jobBase, model.JobTimeout),
	schema.Part("NODE_FAIL", jobBase, model.JobNodeFail),
	schema.Part("PREEMPTED", jobBase, model.JobPreempted),
	schema.Part("BOOT_FAIL", jobBase, model.JobBootFail),
	schema.Part("DEADLINE", jobBase, model.JobDeadline),
	schema.Part("OUT_OF_MEMORY", jobBase, model.JobOutOfMemory),
	schema.Bit("LAUNCH_FAILED", model.JobLaunchFailed),
	schema.Bit("REQUEUED", model.JobRequeued),
	schema.Bit("REQUEUE_HOLD", model.JobRequeueHold),
	schema.Bit("SPECIAL_EXIT", model.JobSpecialExit),
	schema.Bit("RESIZING", model.JobResizing),
	schema.Bit("CONFIGURING", model.JobConfiguring),
	schema.Bit("COMPLETING", model.JobCompleting),
	schema.Bit("STOPPED", model.JobStopped),
	schema.Bit("RECONFIG_FAIL", model.JobReconfigFail),
	schema.Bit("POWER_UP_NODE", model.JobPowerUpNode),
	schema.Bit("REVOKED", model.JobRevoked),
	schema.Bit("REQUEUE_FED", model.JobRequeueFed),
	schema.Bit("RESV_DEL_HOLD", model.JobResvDelHold),
	schema.Bit("SIGNALING", model.JobSignaling),
	schema.Bit("STAGE_OUT", model.JobStageOut),
	schema.Bit("EXPEDITING", model.JobExpediting, schema.Since(V44)),
)

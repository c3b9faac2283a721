package client

import (
	"context"
	"errors"
	"strings"

	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Submit hands in a batch job, once. When it was sent and no answer came, the error's
// Code is errs.OutcomeUnknown: the job may or may not be in the queue.
func (c *Client) Submit(ctx context.Context, cred model.Credential, desc *model.JobDesc) (*model.Submitted, error) {
	var answer message.SubmitResponse
	r := request{kind: message.RequestSubmitBatchJob, body: &message.SubmitRequest{Desc: withDefaults(*desc)}}
	if err := c.query(ctx, cred, r, message.ResponseSubmitBatchJob, &answer); err != nil {
		return nil, byPolicy(err)
	}
	return &answer.Submitted, nil
}

// Bits of a job's flags that say that the submission left the choice to the
// controller. Members of a federation read them.
const (
	defaultAccount   uint64 = 1 << 25
	defaultPartition uint64 = 1 << 26
	defaultQOS       uint64 = 1 << 27
	defaultWCKey     uint64 = 1 << 28
)

// withDefaults sets the flags for what a submission does not name, as Slurm's
// own clients do, and a job's memory to stay as it is: slurmctld takes the usual
// number for "not set" as a time in minutes.
func withDefaults(desc model.JobDesc) model.JobDesc {
	for flag, value := range map[uint64]string{defaultAccount: desc.Account, defaultPartition: desc.Partition, defaultQOS: desc.QOS, defaultWCKey: desc.WCKey} {
		if value == "" {
			desc.Flags |= flag
		}
	}
	for _, o := range []*model.Opt[uint16]{&desc.MemUpdateDelay, &desc.MemUpdateMargin} {
		if !o.Set {
			*o = model.Some[uint16](0)
		}
	}
	return desc
}

// allWithDefaults calls withDefaults for each component of a job.
func allWithDefaults(descs []model.JobDesc) (list []model.JobDesc) {
	for _, desc := range descs {
		list = append(list, withDefaults(desc))
	}
	return list
}

// byPolicy blames the job when a controller gives no reason of its own: a
// site's submit policy refuses jobs so, and its text, if it has any, is meant
// for the submitting user.
func byPolicy(err error) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Number != fault.Unspecified {
		return err
	}
	refused := *e
	refused.Detail = "" // the policy's words name no field
	refused.Kind, refused.Message = errs.Invalid, "the site's submit policy refuses the job"
	if _, text, said := strings.Cut(e.Message, ": "); said {
		refused.Message = "the site's submit policy refuses: " + text
	}
	return &refused
}

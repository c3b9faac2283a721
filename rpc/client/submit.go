package client

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Submit submits a batch job. It never repeats the request. If the request was
// sent but not answered, the job may or may not be queued, and the error's Code
// is errs.OutcomeUnknown.
func (c *Client) Submit(ctx context.Context, cred model.Credential, desc *model.JobDesc) (*model.Submitted, error) {
	var answer message.SubmitResponse
	r := request{kind: message.RequestSubmitBatchJob, body: &message.SubmitRequest{Desc: withDefaults(*desc)}}
	if err := c.query(ctx, cred, r, message.ResponseSubmitBatchJob, &answer); err != nil {
		return nil, policyError(err)
	}
	return &answer.Submitted, nil
}

// Estimate returns when and where the controller would start a job, or an error if
// it would refuse the job. It submits nothing. The components of a heterogeneous
// job are estimated one after the other, as Slurm's own clients do, so the job may
// start later.
func (c *Client) Estimate(ctx context.Context, cred model.Credential, descs []model.JobDesc) (*model.Estimate, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	var sum model.Estimate
	var nodes []string
	for i := range descs {
		answer, err := c.estimate(ctx, cred, &descs[i])
		if err != nil {
			return nil, policyError(err)
		}
		if answer.Nodes != "" {
			nodes = append(nodes, answer.Nodes)
		}
		sum.Start = max(sum.Start, answer.Start)
		sum.Partition = cmp.Or(sum.Partition, answer.Partition)
		sum.Processors += answer.Processors
		sum.Preempted = append(sum.Preempted, answer.Preempted...)
		sum.UserMessage = cmp.Or(sum.UserMessage, answer.UserMessage)
	}
	sum.Nodes = strings.Join(nodes, ",")
	return &sum, nil
}

// estimate estimates the start of one component, which waits for its turn among the
// users.
func (c *Client) estimate(ctx context.Context, cred model.Credential, desc *model.JobDesc) (*message.EstimateResponse, error) {
	limited, cancel := halveDeadline(ctx, true)
	defer cancel()
	place, err := c.estimates.Acquire(limited, holderOf(cred))
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "server busy: limit of concurrent estimates reached")
	}
	defer place.Release()
	answer := new(message.EstimateResponse)
	r := request{kind: message.RequestEstimate, body: &message.SubmitRequest{Desc: withDefaults(*desc)}, repeatable: true, alone: true}
	return answer, c.query(ctx, cred, r, message.ResponseEstimate, answer)
}

// Bits of a job's flags. Each of them means that the controller chose a value
// that the submission did not set. Members of a federation read these bits.
const (
	defaultAccount   uint64 = 1 << 25
	defaultPartition uint64 = 1 << 26
	defaultQOS       uint64 = 1 << 27
	defaultWCKey     uint64 = 1 << 28
)

// withDefaults sets the flags for the fields that are missing from a
// submission. Slurm's own clients set the same flags. withDefaults also sets
// MemUpdateDelay and MemUpdateMargin to 0 if they are not set, so that
// slurmctld does not change the job's memory. slurmctld would interpret the
// usual number for "not set" as a time in minutes.
func withDefaults(desc model.JobDesc) model.JobDesc {
	for flag, value := range map[uint64]model.Text{
		defaultAccount: desc.Account, defaultPartition: desc.Partition, defaultQOS: desc.QOS, defaultWCKey: desc.WCKey,
	} {
		if value == "" {
			desc.Flags |= flag
		}
	}
	if !desc.AllocSID.Set { // slurmctld would show the number for "not set"
		desc.AllocSID = model.Some[uint32](0)
	}
	for _, o := range []*model.Opt[uint16]{&desc.MemUpdateDelay, &desc.MemUpdateMargin} {
		if !o.Set {
			*o = model.Some[uint16](0)
		}
	}
	return desc
}

// allWithDefaults calls withDefaults for each component of a heterogeneous job.
func allWithDefaults(descs []model.JobDesc) (list []model.JobDesc) {
	for _, desc := range descs {
		list = append(list, withDefaults(desc))
	}
	return list
}

// policyError replaces fault.Unspecified with an error that says who refused
// the job. Controllers send fault.Unspecified if the site's submit policy
// refuses a job or a change. That error gives no reason, but it may contain a
// text that the policy added for the user. The new error includes this text.
// Without a text, the policy is only the most likely reason. policyError returns
// other errors unchanged.
func policyError(err error) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Number != fault.Unspecified {
		return err
	}
	refused := *e
	refused.Detail = "" // the policy's text names no field
	refused.Kind, refused.Message = errs.Invalid, noReason
	if _, text, found := strings.Cut(e.Message, ": "); found {
		refused.Message = "the site's submit policy refuses: " + text
	}
	return &refused
}

// noReason is the message of an error for which the controller gives no reason.
const noReason = "the controller gives no reason; perhaps the site's submit policy refuses the job"

package client_test

import (
	"context"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// TestAllocate checks that a pending job is polled until it has its resources,
// and that it is cancelled when its client stops waiting.
func TestAllocate(t *testing.T) {
	t.Parallel()
	has := &message.Allocation{Allocation: model.Allocation{StepID: model.StepID{JobID: 7}, NodeCount: 1, Nodes: "n1"}}
	waits := &message.Allocation{Allocation: model.Allocation{StepID: model.StepID{JobID: 7}, UserMessage: "later"}}
	for _, tt := range []struct {
		name    string
		first   *message.Allocation
		later   error // answer to every poll except the second
		patient time.Duration
		kind    errs.Kind
		ended   bool
	}{
		{name: "immediately", first: has, patient: time.Minute},
		{name: "after a while", first: waits, later: fault.Of(fault.JobPending, ""), patient: time.Minute},
		{name: "cancelled", first: waits, later: fault.Of(fault.AlreadyDone, ""), patient: time.Minute, kind: errs.Conflict},
		{name: "too late", first: waits, later: fault.Of(fault.JobPending, ""), patient: 100 * time.Millisecond, kind: errs.Unavailable, ended: true},
		{name: "the credential is refused", first: waits, later: fault.Of(fault.Authentication, ""), patient: time.Minute, kind: errs.BadAnswer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := controller()
			asked, ended := 0, false
			s.Handlers[message.RequestAllocation] = decoded(message.ResponseAllocation, func(*message.SubmitRequest) (message.Body, error) { return tt.first, nil })
			s.Handlers[message.RequestAllocationInfo] = decoded(message.ResponseAllocationInfo, func(r *message.AllocationInfoRequest) (message.Body, error) {
				if asked++; r.JobID != model.Some[uint32](7) {
					t.Errorf("asked for job %v", r.JobID)
				}
				if asked == 2 {
					return has, nil
				}
				return nil, tt.later
			})
			s.Handlers[message.RequestCompleteAllocation] = decoded(message.ResponseRC, func(r *message.CompleteAllocation) (message.Body, error) {
				ended = r.JobID == model.Some[uint32](7)
				return &message.RC{}, nil
			})
			c := client.New(client.Config{Controllers: []client.Address{serve(t, "tcp", s)}})
			ctx, cancel := context.WithTimeout(context.Background(), tt.patient)
			defer cancel()
			job, err := c.Allocate(ctx, ann, []model.JobDesc{{Name: "a"}})
			if errs.KindOf(err) != tt.kind && (err != nil || tt.kind != 0) || err == nil && job.StepID.JobID != 7 || ended != tt.ended {
				t.Errorf("got %+v, %v; ended: %v", job, err, ended)
			}
		})
	}
}

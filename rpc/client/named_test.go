package client_test

import (
	"context"
	"errors"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// TestNamed checks the search for one element of a list. If no name matches,
// the error must be a 404. If the controller answers that nothing has changed,
// the caller must get that answer.
func TestNamed(t *testing.T) {
	t.Parallel()
	s := records()
	s.Handlers[message.RequestPartitionInfo] = decoded(message.ResponsePartitionInfo, func(r *message.PartitionInfoRequest) (message.Body, error) {
		if r.LastUpdate == 50 {
			return nil, fault.Of(fault.NoChange, "")
		}
		return &message.PartitionInfo{LastUpdate: 50, Partitions: codec.Stream[model.Partition]{List: []model.Partition{
			{Name: "Batch", TotalNodes: 1}, {Name: "batch", TotalNodes: 2}, {Name: "BATCH", TotalNodes: 3}, {Name: "Long", TotalNodes: 4}}}}, nil
	})
	c := client.New(client.Config{Controllers: []client.Address{serve(t, "tcp", s)}})
	ctx := context.Background()
	for name, want := range map[string]uint32{"batch": 2, "Batch": 1, "bAtch": 1, "long": 4} {
		p, last, err := c.Partition(ctx, ann, name, model.Query{})
		if err != nil || p.TotalNodes != want || last != 50 {
			t.Errorf("%s: %+v %d %v", name, p, last, err)
		}
	}
	if r, last, err := c.Reservation(ctx, ann, "R1", model.Query{}); err != nil || r.Name != "r1" || len(r.CoreSpecializations) != 1 || last != 50 {
		t.Errorf("reservation: %+v %d %v", r, last, err)
	}
	numbered := func(what string, err error, kind errs.Kind, number int) {
		t.Helper()
		if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != kind || e.Number != number {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, missing := range []string{"none", ""} {
		_, _, err := c.Partition(ctx, ann, missing, model.Query{})
		numbered("partition "+missing, err, errs.NotFound, fault.InvalidPartition)
		_, _, err = c.Reservation(ctx, ann, missing, model.Query{})
		numbered("reservation "+missing, err, errs.NotFound, fault.InvalidReservation)
	}
	_, _, err := c.Partition(ctx, ann, "batch", model.Query{Since: 50})
	numbered("partition since", err, errs.Unchanged, fault.NoChange)
	_, _, err = c.Reservation(ctx, ann, "r1", model.Query{Since: 50})
	numbered("reservation since", err, errs.Unchanged, fault.NoChange)
}

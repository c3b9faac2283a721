package client_test

import (
	"context"
	"strings"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// TestLostValues checks that a change is refused, and not sent, if the
// controller's protocol can't carry one of its values.
func TestLostValues(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	exclusiveTopo := &model.PartitionUpdate{Name: "p", Flags: 1 << 16}
	for _, tt := range []struct {
		name   string
		oldest codec.Version // the first version that carries the value
		field  string
		change func(*client.Client) error
	}{
		{"a topology", codec.V2505, "topology_str", func(c *client.Client) error {
			return c.UpdateNodes(ctx, ann, &model.NodeUpdate{Names: "n1", Topology: "t:s1"})
		}},
		{"a flag", codec.V2405, "flags", func(c *client.Client) error { return c.UpdatePartition(ctx, ann, exclusiveTopo) }},
		{"the tres of a reservation", codec.V2311, "tres_str", func(c *client.Client) error {
			return c.UpdateReservation(ctx, ann, &model.ReservationUpdate{Name: "r", TRES: "cpu=4"})
		}},
		{"a change of a job", codec.V2405, "segment_size", func(c *client.Client) error {
			_, err := c.UpdateJob(ctx, ann, "12", &model.JobDesc{SegmentSize: model.Some[uint16](4)})
			return err
		}},
		{"a submission", codec.V2605, "container_type", func(c *client.Client) error {
			_, err := c.Submit(ctx, ann, &model.JobDesc{Script: "x", ContainerType: "oci"})
			return err
		}},
		{"extra, with which 22.05 crashes", codec.V2302, "extra", func(c *client.Client) error {
			_, err := c.Submit(ctx, ann, &model.JobDesc{Script: "x", Extra: "a"})
			return err
		}},
		{"a dry run", codec.V2605, "container_type", func(c *client.Client) error {
			_, err := c.Estimate(ctx, ann, []model.JobDesc{{Script: "x", ContainerType: "oci"}})
			return err
		}},
		{"resources with another name before 23.11", codec.Oldest, "", func(c *client.Client) error {
			_, err := c.Submit(ctx, ann, &model.JobDesc{Script: "x", TRESPerJob: "gres/gpu:a:2,gres/gpu", TRESBind: "gres/gpu:single:1"})
			return err
		}},
		{"an ordinary submission", codec.Oldest, "", func(c *client.Client) error {
			_, err := c.Submit(ctx, ann, &model.JobDesc{Script: "x", Environment: []string{"A=b"}})
			return err
		}},
	} {
		for v := codec.Oldest; v <= codec.Newest; v++ {
			s, sent := controller(), 0
			s.Newest = v
			s.Handlers[message.RequestUpdateNode] = decoded(message.ResponseRC, func(*message.NodeUpdate) (message.Body, error) { sent++; return &message.RC{}, nil })
			s.Handlers[message.RequestUpdatePartition] = decoded(message.ResponseRC, func(*message.PartitionUpdate) (message.Body, error) { sent++; return &message.RC{}, nil })
			s.Handlers[message.RequestUpdateReservation] = decoded(message.ResponseRC, func(*message.ReservationUpdate) (message.Body, error) { sent++; return &message.RC{}, nil })
			s.Handlers[message.RequestUpdateJob] = decoded(message.ResponseRC, func(*message.SubmitRequest) (message.Body, error) { sent++; return &message.RC{}, nil })
			s.Handlers[message.RequestSubmitBatchJob] = decoded(message.ResponseSubmitBatchJob, func(*message.SubmitRequest) (message.Body, error) { sent++; return &message.SubmitResponse{}, nil })
			s.Handlers[message.RequestEstimate] = decoded(message.ResponseEstimate, func(*message.SubmitRequest) (message.Body, error) { sent++; return &message.EstimateResponse{}, nil })
			err := tt.change(client.New(client.Config{Controllers: []client.Address{serve(t, "tcp", s)}}))
			switch {
			case v >= tt.oldest && (err != nil || sent != 1):
				t.Errorf("%s in protocol %d: sent %d times, %v", tt.name, v, sent, err)
			case v < tt.oldest && (errs.KindOf(err) != errs.Unsupported || !strings.Contains(err.Error(), tt.field) || sent > 0):
				t.Errorf("%s in protocol %d: sent %d times, %v", tt.name, v, sent, err)
			}
		}
	}
}

package client_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// TestUpdateJob checks that the change names the job both by number and as
// text, and contains only the fields that were set. If the tasks of an array
// have different results, UpdateJob must return the results.
func TestUpdateJob(t *testing.T) {
	t.Parallel()
	partial := &message.JobArrayErrors{Errors: []message.JobArrayError{{Code: 2021, JobIDs: "12_[1-2]"}, {JobIDs: "12_3"}}}
	nothing := &message.JobArrayErrors{Errors: []message.JobArrayError{{Code: 2021, JobIDs: "12_[1-2]"}}}
	for _, tt := range []struct {
		name   string
		kind   message.Type
		answer message.Body
		err    error
		want   []string
		number int
	}{
		{name: "done", kind: message.ResponseRC, answer: &message.RC{}},
		{name: "done, with a text", kind: message.ResponseRCMessage, answer: &message.RCMessage{Message: "as you like"}},
		{name: "refused", kind: message.ResponseRC, err: fault.Of(fault.AccessDenied, ""), number: fault.AccessDenied},
		{name: "some tasks", kind: message.ResponseJobArrayErrors, answer: partial, want: []string{"12_[1-2] Job/step already completing or completed", "12_3 No error"}},
		{name: "no task", kind: message.ResponseJobArrayErrors, answer: nothing, number: 2021},
	} {
		for v := codec.Oldest; v <= codec.Newest; v++ {
			s := controller()
			s.Newest = v
			s.Handlers[message.RequestUpdateJob] = decoded(tt.kind, func(r *message.SubmitRequest) (message.Body, error) {
				want := model.JobDesc{JobID: model.Some[uint32](12), JobIDText: "12_3", Comment: "c", Priority: model.Infinite[uint32]()}
				if d := cmp.Diff(want, r.Desc); d != "" {
					t.Errorf("protocol %d: %s", v, d)
				}
				return tt.answer, tt.err
			})
			c := client.New(client.Config{Controllers: []client.Address{serve(t, "tcp", s)}})
			results, err := c.UpdateJob(context.Background(), ann, "12_3", &model.JobDesc{Comment: "c", Release: true})
			var got []string
			for _, r := range results {
				got = append(got, r.Tasks+" "+r.Reason)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("%s: %s", tt.name, d)
			}
			if e, _ := err.(*errs.Error); (e == nil) != (tt.number == 0) || e != nil && e.Number != tt.number {
				t.Errorf("%s, protocol %d: got %v", tt.name, v, err)
			}
		}
	}
}

// TestUpdateJobOnce checks a change that the controller may have received. It
// must not be repeated, and the error must say that the outcome is unknown.
func TestUpdateJobOnce(t *testing.T) {
	t.Parallel()
	p := script(t, "ctl", func(nc net.Conn, request message.Header) {
		if request.Type == message.RequestPing {
			rc(nc, request.Version, 0)
		}
	})
	c := client.New(client.Config{Controllers: []client.Address{p.Address}})
	_, err := c.UpdateJob(context.Background(), ann, "12", &model.JobDesc{Comment: "c"})
	if code(err) != errs.OutcomeUnknown || p.count(message.RequestUpdateJob) != 1 {
		t.Errorf("got %v; sent %d times", err, p.count(message.RequestUpdateJob))
	}
}

// TestUpdateJobWithoutReason checks the error for a controller that refuses a
// change and gives no reason. It may not claim more than is known.
func TestUpdateJobWithoutReason(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change model.JobDesc
		want   string // message and detail
	}{
		{name: "any change", change: model.JobDesc{Comment: "c"}, want: "the controller gives no reason; perhaps the site's submit policy refuses the job, "},
		{name: "clusters", change: model.JobDesc{Clusters: "c"}, want: "clusters: the job is in no federation, or the site's submit policy refuses the change, clusters: the job is in no federation, or the site's submit policy refuses the change"},
		{name: "features of clusters", change: model.JobDesc{ClusterFeatures: "f"}, want: "cluster_constraint: the job is in no federation, or the site's submit policy refuses the change, cluster_constraint: the job is in no federation, or the site's submit policy refuses the change"},
	} {
		s := controller()
		s.Handlers[message.RequestUpdateJob] = decoded(message.ResponseRC, func(*message.SubmitRequest) (message.Body, error) {
			return nil, &errs.Error{Kind: errs.Invalid, Number: 1<<32 - 1}
		})
		c := client.New(client.Config{Controllers: []client.Address{serve(t, "tcp", s)}})
		_, err := c.UpdateJob(context.Background(), ann, "12", &tt.change)
		if e, _ := err.(*errs.Error); e == nil || e.Kind != errs.Invalid || e.Number != fault.Unspecified || e.Message+", "+e.Detail != tt.want {
			t.Errorf("%s: %#v", tt.name, err)
		}
	}
}

// TestUnreachableNumber checks that only the error about the accounting daemon
// has Slurm's number for an unavailable database.
func TestUnreachableNumber(t *testing.T) {
	t.Parallel()
	gone := []client.Address{{Name: "gone", Network: "unix", Address: filepath.Join(t.TempDir(), "none")}}
	cfg := client.Config{Controllers: gone, Accounting: gone}
	for _, tt := range []struct {
		err    error
		number int
	}{
		{client.NewAccounting(cfg).Verify(context.Background(), ann), fault.Database},
		{client.New(cfg).Verify(context.Background(), ann), 0},
	} {
		if e, _ := tt.err.(*errs.Error); e == nil || e.Kind != errs.Unavailable || e.Number != tt.number {
			t.Errorf("got %#v, want number %d", tt.err, tt.number)
		}
	}
}

package client_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// decoded returns a handler that decodes each request into a T, and answers
// with the result of the function reply.
func decoded[T any, B interface {
	*T
	message.Body
}](t message.Type, reply func(B) (message.Body, error)) server.Handler {
	return func(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
		req := B(new(T))
		if err := r.Decode(req); err != nil {
			return 0, nil, err
		}
		answer, err := reply(req)
		return t, answer, err
	}
}

// records returns a controller with two objects of each type.
func records() *server.Server {
	s := controller()
	s.Handlers[message.RequestReservationInfo] = decoded(message.ResponseReservationInfo, func(r *message.ReservationInfoRequest) (message.Body, error) {
		if r.LastUpdate == 50 {
			return nil, fault.Of(fault.NoChange, "")
		}
		return &message.ReservationInfo{LastUpdate: 50, Reservations: codec.Stream[model.Reservation]{List: []model.Reservation{
			{Name: "r1", CoreSpecializations: []model.CoreSpecialization{{Node: "n1", Cores: "0-3"}}}, {Name: "r2"}}}}, nil
	})
	s.Handlers[message.RequestLicenseInfo] = decoded(message.ResponseLicenseInfo, func(r *message.LicenseInfoRequest) (message.Body, error) {
		if r.LastUpdate == 50 {
			return nil, fault.Of(fault.NoChange, "")
		}
		if r.ShowFlags != uint16(model.ShowAll) {
			return nil, errs.New(errs.Internal, "flags %d", r.ShowFlags)
		}
		return &message.LicenseInfo{LastUpdate: 50, Licenses: codec.Stream[model.License]{List: []model.License{{Name: "l1", Total: 5}, {Name: "l2", Remote: true}}}}, nil
	})
	s.Handlers[message.RequestStats] = decoded(message.ResponseStats, func(r *message.StatsRequest) (message.Body, error) {
		if r.Command != message.StatsGet {
			return nil, errs.New(errs.Internal, "command %d", r.Command)
		}
		return &message.ControllerStats{ControllerStats: model.ControllerStats{JobsSubmitted: 3,
			RPCTypes: []model.RPCTypeStats{{Type: 2003, Count: 4, Time: 5}}}}, nil
	})
	s.Handlers[message.RequestShares] = decoded(message.ResponseShares, func(r *message.SharesRequest) (message.Body, error) {
		answer := &message.Shares{TRESNames: []string{"cpu", "mem"}, TotalShares: 9}
		for _, u := range r.Users {
			answer.Shares.List = append(answer.Shares.List, model.Share{Name: u, User: true, TRESUsage: []float64{1, 2}})
		}
		return answer, nil
	})
	s.Handlers[message.RequestPriorities] = func(context.Context, *server.Request) (message.Type, message.Body, error) {
		return message.ResponsePriorities, &message.Priorities{Jobs: codec.Stream[model.JobPriority]{List: []model.JobPriority{{StepID: model.StepID{JobID: 7}, Age: 1.5}, {Direct: 3}}}}, nil
	}
	s.Handlers[message.RequestJobState] = decoded(message.ResponseJobState, func(r *message.JobStateRequest) (message.Body, error) {
		answer := &message.JobStates{}
		for _, j := range r.Jobs {
			answer.Jobs.List = append(answer.Jobs.List, model.JobStateEntry{JobID: j.JobID, State: model.JobRunning})
		}
		return answer, nil
	})
	s.Handlers[message.RequestKillJobs] = decoded(message.ResponseKillJobs, func(r *message.KillJobs) (message.Body, error) {
		answer := &message.KillJobsResponse{}
		for _, id := range r.Jobs {
			result := model.KillResult{ID: model.SelectedStep{Step: model.StepID{JobID: 7}}, Sibling: id}
			if id != "7" || r.Signal != 9 || r.State.Set {
				result.Code = fault.InvalidJobID
			}
			answer.Jobs.List = append(answer.Jobs.List, result)
		}
		return answer, nil
	})
	return s
}

// collect returns a function that appends the name of the record in its
// argument to *names.
func collect[T any](names *[]string, name func(*T) string) func(*T) error {
	return func(v *T) error { *names = append(*names, name(v)); return nil }
}

func TestRecords(t *testing.T) {
	t.Parallel()
	for v := codec.Oldest; v <= codec.Newest; v++ {
		t.Run(v.Release(), func(t *testing.T) {
			s := records()
			s.Newest = v
			c := client.New(client.Config{Controllers: []client.Address{serve(t, "tcp", s)}})
			askRecords(t, c)
			askByVersion(t, c, v)
		})
	}
}

func askRecords(t *testing.T, c *client.Client) {
	ctx, stop := context.Background(), errors.New("stop")
	var names []string
	updated, err := c.Reservations(ctx, ann, model.Query{}, collect(&names, func(r *model.Reservation) string { return r.Name }))
	if err != nil || updated != 50 || !cmp.Equal([]string{"r1", "r2"}, names) {
		t.Errorf("Reservations: %q, %d, %v", names, updated, err)
	}
	if _, err := c.Reservations(ctx, ann, model.Query{Since: 50}, nil); errs.KindOf(err) != errs.Unchanged {
		t.Errorf("Reservations, unchanged: %v", err)
	}
	if _, err := c.Reservations(ctx, ann, model.Query{}, func(*model.Reservation) error { return stop }); err != stop {
		t.Errorf("Reservations, stopped: %v", err)
	}
	names = nil
	updated, err = c.Licenses(ctx, ann, model.Query{Flags: model.ShowAll}, collect(&names, func(l *model.License) string { return l.Name }))
	if err != nil || updated != 50 || !cmp.Equal([]string{"l1", "l2"}, names) {
		t.Errorf("Licenses: %q, %d, %v", names, updated, err)
	}
	if _, err := c.Licenses(ctx, ann, model.Query{Since: 50}, nil); errs.KindOf(err) != errs.Unchanged {
		t.Errorf("Licenses, unchanged: %v", err)
	}
	stats, err := c.Stats(ctx, ann)
	if err != nil || stats.JobsSubmitted != 3 || !cmp.Equal([]model.RPCTypeStats{{Type: 2003, Count: 4, Time: 5}}, stats.RPCTypes) {
		t.Errorf("Stats: %+v, %v", stats, err)
	}
	names = nil
	totals, err := c.Shares(ctx, ann, nil, []string{"ann", "bob"}, func(tres []string, s *model.Share) error {
		if len(tres) != 2 || len(s.TRESUsage) != 2 || !s.User {
			t.Errorf("share %+v of %q", s, tres)
		}
		names = append(names, s.Name)
		return nil
	})
	if err != nil || totals.Shares != 9 || !cmp.Equal([]string{"cpu", "mem"}, totals.TRESNames) || !cmp.Equal([]string{"ann", "bob"}, names) {
		t.Errorf("Shares: %q, %+v, %v", names, totals, err)
	}
	if _, err := c.Shares(ctx, ann, nil, []string{"ann"}, func([]string, *model.Share) error { return stop }); err != stop {
		t.Errorf("Shares, stopped: %v", err)
	}
	if _, err := c.Stats(ctx, model.Credential{Token: "forged"}); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("Stats, forged: %v", err)
	}
}

// askByVersion makes the requests that only newer releases support. It checks
// that the client does not send such a request to an older release.
func askByVersion(t *testing.T, c *client.Client, v codec.Version) {
	ctx := context.Background()
	var states []model.JobStateEntry
	err := c.JobStates(ctx, ann, []model.JobSelection{{JobID: 7}, {JobID: 8}}, func(j *model.JobStateEntry) error {
		states = append(states, *j)
		return nil
	})
	want := []model.JobStateEntry{{JobID: 7, State: model.JobRunning}, {JobID: 8, State: model.JobRunning}}
	if v < codec.V2311 {
		if errs.KindOf(err) != errs.Unsupported || states != nil {
			t.Errorf("JobStates: %+v, %v", states, err)
		}
	} else if diff := cmp.Diff(want, states, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("JobStates: %v (want -, got +):\n%s", err, diff)
	}
	var priorities []float64
	err = c.Priorities(ctx, ann, func(p *model.JobPriority) error {
		priorities = append(priorities, p.Total(), p.Age)
		return nil
	})
	if v < codec.V2302 {
		if errs.KindOf(err) != errs.Unsupported || priorities != nil {
			t.Errorf("Priorities: %v, %v", priorities, err)
		}
	} else if err != nil || !cmp.Equal([]float64{1.5, 1.5, 3, 0}, priorities) {
		t.Errorf("Priorities: %v, %v", priorities, err)
	}
	codes := map[string]uint32{}
	results, err := c.KillJobs(ctx, ann, &model.KillJobs{Jobs: []string{"7", "8"}, Signal: 9})
	for _, r := range results {
		codes[r.Sibling] = r.Code
	}
	if v < codec.V2405 {
		if errs.KindOf(err) != errs.Unsupported || len(codes) > 0 {
			t.Errorf("KillJobs: %v, %v", codes, err)
		}
	} else if err != nil || !cmp.Equal(map[string]uint32{"7": 0, "8": fault.InvalidJobID}, codes) {
		t.Errorf("KillJobs: %v, %v", codes, err)
	}
}

// TestKillJobsOnce checks a KillJobs request that was sent but not answered.
// The client must not send the request again.
func TestKillJobsOnce(t *testing.T) {
	t.Parallel()
	act := func(nc net.Conn, request message.Header) {
		if request.Type == message.RequestPing {
			rc(nc, request.Version, 0)
		}
	}
	primary, backup := script(t, "ctl", act), script(t, "bak", act)
	c := client.New(client.Config{Controllers: []client.Address{primary.Address, backup.Address}, Timeout: 30 * time.Second})
	_, err := c.KillJobs(context.Background(), ann, &model.KillJobs{Jobs: []string{"7"}, Signal: 9})
	if code(err) != errs.OutcomeUnknown {
		t.Errorf("got %v", err)
	}
	if n := primary.count(message.RequestKillJobs) + backup.count(message.RequestKillJobs); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

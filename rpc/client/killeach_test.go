package client_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// killers returns a controller that answers KillJobs' message with results().
// If results is nil, the controller does not know that message. The controller
// counts Kill's messages in *one, and KillJobs' messages in *many.
func killers(results func() ([]model.KillResult, error)) (s *server.Server, one, many *int) {
	s, one, many = controller(), new(int), new(int)
	s.Handlers[message.RequestKillJob] = decoded(message.ResponseRC, func(r *message.KillJob) (message.Body, error) {
		*one++
		if r.JobText != "12_3" || r.Signal != 10 || r.Flags != 8 {
			return nil, errs.New(errs.Internal, "%+v", r)
		}
		return &message.RC{}, nil
	})
	if results != nil {
		s.Handlers[message.RequestKillJobs] = decoded(message.ResponseKillJobs, func(r *message.KillJobs) (message.Body, error) {
			*many++
			if !cmp.Equal(r.KillJobs, model.KillJobs{Jobs: []string{"12_3"}, Signal: 10, Flags: 8 | model.KillVerbose}) {
				return nil, errs.New(errs.Internal, "%+v", r)
			}
			list, err := results()
			answer := &message.KillJobsResponse{}
			answer.Jobs.List = list
			return answer, err
		})
	}
	return s, one, many
}

func TestKillEach(t *testing.T) {
	t.Parallel()
	list := func(results ...model.KillResult) func() ([]model.KillResult, error) {
		return func() ([]model.KillResult, error) { return results, nil }
	}
	done, ended := model.KillResult{}, model.KillResult{Code: fault.AlreadyDone}
	unknown, denied := model.KillResult{Code: fault.InvalidJobID}, model.KillResult{Code: fault.AccessDenied}
	alreadyDone, unknownJob, noAccess := fault.Of(fault.AlreadyDone, "").Message, fault.Of(fault.InvalidJobID, "").Message, fault.Of(fault.AccessDenied, "").Message
	for _, tt := range []struct {
		name      string
		results   func() ([]model.KillResult, error)
		verbose   bool
		want      []string // the reasons
		kind      errs.Kind
		one, many int
	}{
		{name: "no results", results: list(), many: 1},
		{name: "signalled", results: list(done), many: 1},
		{name: "signalled, verbose", results: list(done), verbose: true, want: []string{"No error"}, many: 1},
		{name: "one that failed", results: list(unknown), want: []string{unknownJob}, kind: errs.NotFound, many: 1},
		{name: "one that failed, verbose", results: list(unknown), verbose: true, want: []string{unknownJob}, kind: errs.NotFound, many: 1},
		{name: "one task of an array has ended", results: list(ended, done), want: []string{alreadyDone}, many: 1},
		{name: "several tasks have ended", results: list(ended, done, ended), want: []string{alreadyDone, alreadyDone}, many: 1},
		{name: "several tasks have ended, verbose", results: list(ended, done, ended), verbose: true, want: []string{alreadyDone, "No error", alreadyDone}, many: 1},
		{name: "all tasks have ended", results: list(ended, ended), want: []string{alreadyDone, alreadyDone}, kind: errs.Conflict, many: 1},
		{name: "ended or of another user", results: list(ended, denied, ended), want: []string{alreadyDone, noAccess, alreadyDone}, kind: errs.Denied, many: 1},
		{name: "refused", results: func() ([]model.KillResult, error) { return nil, fault.Of(fault.AccessDenied, "") }, kind: errs.Denied, many: 1},
		{name: "unknown message", one: 1},
		{name: "of another cluster", results: list(model.KillResult{Code: fault.NotSelected}), one: 1, many: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, one, many := killers(tt.results)
			c := client.New(client.Config{Controllers: []client.Address{serve(t, "tcp", s)}})
			flags := model.KillFullJob
			if tt.verbose {
				flags |= model.KillVerbose
			}
			results, err := c.KillEach(context.Background(), ann, "12_3", 10, flags)
			if e, failed := errors.AsType[*errs.Error](err); (tt.kind != 0) != failed || failed && e.Kind != tt.kind {
				t.Errorf("got %v", err)
			}
			var reasons []string
			for _, r := range results {
				reasons = append(reasons, r.Reason)
			}
			if d := cmp.Diff(tt.want, reasons); d != "" {
				t.Error(d)
			}
			if *one != tt.one || *many != tt.many {
				t.Errorf("asked %d times for one, %d times for many", *one, *many)
			}
		})
	}
}

// TestKillEachOnce checks a signal that the controller may have received in
// KillJobs' message. The signal must not be sent again in Kill's message.
func TestKillEachOnce(t *testing.T) {
	t.Parallel()
	p := script(t, "ctl", func(nc net.Conn, request message.Header) {
		if request.Type == message.RequestPing {
			rc(nc, request.Version, 0)
		}
	})
	c := client.New(client.Config{Controllers: []client.Address{p.Address}})
	_, err := c.KillEach(context.Background(), ann, "12_3", 10, model.KillFullJob)
	if code(err) != errs.OutcomeUnknown || p.count(message.RequestKillJobs) != 1 || p.count(message.RequestKillJob) != 0 {
		t.Errorf("got %v; sent %d and %d times", err, p.count(message.RequestKillJobs), p.count(message.RequestKillJob))
	}
}
